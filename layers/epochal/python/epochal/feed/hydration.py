"""Events for the spans of a feed page, window by window, several streams of a window at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Final

from epochal.feed.results import FeedEvent, FeedItem
from epochal.model.spans import Span
from epochal.store.pools import pool

PARALLEL: Final = 8
"""Streams read at once."""

WINDOW: Final = 256
"""Events read together where nobody asks for fewer: 100 MB where each is as large as an item can be."""

Hydrate = Callable[[str, int, int], Iterator[FeedEvent]]
"""Reads the events of a stream from an index up to and without another, as they are consumed; none is left out:
those that are gone, or cannot be read, come as such."""


def bare_items(spans: Iterable[Span]) -> list[FeedItem]:
    """Items without their events."""
    return [
        FeedItem(stream, index, kind)
        for stream, first, types in spans
        for index, kind in enumerate(types, first)
    ]


def hydrated(
    spans: Sequence[Span], hydrate: Hydrate, *, once: bool = False, strict: bool = False
) -> list[FeedItem]:
    """Items with their events.

    Args:
        once: tagged events only where they come through their first tag.
        strict: an event that cannot be read is raised.
    """
    events = events_of(spans, hydrate, lambda: WINDOW)
    met = zip(bare_items(spans), events, strict=True)
    found = [with_event(item, event) for item, event in met if event.first or not once]
    for item in found:
        if strict and item.fault is not None:
            raise item.fault
    return found


def events_of(
    spans: Iterable[Span], hydrate: Hydrate, window: Callable[[], int]
) -> Generator[FeedEvent, None, None]:
    """The events of spans, in their order; `window` says how many are read next."""
    with pool(PARALLEL) as reading:
        for part in _windows(spans, window):
            reads = reading.map(lambda each: list(hydrate(*each)), _wanted(part))
            found = {(event.stream, event.index): event for events in reads for event in events}
            for stream, first, types in part:
                for index in range(first, first + len(types)):
                    yield found[stream, index]


def with_event(item: FeedItem, event: FeedEvent) -> FeedItem:
    """An item with its event, or with the reason why it is gone, or cannot be read."""
    if event.fault is not None:
        return FeedItem(stream=item.stream, index=item.index, type=item.type, fault=event.fault)
    if event.gone:
        return FeedItem(stream=item.stream, index=item.index, type=item.type, gone=event.gone)
    return FeedItem(stream=item.stream, index=item.index, type=item.type, event=event)


def _windows(spans: Iterable[Span], window: Callable[[], int]) -> Iterator[list[Span]]:
    part: list[Span] = []
    room = window()
    for span in spans:
        rest = span
        while rest.types:
            part.append(Span(rest.stream, rest.index, rest.types[:room]))
            rest = rest.since(part[-1].next)
            room -= len(part[-1].types)
            if room == 0:
                yield part
                part, room = [], window()
    if part:
        yield part


def _wanted(window: Iterable[Span]) -> list[tuple[str, int, int]]:
    """Each stream of a window, from where to where."""
    wanted: dict[str, tuple[int, int]] = {}
    for span in window:
        first, end = wanted.get(span.stream, (span.index, span.next))
        wanted[span.stream] = (min(first, span.index), max(end, span.next))
    return [(stream, first, end) for stream, (first, end) in wanted.items()]
