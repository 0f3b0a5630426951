"""Several requests under way at once, with their answers in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def ahead(make: Callable[[A], B], items: Iterable[A], at_once: int) -> Iterator[B]:
    """`map`, with up to `at_once` calls under way, each on a thread; `items` are taken on the caller's own."""
    if at_once == 1:
        yield from map(make, items)
        return
    waiting_for = iter(items)
    with ThreadPoolExecutor(at_once) as pool:
        under_way = deque(pool.submit(make, item) for item in islice(waiting_for, at_once))
        while under_way:
            made = under_way.popleft().result()
            under_way.extend(pool.submit(make, item) for item in islice(waiting_for, 1))
            yield made
