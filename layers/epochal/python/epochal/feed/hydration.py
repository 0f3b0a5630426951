"""Events for the spans of a feed page, read window by window, several streams of a window at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Final, TypeVar

from epochal.errors import CorruptData
from epochal.feed.batch_reading import BatchReader, Range
from epochal.feed.events import FeedEvent, UnopenedFeedEvent, unreadable_events
from epochal.feed.results import FeedItem, PlacedRemoval
from epochal.layout.changes import Span
from epochal.model.bodies import body_size
from epochal.store.driver import pool

_Event = TypeVar("_Event", FeedEvent, FeedEvent | UnopenedFeedEvent)


def read_in_halves(
    stream: str, first: int, end: int, read: Callable[[int, int], Iterable[_Event]]
) -> Iterator[_Event | FeedEvent]:
    """Yield a range of a stream's events; if one is broken, read halves, so that only it is unreadable."""
    try:
        events = list(read(first, end))
    except CorruptData as fault:
        if end - first == 1:
            yield from unreadable_events(stream, first, end, fault)
            return
        middle = (first + end) // 2
        yield from read_in_halves(stream, first, middle, read)
        yield from read_in_halves(stream, middle, end, read)
    else:
        yield from events


PARALLEL: Final = 8
"""Number of streams that are read concurrently."""

WINDOW: Final = 256
"""Default number of events that are read together: 100 MB if each is as large as an item can be."""

PAGE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of bodies after which a page of the library ends as soon as it can, whatever its limit: compression stores
megabytes of spaces in a few bytes."""

Hydrate = Callable[[str, int, int], Iterator[FeedEvent]]
"""Function that reads the events of a stream lazily, from one index to before another. No event is left out: events
that are gone or unreadable are marked as such.
"""

HydrateUnopened = Callable[[str, int, int], Iterator[FeedEvent | UnopenedFeedEvent]]
"""A `Hydrate` function that returns events which may be large unopened."""


def bare_items(spans: Iterable[Span]) -> list[FeedItem]:
    """Convert spans into feed items without their events."""
    items: list[FeedItem] = []
    for stream, first, types in spans:
        index = first
        for kind in types:
            items.append(_tuple(FeedItem, (stream, index, kind, None, False, None, None, None)))
            index += 1
    return items


_tuple: Final = tuple.__new__
"""Makes a named tuple in half of the time: catching up makes one for every event."""


def with_removals(
    items: Iterable[FeedItem | None], spans: Iterable[Span], removals: Iterable[PlacedRemoval]
) -> list[FeedItem]:
    """Return the items with removals inserted between spans; items that are None are left out."""
    merged, remaining, events = list[FeedItem](), deque(removals), iter(items)
    if not remaining:
        return [item for item in events if item is not None]
    for place, span in enumerate(spans):
        while remaining and remaining[0][0] == place:
            merged.append(FeedItem.of(remaining.popleft()[1]))
        merged += [item for item in islice(events, len(span.types)) if item is not None]
    return [*merged, *(FeedItem.of(removal) for _, removal in remaining)]


def hydrated(spans: Sequence[Span], hydrate: Hydrate) -> list[FeedItem]:
    """Return the items of spans with their events, read from the store."""
    events = events_of(spans, hydrate, lambda: WINDOW)
    return [with_event(item, event) for item, event in zip(bare_items(spans), events, strict=True)]


def hydrated_entries(
    spans: Sequence[Span], ends: Iterable[int], hydrate: HydrateUnopened, *, once: bool, strict: bool
) -> tuple[list[FeedItem | None], int]:
    """Return items with events, and of how many entries: up to where large events reach `PAGE_BYTES`.

    Args:
        spans: spans of all entries.
        ends: for each entry, how many spans it and the entries before it have.
        once: whether the item of a tagged event is None unless it comes through its first tag.
        strict: whether an event that cannot be read is raised.

    Returns:
        The items, and the number of entries that they belong to.
    """
    items: list[FeedItem | None] = []
    size = taken = first = 0
    with closing(events_of(spans, hydrate, lambda: WINDOW)) as events:
        for end in ends:
            for item in bare_items(spans[first:end]):
                event = next(events)
                if isinstance(event, UnopenedFeedEvent):
                    event = event.decode_whole()
                    size += body_size(event.data) + body_size(event.meta)
                item_or_none = with_event(item, event) if event.first or not once else None
                if strict and item_or_none is not None and item_or_none.fault is not None:
                    raise item_or_none.fault
                items.append(item_or_none)
            first, taken = end, taken + 1
            if size >= PAGE_BYTES:
                break
    return items, taken


def events_of(
    spans: Iterable[Span], hydrate: Callable[[str, int, int], Iterator[_Event]], window: Callable[[], int]
) -> Generator[_Event, None, None]:
    """Iterate over the events of spans in order, read in windows; `window` returns the size of the next."""
    batches = BatchReader[_Event](hydrate)
    with pool(PARALLEL) as reading:
        for part in _windows(spans, window):
            ranges, in_batches = _wanted(part), set[Range]()
            candidates = batches.candidates(ranges)
            reads: list[Iterator[list[_Event]]] = []
            while candidates:
                events_by_range, candidates = batches.read(candidates)
                in_batches |= events_by_range.keys()
                decoded = [events for events in events_by_range.values() if isinstance(events, list)]
                encoded = [events for events in events_by_range.values() if not isinstance(events, list)]
                reads += [iter(decoded), reading.map(list, encoded)]
            singly = (range_ for range_ in ranges if range_ not in in_batches)
            reads.append(reading.map(lambda range_: list(hydrate(*range_)), singly))
            by_place = {
                (event.stream, event.index): event
                for events in chain.from_iterable(reads)
                for event in events
            }
            for stream, first, types in part:
                for index in range(first, first + len(types)):
                    yield by_place[stream, index]


def with_event(item: FeedItem, event: FeedEvent) -> FeedItem:
    """Return an item with its event, or with the reason why the event is gone or cannot be read."""
    if event.fault is not None:
        return FeedItem(stream=item.stream, index=item.index, type=item.type, fault=event.fault)
    if event.gone:
        return FeedItem(stream=item.stream, index=item.index, type=item.type, gone=event.gone)
    return FeedItem(stream=item.stream, index=item.index, type=item.type, event=event)


def _windows(spans: Iterable[Span], window: Callable[[], int]) -> Iterator[list[Span]]:
    """Yield lists of spans, cut where necessary, each of as many events as `window` returns."""
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
    """Return the range of events to read of each stream in a window."""
    ranges: dict[str, tuple[int, int]] = {}
    for span in window:
        first, end = ranges.get(span.stream, (span.index, span.next))
        ranges[span.stream] = (min(first, span.index), max(end, span.next))
    return [(stream, first, end) for stream, (first, end) in ranges.items()]


def opened_events(events: Iterable[FeedEvent | UnopenedFeedEvent]) -> Iterator[FeedEvent]:
    """Iterate over events, each opened when it is consumed."""
    return (event.decode_whole() if isinstance(event, UnopenedFeedEvent) else event for event in events)
