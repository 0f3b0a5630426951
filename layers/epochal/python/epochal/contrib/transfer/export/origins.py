"""Origins of exports: the feed, with every event up to its tail when the export began, in feed order; or the tables.

A range of the feed is some entries of a partition's chain of epochs. An event with tags has an entry for each of its
streams, and becomes a row in the first of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import Any, Final

from epochal.care.heads import UnreadableHead, read_heads, scan
from epochal.contrib.transfer.export.parts import (
    EventExport,
    ExportCounts,
    ExportScope,
    FeedRange,
    RowBatch,
    load_or_begin,
    size_of,
)
from epochal.contrib.transfer.export.runs import BATCH_BYTES
from epochal.contrib.transfer.export.runs import run as run_parts
from epochal.contrib.transfer.rows import Row, row_of
from epochal.errors import CorruptData
from epochal.feed.events import FeedEvent
from epochal.feed.filters import span_filter
from epochal.feed.hydration import WINDOW, Hydrate, events_of
from epochal.feed.page_filling import FEWEST
from epochal.feed.reader import FeedReader
from epochal.feed.span_reader import SpanReader
from epochal.index.checkpoints import Checkpoint, FeedStart
from epochal.index.entries import epoch_tip
from epochal.layout.categories import Categories
from epochal.layout.changes import Span
from epochal.layout.healing import end_since
from epochal.layout.source import End, Source
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.stream_names import TAG_STREAMS
from epochal.store.driver import ahead

EPOCHS: Final = 8
"""Most epochs in a range: some 16 MB of the index."""

RANGES: Final = 16
"""Ranges that a partition is cut into, if it has enough entries. Each can be read by another worker."""

ENTRIES: Final = 512
"""Fewest entries in a part of an epoch. Each range reads its streams anew, so it must exceed a window of events."""

MOST_EVENTS: Final = 65_536
"""Most events in a window. A stream is read once for all of its events in a window."""

WINDOW_BYTES: Final = 64 * 1024 * 1024
"""Bytes of events in a window, about. If they reach twice as much, the range goes on with smaller windows."""

HELD: Final = 800
"""Estimated bytes of an event in memory without its bodies."""


def begin_feed(
    feed: FeedReader, folder: Path, scope: ExportScope, start: FeedStart = "beginning"
) -> EventExport:
    """Load the export of the feed in a folder, or begin one that ends at the feed's current tail.

    Args:
        feed: reader of the feed
        folder: folder of the export
        scope: selection of events
        start: place in the feed where a new export begins

    Raises:
        InvalidInput: the folder has an export of something else, or other files; or Parquet cannot be written here.
    """
    return load_or_begin(
        folder,
        scope,
        lambda: (
            range_
            for tail in feed.partitions()
            for range_ in ranges_of(
                tail.partition, feed.find_checkpoint(tail.partition, start), tail.tail, partial(_end_of, feed)
            )
        ),
    )


def run_feed(export: EventExport, opener: Callable[[], FeedReader], **how: Any) -> ExportCounts:
    """Write the missing parts of an export of the feed, check all files, and return its counts.

    Args:
        export: export to go on with
        opener: function that opens the feed reader, in each worker process where there are several
        how: keyword arguments of `runs.run`
    """
    return run_parts(export, partial(_feed_opened, opener), **how)


def _feed_opened(opener: Callable[[], FeedReader]) -> FeedOrigin:
    """Open a feed reader, and return the origin that reads from it."""
    return FeedOrigin(opener())


def _end_of(feed: FeedReader, partition: int, epoch: int) -> int:
    """Return the number of entries in an epoch of a partition; 0 if there is no such epoch."""
    tip = feed.driver.run(epoch_tip(feed.table, partition, epoch))
    return 0 if tip is None else tip.version


def ranges_of(
    partition: int, start: Checkpoint, end: Checkpoint, entries: Callable[[int, int], int]
) -> Iterator[FeedRange]:
    """Cut a partition's feed between two checkpoints into consecutive ranges for workers, and yield these.

    A range has several epochs, or where the partition has few of them, a part of one.

    Args:
        partition: partition of the feed
        start: checkpoint where the first range begins
        end: checkpoint where the last range ends
        entries: function from a partition and an epoch to the number of entries in that epoch
    """
    start_of_range, epochs = start, max(1, min(EPOCHS, (end.epoch - start.epoch) // RANGES))
    pieces = max(1, RANGES // (end.epoch - start.epoch + 1))
    while start_of_range < end:
        last = (
            end.offset
            if start_of_range.epoch == end.epoch
            else entries(partition, start_of_range.epoch)
            if pieces > 1
            else 0
        )
        following = min(Checkpoint.of((start_of_range.epoch // epochs + 1) * epochs, 0), end)
        if (
            pieces > 1
            and (step := max(ENTRIES, -(-last // pieces)))
            and start_of_range.offset + 2 * step <= last
        ):
            following = Checkpoint.of(start_of_range.epoch, start_of_range.offset + step)
        yield FeedRange(partition, int(start_of_range), int(following))
        start_of_range = following


@dataclass(frozen=True, slots=True)
class FeedOrigin:
    """Origin that reads the events of an export from the feed."""

    feed: FeedReader

    def batches(self, scope: ExportScope, range_: FeedRange) -> Iterator[RowBatch]:
        """Yield a batch of rows for each index entry of a feed range with events of the scope's categories.

        If the events of a window take too much memory, the range is read on with smaller windows.
        """
        entries, is_whole = _Entries(self.feed, scope, range_), False
        while not is_whole:
            try:
                for batch in entries.read():
                    range_ = range_._replace(start=batch.end)
                    yield batch
                is_whole = True
            except _TooMuch:
                entries = _Entries(self.feed, scope, range_, entries.smaller())


class _TooMuch(Exception):
    """Signals that the events of a window take more memory than is planned for them."""


class _Entries:
    """Reads the entries of a range, with their events in windows of bounded memory."""

    def __init__(
        self, feed: FeedReader, scope: ExportScope, range_: FeedRange, most: int | None = None
    ) -> None:
        """Prepare to read the feed entries of a range, with at most `most` events in the first window.

        Args:
            feed: reader of the feed
            scope: selection of events
            range_: range to read
            most: most events in the first window; None for `MOST_EVENTS`
        """
        self._feed, self._range = feed, range_
        self._categories, self._of = scope.categories or None, feed.categories(range_.partition)
        self._ahead = deque[tuple[int, list[Span]]]()
        self._largest = WINDOW_BYTES // WINDOW
        self._most, self._room, self._held = most or MOST_EVENTS, 0, 0

    def read(self) -> Iterator[RowBatch]:
        """Yield a batch of rows for each entry of the range that has events of the scope's categories.

        Raises:
            _TooMuch: the events of a window take too much memory.
        """
        partition, category = self._range.partition, lru_cache(4_096)(self._of.of)
        events = events_of(self._spans(), self._hydrate(self._feed.hydrate(partition)), self._window)
        for event in events:
            end, spans = self._ahead.popleft()
            kinds = [kind for span in spans for kind in span.types]
            paired = zip(kinds, chain((event,), islice(events, len(kinds) - 1)), strict=True)
            rows = [
                row_of(event_of_kind, partition=partition, position=end, type=kind, category=category)
                for kind, event_of_kind in paired
                if comes_first(event_of_kind, self._categories, self._of)
            ]
            sizes = [size_of(row) for row in rows]
            self._largest = max(self._largest, HELD + max(sizes, default=0))
            yield RowBatch(rows, end, len(kinds), sum(sizes))
            self._most = min(MOST_EVENTS, 2 * self._most)

    def _spans(self) -> Iterator[Span]:
        """Yield the range's spans of the scope's categories, and queue each entry's in `_ahead` with its end.

        Entries that were appended after the export began lie behind the range's end, and are not read.
        """
        reader = SpanReader.begin(
            self._feed.driver, self._feed.table, self._range.partition, Checkpoint(self._range.start)
        )
        predicate = span_filter(lambda: self._of, self._categories, None)
        next_place, at_tail = self._range.start, False
        while next_place < self._range.end and not at_tail:
            page = reader.spans(limit=1, predicate=predicate, seconds=inf, wait=0.0)
            next_place, at_tail = int(page.next), page.at_tail
            if page.spans and next_place <= self._range.end:
                self._ahead.append((next_place, list(page.spans)))
                yield from page.spans

    def smaller(self) -> int:
        """Return a window size that takes much less memory than the last one, as a number of events.

        It doubles again with each entry that is read.
        """
        return max(FEWEST, self._room // 16)

    def _window(self) -> int:
        """Return the number of events in the next window, computed from the largest recent event."""
        room, self._largest, self._held = WINDOW_BYTES // self._largest, HELD, 0
        self._room = max(FEWEST, min(self._most, room))
        return self._room

    def _hydrate(self, read: Hydrate) -> Hydrate:
        """Wrap a function that reads a stream's events, so that it raises when a window exceeds its memory."""

        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
            """Yield a stream's events `first` to `end - 1`; raise if the window takes too much memory.

            Raises:
                _TooMuch: the events of the window take more than twice `WINDOW_BYTES`.
            """
            for event in read(stream, first, end):
                self._held += HELD + sum(
                    len(body) for body in (event.data, event.meta) if isinstance(body, bytes)
                )
                if self._held > 2 * WINDOW_BYTES and self._room > FEWEST:
                    raise _TooMuch
                yield event

        return hydrate


