"""Several requests under way at once, with their answers in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from heapq import merge
from itertools import chain, islice
from typing import Any, TypeVar

from epochal.store.pools import pool

A = TypeVar("A")
B = TypeVar("B")


def ahead(make: Callable[[A], B], items: Iterable[A], at_once: int) -> Iterator[B]:
    """`map`, with up to `at_once` calls under way, each on a thread; `items` are taken on the caller's own."""
    if at_once == 1:
        yield from map(make, items)
        return
    waiting_for = iter(items)
    with pool(at_once) as calls:
        under_way = deque(calls.submit(make, item) for item in islice(waiting_for, at_once))
        while under_way:
            made = under_way.popleft().result()
            under_way.extend(calls.submit(make, item) for item in islice(waiting_for, 1))
            yield made


def merged(sources: Sequence[Iterator[Sequence[A]]], key: Callable[[A], Any], at_once: int) -> Iterator[A]:
    """Merge sources, each of which yields pages in order, into one order.

    Up to `at_once` pages are under way, each on a thread. One page of each source is at hand, and the next is
    asked for when half of that is taken, which bounds memory however long the sources are.
    """
    if at_once == 1 or len(sources) == 1:
        yield from merge(*map(chain.from_iterable, sources), key=key)
        return
    calls = pool(min(at_once, len(sources)))
    try:
        first = [calls.submit(next, source, None) for source in sources]
        pairs = zip(sources, first, strict=True)
        yield from merge(*(_half_ahead(calls, source, page) for source, page in pairs), key=key)
    finally:
        calls.shutdown(cancel_futures=True)


def _half_ahead(
    calls: Executor, source: Iterator[Sequence[A]], under_way: Future[Sequence[A] | None]
) -> Iterator[A]:
    while (page := under_way.result()) is not None:
        half = len(page) // 2
        yield from page[:half]
        under_way = calls.submit(next, source, None)
        yield from page[half:]
