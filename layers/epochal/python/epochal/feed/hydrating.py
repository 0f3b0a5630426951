"""Events for the spans of a feed page: one bounded read for each stream, several streams at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile

from epochal.feed.results import FeedItem
from epochal.model.events import Claim, Recorded
from epochal.model.spans import Span
from epochal.store.streams import Streams

PARALLEL = 8
"""Streams read at once."""


def bare_items(spans: Iterable[Span]) -> list[FeedItem]:
    """Items without their events."""
    return [
        FeedItem(stream=span.stream, index=span.index + offset, type=kind)
        for span in spans
        for offset, kind in enumerate(span.types)
    ]


def hydrated(spans: list[Span], streams: Streams, max_bytes: int | None) -> list[FeedItem]:
    """Items with their events; those beyond `max_bytes` of bodies are left out and marked so."""
    wanted: dict[str, tuple[int, int]] = {}
    for span in spans:
        first, end = wanted.get(span.stream, (span.index, span.next))
        wanted[span.stream] = (min(first, span.index), max(end, span.next))
    with ThreadPoolExecutor(PARALLEL) as pool:
        reads = pool.map(lambda each: list(_events(streams, *each)), wanted.items())
        found = {(event.stream, event.index): event for events in reads for event in events}
    return list(_filled(bare_items(spans), found, max_bytes))


def _events(streams: Streams, stream: str, bounds: tuple[int, int]) -> Iterator[Recorded]:
    first, end = bounds
    # Past the check of names, which is for callers: other libraries name streams more freely.
    events = streams.reader().events(stream, first, end - first, "forward")
    return takewhile(lambda event: event.index < end, events)


def _filled(
    items: Iterable[FeedItem], found: dict[tuple[str, int], Recorded], max_bytes: int | None
) -> Iterator[FeedItem]:
    taken = 0
    for item in items:
        event = found.get((item.stream, item.index))
        taken += 0 if event is None else size_of(event)
        full = max_bytes is not None and taken > max_bytes
        yield FeedItem(
            stream=item.stream,
            index=item.index,
            type=item.type,
            event=None if full else event,
            omitted=full and event is not None,
        )


def size_of(event: Recorded) -> int:
    """Bytes reckoned for an event in an answer."""
    bodies = sum(body.size if isinstance(body, Claim) else len(body) for body in (event.data, event.meta))
    return 200 + bodies
