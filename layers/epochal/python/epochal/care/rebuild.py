"""Builds an index anew in another table, from the stores' tables or from exports of them.

    tables     every head of a source; what its Tip does not carry is read from the store, several streams at a time
    exports    every item of a table, sorted by stream outside of memory; the store is not asked for anything

Both end in the indexer's own path: the same epochs, limits, marks, and the same conditions. So a rebuild that was
interrupted is begun again and passes over what is there, and an indexer may write to the same table meanwhile.

A stream's events come in their order; those of different streams do not come as they were appended, but one stream
after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Final

from epochal.care.heads import ScannedHead, heads, heads_by_partition, read_heads
from epochal.care.mender import Mender, changes_of
from epochal.care.spool import Spool
from epochal.errors import CorruptData
from epochal.layout.changes import Change, Removal, Span
from epochal.layout.healing import Gap, Heal, Healed
from epochal.layout.registry import head_key
from epochal.layout.source import Source
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.stream_names import is_fed
from epochal.plan.effects import holds
from epochal.plan.ops import Steps
from epochal.plan.values import Item
from epochal.store.driver import ahead

AT_ONCE: Final = 64
"""Streams that are indexed together: of each at most a piece of its events is held, types alone."""

SPANS: Final = 1_000
"""Items of an export that are indexed together."""


@dataclass(slots=True, kw_only=True)
class Rebuilt:
    """The result of a rebuild.

    Attributes:
        streams: number of streams that were looked at.
        events: number of events that the rebuild has indexed.
        troubles: messages about streams that could not be indexed to their end, and heads and items that could not
            be read.
    """

    streams: int = 0
    events: int = 0
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilder:
    """Builds an index from the store's tables, or from exports of them.

    Attributes:
        mender: compares heads with the new index, and writes to it.
        readers: number of requests to the store that are under way at once.
        segments: number of segments of a table that are scanned at once.
        tell: called with a line of progress.
    """

    mender: Mender
    readers: int = 1
    segments: int = 1
    tell: Callable[[str], object] = str

    def from_tables(self, source: Source) -> Rebuilt:
        """Index what the index lacks of the streams with heads in a source's table; return the counts."""
        rebuilt = Rebuilt()
        for page in heads(self.mender.driver, source, self.segments):
            result = read_heads(source, page, lambda head: rebuilt.troubles.append(str(head)))
            rebuilt.streams += len(result)
            for number, mine in heads_by_partition(source, result).items():
                behind = [late.head for late in self.mender.behind(source, number, mine)]
                read = ahead(partial(self._changes, source), behind, self.readers)
                while some := list(islice(read, AT_ONCE)):
                    self._ingest(source, number, chain.from_iterable(some), rebuilt)
            self._say(source, rebuilt)
        return rebuilt

    def from_export(self, source: Source, items: Iterable[Item], spool: Spool) -> Rebuilt:
        """Index an exported table's events, sorted by stream in `spool`; return the counts.

        What follows a hole in a stream is left for a repair from the live tables.
        """
        rebuilt = Rebuilt()
        for count, item in enumerate(items, 1):
            self._spool(source, item, spool, rebuilt)
            if count % SPANS == 0:
                self.tell(f"{source.name}: {count:,} items read")
        waiting: dict[int, list[Span]] = {}
        for stream, below, spans in spool.streams():
            mine = waiting.setdefault(source.partition_of(stream), [])
            rebuilt.streams += 1
            for span in _joined(stream, below, spans, rebuilt):
                mine.append(span)
                if len(mine) >= SPANS:
                    self._ingest(source, source.partition_of(stream), mine, rebuilt, _pruned)
                    mine.clear()
            self._say(source, rebuilt)
        for number, mine in waiting.items():
            self._ingest(source, number, mine, rebuilt, _pruned)
        return rebuilt

    def _changes(self, source: Source, head: ScannedHead) -> list[Change]:
        """Return a head's changes, preceded by spans of the earlier events that it does not carry."""
        changes = changes_of(source, head)
        last_change, *removals = changes or (None,)
        first = max(head.end.pruned, head.end.since)
        if (
            last_change is None
            or isinstance(last_change, Removal)
            or (isinstance(last_change, Span) and last_change.index <= first)
        ):
            return changes
        end = last_change.index if isinstance(last_change, Span) else None
        try:
            piece = self.mender.driver.run(source.heal(Gap(stream=last_change.stream, index=first, end=end)))
        except CorruptData:
            # Ingesting finds it again, and tells of it.
            return changes
        return [*piece.spans, *(removals if end is None and piece.whole else changes)]

    def _ingest(
        self, source: Source, number: int, changes: Iterable[Change], done: Rebuilt, heal: Heal | None = None
    ) -> None:
        """Ingest changes of one partition, and add the result to `done`."""
        ingested = self.mender.ingest(heal or source.heal, number, list(changes))
        done.events += ingested.events
        done.troubles += [
            f"{source.name} {stream}: {failure.cause}" for stream, failure in ingested.unhealed.items()
        ]

    def _spool(self, source: Source, item: Item, spool: Spool, done: Rebuilt) -> None:
        """Add an exported item's events and pruning to the spool, or note that the item cannot be read."""
        try:
            span = source.stored(item)
            end = source.end(item) if holds(source.where, item) else None
        except CorruptData as cause:
            done.troubles.append(
                f"{source.name}: the item {head_key(source.name, item)} cannot be read: {cause}"
            )
            return
        if span is not None and is_fed(span.stream):
            spool.add(span)
        if end is not None and end.pruned:
            spool.prune(end.stream, end.pruned)

    def _say(self, source: Source, done: Rebuilt) -> None:
        self.tell(f"{source.name}: {done.streams:,} streams, {done.events:,} events indexed")


def _joined(stream: str, below: int, spans: Iterable[Span], done: Rebuilt) -> Iterator[Span]:
    """Yield a stream's spans without overlaps and pruned events; note the first missing event, and stop."""
    next_index = below
    for span in spans:
        if span.index > next_index:
            done.troubles.append(
                f"{stream}: event {next_index} is not in the export, so it and all later events are left out"
            )
            return
        if span.next > next_index:
            yield span.since(next_index)
            next_index = span.next


def _pruned(_: Gap) -> Steps[Healed]:
    """Heal a gap with nothing: what an export lacks before a stream's first event was pruned."""
    yield from ()
    return Healed()