def comes_first(event: FeedEvent, categories: Collection[str] | None, categories_of: Categories) -> bool:
    """Whether an event, read in one of its streams, becomes a row there and not in another stream.

    An event with tags is in several streams, and becomes a row in the first of those that have one of the
    categories.

    Args:
        event: event, as it is read in one of its streams
        categories: categories of the exported streams; None for all
        categories_of: categories of streams in the layout
    """
    if categories is None or not event.tags:
        return event.first
    begin = TAG_STREAMS if event.stream.startswith(TAG_STREAMS) else ""
    streams = [*filter(None, (event.home,)), *(f"{begin}{tag}" for tag in event.tags)]
    return next(stream for stream in streams if categories_of.hold(stream, categories)) == event.stream


# Tables as origin: every event of every stream, including streams that no index has.
#
# A range is a segment of a scan for heads (`care.heads`). DynamoDB assigns segments by a hash of the keys, so a stream
# stays in its segment whatever is appended meanwhile. The events of each stream are read from the store, up to the end
# that its head had when it was scanned. Streams come in no order, and pruned events have no rows.

SEGMENTS: Final = 16
"""Fewest segments of a table. Each can be read by another worker."""

MOST_SEGMENTS: Final = 4_096

SEGMENT_BYTES: Final = 64 * 1024 * 1024
"""Bytes of a table in a segment, about. An interrupted run reads an unfinished segment again from its start."""

