"""The feed as an origin of exports: every event that it had when the export began, in its order.

A range is some entries of a partition's chain of epochs. An event with tags is met in the feed through each of its
streams, and becomes a row in the first of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache, partial
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import Any, Final

from epochal.export.parts import (
    EventExport,
    ExportCounts,
    ExportScope,
    FeedRange,
    RowBatch,
    begun,
    size_of,
)
from epochal.export.parts import run as run_parts
from epochal.feed.history import FEWEST, WINDOW, FeedEvent, Hydrate, events_of
from epochal.feed.reader import FeedReader, SpanReader, wanted
from epochal.index.checkpoints import Checkpoint, Place
from epochal.index.entries import epoch_tip
from epochal.layout.port import Categories, Span
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import TAG_STREAMS
from epochal.rows import row_of

EPOCHS: Final = 8
"""Of a range at most: some 16 MB of the index."""

RANGES: Final = 16
"""Of a partition, where it has enough entries: each can be read by another worker."""

ENTRIES: Final = 512
"""Of a range at least: each range reads its streams anew, so one has more than is read together."""

MOST_EVENTS: Final = 65_536
"""Read together. A stream is read once for all of its events among them."""

WINDOW_BYTES: Final = 64 * 1024 * 1024
"""Of events read together, about; when they have grown to twice as much they are read again, fewer at a time."""

HELD: Final = 800
"""Bytes reckoned for what an event in memory has besides its bodies."""


def begin(feed: FeedReader, folder: Path, wanted: ExportScope, start: Place = "beginning") -> EventExport:
    """The export of the feed in a folder, as `parts.begun` has it: all that it has by now."""
    return begun(
        folder,
        wanted,
        lambda: (
            each
            for at in feed.partitions()
            for each in ranges_of(
                at.partition, feed.place(at.partition, start), at.tail, partial(_end_of, feed)
            )
        ),
    )


def run(export: EventExport, opener: Callable[[], FeedReader], **how: Any) -> ExportCounts:
    """`parts.run` of the feed."""
    return run_parts(export, partial(_opened, opener), **how)


def _opened(opener: Callable[[], FeedReader]) -> FeedOrigin:
    return FeedOrigin(opener())


def _end_of(feed: FeedReader, partition: int, epoch: int) -> int:
    tip = feed.driver.run(epoch_tip(feed.table, partition, epoch))
    return 0 if tip is None else tip.version


def ranges_of(
    partition: int, start: Checkpoint, end: Checkpoint, entries: Callable[[int, int], int]
) -> Iterator[FeedRange]:
    """A partition's chain of epochs, cut into ranges: of several epochs, or where it has few of these, of parts of one.

    Args:
        entries: that an epoch of the partition has.
    """
    at, epochs = start, max(1, min(EPOCHS, (end.epoch - start.epoch) // RANGES))
    pieces = max(1, RANGES // (end.epoch - start.epoch + 1))
    while at < end:
        last = end.offset if at.epoch == end.epoch else entries(partition, at.epoch) if pieces > 1 else 0
        following = min(Checkpoint.of((at.epoch // epochs + 1) * epochs, 0), end)
        if pieces > 1 and (step := max(ENTRIES, -(-last // pieces))) and at.offset + 2 * step <= last:
            following = Checkpoint.of(at.epoch, at.offset + step)
        yield FeedRange(partition, int(at), int(following))
        at = following


@dataclass(frozen=True, slots=True)
class FeedOrigin:
    """The feed of a reader."""

    feed: FeedReader

    def batches(self, wanted: ExportScope, range_: FeedRange) -> Iterator[RowBatch]:
        """The entries of a range."""
        entries, whole = _Entries(self.feed, wanted, range_), False
        while not whole:
            try:
                for batch in entries.read():
                    range_ = range_._replace(start=batch.end)
                    yield batch
                whole = True
            except _TooMuch:
                entries = _Entries(self.feed, wanted, range_, entries.smaller())


class _TooMuch(Exception):
    """What was to be read together has grown beyond what memory is for."""


class _Entries:
    """Reads the entries of a range, with their events."""

    def __init__(
        self, feed: FeedReader, wanted_: ExportScope, range_: FeedRange, most: int | None = None
    ) -> None:
        self._feed, self._range = feed, range_
        self._categories, self._of = wanted_.categories or None, feed.categories(range_.partition)
        self._ahead = deque[tuple[int, list[Span]]]()
        self._largest = WINDOW_BYTES // WINDOW
        self._most, self._room, self._held = most or MOST_EVENTS, 0, 0

    def read(self) -> Iterator[RowBatch]:
        """The rows of each entry that has something wanted."""
        partition, category = self._range.partition, lru_cache(4_096)(self._of.of)
        events = events_of(self._spans(), self._hydrate(self._feed.hydrate(partition)), self._window)
        for event in events:
            end, spans = self._ahead.popleft()
            kinds = [kind for span in spans for kind in span.types]
            met = zip(kinds, chain((event,), islice(events, len(kinds) - 1)), strict=True)
            rows = [
                row_of(each, partition=partition, position=end, type=kind, category=category)
                for kind, each in met
                if comes_first(each, self._categories, self._of)
            ]
            sizes = [size_of(row) for row in rows]
            self._largest = max(self._largest, HELD + max(sizes, default=0))
            yield RowBatch(rows, end, len(kinds), sum(sizes))
            self._most = min(MOST_EVENTS, 2 * self._most)

    def _spans(self) -> Iterator[Span]:
        """The spans of the range. What was appended since is behind its end."""
        reader = SpanReader.begin(
            self._feed.driver, self._feed.table, self._range.partition, Checkpoint(self._range.start)
        )
        asked = wanted(lambda: self._of, self._categories, None)
        at, at_tail = self._range.start, False
        while at < self._range.end and not at_tail:
            page = reader.spans(limit=1, wanted=asked, seconds=inf, wait=0.0)
            at, at_tail = int(page.next), page.at_tail
            if page.spans and at <= self._range.end:
                self._ahead.append((at, list(page.spans)))
                yield from page.spans

    def smaller(self) -> int:
        """Events of a window that takes much less than the last one: at most so many until an entry is whole."""
        return max(FEWEST, self._room // 16)

    def _window(self) -> int:
        """Events that are read next: as many as have room, if each is as large as the largest of the last ones."""
        room, self._largest, self._held = WINDOW_BYTES // self._largest, HELD, 0
        self._room = max(FEWEST, min(self._most, room))
        return self._room

    def _hydrate(self, read: Hydrate) -> Hydrate:
        """Reads events until they take twice the room that was reckoned for them."""

        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
            for event in read(stream, first, end):
                self._held += HELD + sum(
                    len(each) for each in (event.data, event.meta) if isinstance(each, bytes)
                )
                if self._held > 2 * WINDOW_BYTES and self._room > FEWEST:
                    raise _TooMuch
                yield event

        return hydrate


def comes_first(event: FeedEvent, categories: Collection[str] | None, of: Categories) -> bool:
    """Whether an event with tags is met where it becomes a row: in the first of its streams that are wanted."""
    if categories is None or not event.tags:
        return event.first
    begin = TAG_STREAMS if event.stream.startswith(TAG_STREAMS) else ""
    streams = [*filter(None, (event.home,)), *(f"{begin}{tag}" for tag in event.tags)]
    return next(each for each in streams if of.hold(each, categories)) == event.stream
