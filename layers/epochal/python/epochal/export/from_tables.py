"""The tables themselves as an origin of exports: every event of every stream, also where no index tells of them.

A range is a segment of a scan for heads (`care.catch_up`), which DynamoDB makes of a hash of the keys: whatever is
appended meanwhile, a stream stays in its segment. What a head tells is read from the store, stream by stream; so a
stream is as long as it was when its head was read, and streams come in no order. There are no rows of what was pruned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from epochal.care.catch_up import UnreadableHead, read_heads, scan
from epochal.errors import CorruptData
from epochal.export.from_feed import comes_first
from epochal.export.parts import (
    BATCH_BYTES,
    EventExport,
    ExportCounts,
    ExportScope,
    FeedRange,
    RowBatch,
    begun,
    size_of,
)
from epochal.export.parts import run as run_parts
from epochal.feed.history import FeedEvent
from epochal.feed.reader import FeedReader
from epochal.layout.port import End, Source, end_since
from epochal.lazy_dataclasses import dataclass, replace
from epochal.rows import Row, row_of
from epochal.store.driver import ahead

SEGMENTS: Final = 16
"""Of a table at least: each can be read by another worker."""

MOST_SEGMENTS: Final = 4_096

SEGMENT_BYTES: Final = 64 * 1024 * 1024
"""Of a table in a segment, about: it is a part, which a run that was interrupted reads again as a whole."""

AT_ONCE: Final = 8
"""Streams that are read at once."""

SHORT: Final = 32
"""Events of a stream that is read beside others: a longer one is read as its events are written."""

ROWS: Final = 1_024
"""Of a batch."""


def segments_of(size: int) -> int:
    """How many segments a table of so many bytes has."""
    return min(MOST_SEGMENTS, max(SEGMENTS, -(-size // SEGMENT_BYTES)))


def begin(folder: Path, wanted: ExportScope, segments: Mapping[int, int]) -> EventExport:
    """The export of tables in a folder, as `parts.begun` has it.

    Args:
        segments: of each source, by its first partition.
    """
    return begun(
        folder,
        wanted,
        lambda: (FeedRange(base, at, at + 1) for base, count in segments.items() for at in range(count)),
    )


def run(
    export: EventExport, opener: Callable[[], tuple[FeedReader, Sequence[Source]]], **how: Any
) -> ExportCounts:
    """`parts.run` of tables; `opener` gives what reads events, and the sources."""
    segments: dict[int, int] = {}
    for each in export.ranges:
        segments[each.partition] = max(segments.get(each.partition, 0), each.end)
    return run_parts(export, partial(_opened, opener, segments), **how)


def _opened(
    opener: Callable[[], tuple[FeedReader, Sequence[Source]]], segments: Mapping[int, int]
) -> TablesOrigin:
    feed, sources = opener()
    return TablesOrigin(feed, {each.base: each for each in sources}, segments)


@dataclass(frozen=True, slots=True)
class TablesOrigin:
    """The tables of sources, by the first partition of each; `segments` are as many as each is read in."""

    feed: FeedReader
    sources: Mapping[int, Source]
    segments: Mapping[int, int]

    def batches(self, wanted: ExportScope, range_: FeedRange) -> Iterator[RowBatch]:
        """The streams of a segment. Only behind the last of them there is a place to go on from."""
        rows, read, size = list[Row](), 0, 0
        for row in self._rows(wanted, range_):
            read += 1
            if row is not None:
                rows.append(row)
                size += size_of(row)
            if read >= ROWS or size >= BATCH_BYTES:
                yield RowBatch(rows, range_.start, read, size)
                rows, read, size = [], 0, 0
        yield RowBatch(rows, range_.end, read, size)

    def _rows(self, wanted: ExportScope, range_: FeedRange) -> Iterator[Row | None]:
        """The row of each event; None where another of its streams has that."""
        categories, of = wanted.categories or None, self.feed.categories(range_.partition)
        category = lru_cache(4_096)(of.of)
        for events in ahead(self._read(range_.partition), self._heads(wanted, range_), AT_ONCE):
            for event in events:
                first = comes_first(event, categories, of)
                yield row_of(event, category=category) if first else None

    def _heads(self, wanted: ExportScope, range_: FeedRange) -> Iterator[End | UnreadableHead]:
        """Where each stream of a segment ends that is wanted, and what cannot be read of these."""
        source, of = self.sources[range_.partition], self.feed.categories(range_.partition)
        segment = (range_.start, self.segments[range_.partition])
        unreadable, open_ = list[UnreadableHead](), None
        for page in self.feed.driver.pages(scan(source, segment)):
            for head in read_heads(source, page.items, unreadable.append):
                if wanted.categories and not of.hold(head.end.stream, wanted.categories):
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
        source, hydrate = self.sources[partition], self.feed.hydrate(partition)

        def events(of: End | UnreadableHead) -> Iterator[FeedEvent]:
            if isinstance(of, UnreadableHead):
                return iter((FeedEvent(stream="", index=0, type="", fault=CorruptData(str(of))),))
            first, end = max(of.pruned, of.since), of.next
            fault: CorruptData | None = None
            if end is None:
                end, fault = self.feed.driver.run(end_since(source.heal, of.stream, first))
            found = hydrate(of.stream, first, end)
            if fault is not None:
                broken = FeedEvent(stream=of.stream, index=end, type="", fault=fault)
                return iter((*found, broken))
            return iter(list(found)) if end - first <= SHORT else found

        return events


def _joined(one: End, other: End) -> End | None:
    """Both as one, where they are neighbours of a stream: items of a stream come together, and are read together."""
    if one.stream == other.stream and one.next is not None and one.next == max(other.pruned, other.since):
        return replace(other, pruned=one.pruned, since=one.since)
    return None