AT_ONCE: Final = 8
"""Streams that are read concurrently."""

SHORT: Final = 32
"""Most events of a stream that is read ahead, beside others. A longer one is read as its events are written."""

ROWS: Final = 1_024
"""Rows of a batch of a table's events."""


def segments_of(size: int) -> int:
    """Return the number of segments for a table of `size` bytes."""
    return min(MOST_SEGMENTS, max(SEGMENTS, -(-size // SEGMENT_BYTES)))


def begin_tables(folder: Path, scope: ExportScope, segments: Mapping[int, int]) -> EventExport:
    """Load the export of tables in a folder, or begin one with a range for each segment of each source.

    Args:
        folder: folder of the export
        scope: selection of events
        segments: number of segments of each source, by its first partition

    Raises:
        InvalidInput: the folder has an export of something else, or other files; or Parquet cannot be written here.
    """
    return load_or_begin(
        folder,
        scope,
        lambda: (
            FeedRange(base, segment, segment + 1)
            for base, count in segments.items()
            for segment in range(count)
        ),
    )


def run_tables(
    export: EventExport, opener: Callable[[], tuple[FeedReader, Sequence[Source]]], **how: Any
) -> ExportCounts:
    """Write the missing parts of an export of tables, check all files, and return its counts.

    Args:
        export: export to go on with
        opener: function that opens the feed reader and the sources, in each worker process where there are several
        how: keyword arguments of `runs.run`
    """
    segments: dict[int, int] = {}
    for range_ in export.ranges:
        segments[range_.partition] = max(segments.get(range_.partition, 0), range_.end)
    return run_parts(export, partial(_tables_opened, opener, segments), **how)


def _tables_opened(
    opener: Callable[[], tuple[FeedReader, Sequence[Source]]], segments: Mapping[int, int]
) -> TablesOrigin:
    """Open the feed reader and sources, and return the origin that reads from them."""
    feed, sources = opener()
    return TablesOrigin(feed, {source.base: source for source in sources}, segments)


@dataclass(frozen=True, slots=True)
class TablesOrigin:
    """Origin that reads the events of an export from tables, by a segmented scan for heads of streams.

    Attributes:
        feed: reader of the feed, which reads events of streams
        sources: sources by their first partition
        segments: number of segments of each source, by its first partition
    """

    feed: FeedReader
    sources: Mapping[int, Source]
    segments: Mapping[int, int]

    def batches(self, scope: ExportScope, range_: FeedRange) -> Iterator[RowBatch]:
        """Yield the rows of a segment's streams in batches, of which only the last ends at the range's end.

        Only the last batch ends at a place to go on from: the others have the range's start as their end.
        """
        rows, read, size = list[Row](), 0, 0
        for row in self._rows(scope, range_):
            read += 1
            if row is not None:
                rows.append(row)
                size += size_of(row)
            if read >= ROWS or size >= BATCH_BYTES:
                yield RowBatch(rows, range_.start, read, size)
                rows, read, size = [], 0, 0
        yield RowBatch(rows, range_.end, read, size)

    def _rows(self, scope: ExportScope, range_: FeedRange) -> Iterator[Row | None]:
        """Yield a row for each event of a segment's chosen streams; None if its row comes from another stream."""
        categories, categories_of = scope.categories or None, self.feed.categories(range_.partition)
        category = lru_cache(4_096)(categories_of.of)
        for events in ahead(self._read(range_.partition), self._heads(scope, range_), AT_ONCE):
            for event in events:
                first = comes_first(event, categories, categories_of)
                yield row_of(event, category=category) if first else None

    def _heads(self, scope: ExportScope, range_: FeedRange) -> Iterator[End | UnreadableHead]:
        """Yield the end of each stream in a segment that has one of the categories, then each unreadable head."""
        source, categories_of = self.sources[range_.partition], self.feed.categories(range_.partition)
        segment = (range_.start, self.segments[range_.partition])
        unreadable, open_ = list[UnreadableHead](), None
        for page in self.feed.driver.pages(scan(source, segment)):
            for head in read_heads(source, page.items, unreadable.append):
                if scope.categories and not categories_of.hold(head.end.stream, scope.categories):
                    continue
                if open_ is not None and (joined := _joined(open_, head.end)) is not None:
                    open_ = joined
                    continue
                if open_ is not None:
                    yield open_
                open_ = head.end
        if open_ is not None:
            yield open_
        yield from unreadable

    def _read(self, partition: int) -> Callable[[End | UnreadableHead], Iterator[FeedEvent]]:
        """Make a function that reads the events of a stream by its end, or reports an unreadable head."""
        source, hydrate = self.sources[partition], self.feed.hydrate(partition)

        def events(head: End | UnreadableHead) -> Iterator[FeedEvent]:
            """Return the events of a stream; an unreadable head or a damaged tip becomes an event with a fault."""
            if isinstance(head, UnreadableHead):
                return iter((FeedEvent(stream="", index=0, type="", fault=CorruptData(str(head))),))
            first, end = max(head.pruned, head.since), head.next
            fault: CorruptData | None = None
            if end is None:
                end, fault = self.feed.driver.run(end_since(source.heal, head.stream, first))
            hydrated = hydrate(head.stream, first, end)
            if fault is not None:
                broken = FeedEvent(stream=head.stream, index=end, type="", fault=fault)
                return iter((*hydrated, broken))
            return iter(list(hydrated)) if end - first <= SHORT else hydrated

        return events


def _joined(one: End, other: End) -> End | None:
    """Join two ends into one if the second goes on in the stream where the first stops; otherwise None.

    The items of a stream come together in a scan, and their events are read together.
    """
    if one.stream == other.stream and one.next is not None and one.next == max(other.pruned, other.since):
        return replace(other, pruned=one.pruned, since=one.since)
    return None
