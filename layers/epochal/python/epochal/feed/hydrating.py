"""Events for the spans of a feed page: bounded reads, window by window, several streams of a window at once.

What has no room in the page is not read: of a page that is full, at most a window too much was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from epochal.feed.results import FeedEvent, FeedItem
from epochal.model.events import Claim
from epochal.model.spans import Span

PARALLEL: Final = 8
"""Streams read at once."""

WINDOW: Final = 256
"""Events read before it is asked whether there is room for more: 100 MB where each is as large as an item can be."""

Hydrate = Callable[[str, int, int], Iterator[FeedEvent]]
"""Reads the events of a stream from an index up to and without another, as they are consumed; none is left out:
those that are gone come as such."""


def bare_items(spans: Iterable[Span]) -> list[FeedItem]:
    """Items without their events."""
    return [
        FeedItem(stream, index, kind)
        for stream, first, types in spans
        for index, kind in enumerate(types, first)
    ]


def hydrated(
    spans: Iterable[Span], hydrate: Hydrate, max_bytes: int | None, *, once: bool = False
) -> list[FeedItem]:
    """Items with their events; those beyond `max_bytes` of bodies are left out and marked so.

    Args:
        once: tagged events only where they come through their first tag.
    """
    items: list[FeedItem] = []
    taken = 0
    with ThreadPoolExecutor(PARALLEL) as pool:
        for window in _windows(spans):
            if max_bytes is not None and taken > max_bytes:
                items += [_without(item) for item in bare_items(window)]
                continue
            reads = pool.map(lambda each: list(hydrate(*each)), _wanted(window))
            found = {(event.stream, event.index): event for events in reads for event in events}
            for item in bare_items(window):
                event = found[item.stream, item.index]
                if once and not event.first:
                    continue
                taken += 0 if event.gone else size_of(event)
                items.append(_with(item, event, full=max_bytes is not None and taken > max_bytes))
    return items


def size_of(event: FeedEvent) -> int:
    """Bytes reckoned for an event in an answer."""
    bodies = sum(body.size if isinstance(body, Claim) else len(body) for body in (event.data, event.meta))
    return 200 + bodies


def _windows(spans: Iterable[Span]) -> Iterator[list[Span]]:
    window: list[Span] = []
    room = WINDOW
    for span in spans:
        rest = span
        while rest.types:
            window.append(Span(rest.stream, rest.index, rest.types[:room]))
            rest = rest.since(window[-1].next)
            room -= len(window[-1].types)
            if room == 0:
                yield window
                window, room = [], WINDOW
    if window:
        yield window


def _wanted(window: Iterable[Span]) -> list[tuple[str, int, int]]:
    """Each stream of a window, from where to where."""
    wanted: dict[str, tuple[int, int]] = {}
    for span in window:
        first, end = wanted.get(span.stream, (span.index, span.next))
        wanted[span.stream] = (min(first, span.index), max(end, span.next))
    return [(stream, first, end) for stream, (first, end) in wanted.items()]


def _with(item: FeedItem, event: FeedEvent, *, full: bool) -> FeedItem:
    if event.gone:
        return FeedItem(stream=item.stream, index=item.index, type=item.type, gone=event.gone)
    if full:
        return _without(item)
    return FeedItem(stream=item.stream, index=item.index, type=item.type, event=event)


def _without(item: FeedItem) -> FeedItem:
    return FeedItem(stream=item.stream, index=item.index, type=item.type, omitted=True)
