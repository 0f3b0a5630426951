"""The indexer: batches of stream records in, one append per partition out.

It answers with the records that must come again: all of a partition that could not be written. What comes
twice is dropped by the index. A record that can never be indexed is set aside with its cause, in a stream of
its own, and its neighbours go on; so is a record whose stream has a gap that its corrupt store cannot fill.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from epochal.errors import CorruptData, EpochalError, InvalidInput
from epochal.feed.aside import set_aside
from epochal.index.epochs import STANDARD, EpochLimits
from epochal.index.healing import heal_tips
from epochal.index.ingesting import Indexing, Ingested, Partition
from epochal.index.names import MAX_KEY_BYTES, mark_name, partition_of
from epochal.index.series import Ids, register
from epochal.layout.tips.heads import appended
from epochal.model.spans import Span
from epochal.model.times import format_ticks, from_unix_nanoseconds
from epochal.plan.values import Item
from epochal.settings import PARTITIONS
from epochal.store.driver import Driver


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One change of an item: its new image, and its place in the table's stream."""

    sequence_number: str
    image: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a batch came to.

    Attributes:
        by_partition: what was indexed, of partitions that could be.
        failed: the records to be delivered again, by sequence number.
        set_aside: records set aside now, not counting those that had been before.
        errors: why records failed.
    """

    by_partition: dict[int, Ingested]
    failed: tuple[str, ...]
    set_aside: int
    errors: tuple[EpochalError, ...] = ()


@dataclass(slots=True)
class _Outcome:
    """A report in the making."""

    by_partition: dict[int, Ingested] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    set_aside: int = 0
    errors: list[EpochalError] = field(default_factory=list)

    def fail(self, records: Iterable[Record], error: EpochalError) -> None:
        self.failed += [record.sequence_number for record in records]
        self.errors.append(error)

    def report(self) -> Report:
        return Report(
            by_partition=self.by_partition,
            failed=tuple(self.failed),
            set_aside=self.set_aside,
            errors=tuple(self.errors),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """Indexes one source into the epochs of its partitions. Keeps what it has read of them between batches.

    Attributes:
        driver: runs requests on both tables.
        source_table: a table of the `tips` layout, where gaps are healed from.
        index_table: where epochs, marks and the series are.
        partitions: how many the source has; recorded on first use, and any other number is refused
            afterwards.
        limits: when an epoch closes.
    """

    driver: Driver
    source_table: str
    index_table: str
    partitions: int = 1
    limits: EpochLimits = STANDARD
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom
    _held: dict[int, Partition] = field(default_factory=dict)

    def register(self) -> None:
        """Put the number of partitions on record, once for each process.

        Raises:
            InvalidInput: the index has another number on record; changing it means a rebuild.
        """
        recorded = self.driver.run(register(self.index_table, "tips", self.partitions, self._ids()))
        if recorded != self.partitions:
            raise InvalidInput(
                PARTITIONS, f"the index has {recorded} on record; another number needs a rebuild"
            )

    def index(self, records: Iterable[Record]) -> Report:
        """Index a batch, in the order of its records."""
        outcome = _Outcome()
        batches: dict[int, list[tuple[Record, Span]]] = {}
        for record in records:
            try:
                placed = self._place(record.image)
            except (CorruptData, KeyError, TypeError, ValueError) as cause:
                self._set_aside(record, cause, outcome)
                continue
            if placed is not None:
                partition, span = placed
                batches.setdefault(partition, []).append((record, span))
        for number, batch in batches.items():
            self._index_partition(number, batch, outcome)
        return outcome.report()

    def _place(self, image: Item) -> tuple[int, Span] | None:
        """What an image adds to the feed, and in which partition; None where it adds nothing."""
        span = appended(image)
        if span is None or span.stream.startswith("$"):
            return None
        number = partition_of(span.stream, self.partitions)
        if len(mark_name(number, span.stream).encode()) > MAX_KEY_BYTES:
            raise CorruptData("the name of the stream is so long that it could have no mark")
        return number, span

    def _index_partition(self, number: int, batch: list[tuple[Record, Span]], outcome: _Outcome) -> None:
        try:
            ingested = self._ingest(number, [span for _, span in batch])
        except EpochalError as error:
            outcome.fail((record for record, _ in batch), error)
            return
        outcome.by_partition[number] = ingested
        for record, span in batch:
            unhealed = ingested.unhealed.get(span.stream)
            if unhealed is not None and span.next > unhealed.index:
                self._set_aside(record, unhealed.cause, outcome)

    def _ingest(self, number: int, spans: list[Span]) -> Ingested:
        indexing = Indexing(
            table=self.index_table, heal=heal_tips(self.source_table), ids=self._ids, limits=self.limits
        )
        # What is held counts only while every step of it was carried out: after an error it is read anew.
        partition = self._held.pop(number, None) or Partition(number=number)
        ingested = self.driver.run(indexing.ingest(partition, spans))
        self._held[number] = partition
        return ingested

    def _set_aside(self, record: Record, cause: Exception, outcome: _Outcome) -> None:
        steps = set_aside(self.index_table, record.sequence_number, record.image, cause, self._ids())
        try:
            outcome.set_aside += self.driver.run(steps)
        except EpochalError as error:
            outcome.fail([record], error)

    def _ids(self) -> Ids:
        timestamp = format_ticks(from_unix_nanoseconds(self.now()))
        return Ids(etag=self.fresh(16).hex(), append_id=self.fresh(16), timestamp=timestamp)
