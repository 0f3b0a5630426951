"""The indexer: takes batches of stream records, and appends each partition's changes to the index at once.

It answers with the records that must be delivered again: all records of a partition that could not be written. The
index drops a record that comes twice, and reactions are notified of it again: the process that wrote it may have died
before it notified them. A record that can never be indexed is set aside with its cause, in a stream of its own, and
other records are indexed; so is a record whose stream has a gap that its corrupt store cannot fill.

A deployment has a source for each layout whose table of heads its settings name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from epochal.errors import CorruptData, EpochalError, InvalidInput
from epochal.feed.append_order import in_append_order
from epochal.feed.index_writer import IndexWriter
from epochal.feed.stream_records import Record
from epochal.feed.unreadable_records import UnreadableRecord, set_aside
from epochal.index.checkpoints import MAX_KEY_BYTES, mark_name
from epochal.index.ingestion import Ingested
from epochal.index.series import register
from epochal.layout.changes import Change, Span, Touched
from epochal.layout.registry import layouts_in
from epochal.layout.source import Source
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.moments import Ticks
from epochal.model.stream_names import is_fed
from epochal.plan.values import Item
from epochal.settings import Settings
from epochal.store.driver import Driver


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of indexing a batch.

    Attributes:
        by_partition: result of each partition that could be indexed.
        failed: sequence numbers of the records to be delivered again.
        set_aside: number of records set aside now, not counting those that had been before.
        notified: number of partitions of which reactions were notified.
        notice_error: error that prevented the notification.
        errors: why records failed.
        failing: for each source, the sequence number of the first record that failed, and the cause.
        rested: seconds of the rest after the batch; 0 if its partitions are not crowded.
    """

    by_partition: dict[int, Ingested]
    failed: tuple[str, ...]
    set_aside: int
    notified: int = 0
    notice_error: Exception | None = None
    errors: tuple[EpochalError, ...] = ()
    failing: Mapping[str, tuple[str, EpochalError]] = field(default_factory=dict)
    rested: float = 0.0


@dataclass(slots=True)
class _Outcome:
    """Collects the results of a batch for its report."""

    by_partition: dict[int, Ingested] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    set_aside: int = 0
    notified: int = 0
    notice_error: Exception | None = None
    errors: list[EpochalError] = field(default_factory=list)
    failing: dict[str, tuple[str, EpochalError]] = field(default_factory=dict)
    rested: float = 0.0

    def fail(self, source: Source, records: Iterable[Record], error: EpochalError) -> None:
        """Note that records of a source failed, and why."""
        numbers = [record.sequence_number for record in records]
        self.failed += numbers
        self.errors.append(error)
        self.failing.setdefault(source.name, (numbers[0], error))

    def report(self) -> Report:
        """Build the report."""
        return Report(
            by_partition=self.by_partition,
            failed=tuple(self.failed),
            set_aside=self.set_aside,
            notified=self.notified,
            notice_error=self.notice_error,
            errors=tuple(self.errors),
            failing=self.failing,
            rested=self.rested,
        )


@dataclass(slots=True, kw_only=True)
class _Batch:
    """The changes of one partition in a batch of records."""

    source: Source
    changes: list[tuple[Record, Change]] = field(default_factory=list)

    def ordered(self) -> list[tuple[Change, Record]]:
        """Return the changes with their records, those of one append in the order of its events."""
        changes = [(record.image, change, record) for record, change in self.changes]
        return in_append_order(self.source, changes)

    def times(self) -> dict[tuple[str, int], Ticks]:
        """Return the times of the appends in the batch, by stream and next index."""
        appends = (
            (change, self.source.written(record.image))
            for change, record in self.ordered()
            if isinstance(change, Span)
        )
        return {(change.stream, change.next): time for change, time in appends if time is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer(IndexWriter):
    """Indexes the changes that stream records report.

    Attributes:
        sources: sources whose records come here.
    """

    sources: tuple[Source, ...]

    def register(self) -> None:
        """Record each source's number of partitions; raise `InvalidInput` if the index has another on record.

        A process calls it once.

        Raises:
            InvalidInput: the index has another number on record; changing it means a rebuild.
        """
        counts = {source.name: source.partitions for source in self.sources}
        recorded = self.driver.run(register(self.index_table, counts, self.ids()))
        for source in self.sources:
            if recorded[source.name] != source.partitions:
                rule = f"must be {recorded[source.name]}, as recorded in the index; rebuild the index to change it"
                raise InvalidInput(source.setting, rule)

    def index(self, records: Iterable[Record], seconds: float = math.inf) -> Report:
        """Index a batch, set unreadable records aside, notify reactions; report which must be delivered again.

        Records are indexed in order. If other indexers write to the same partitions too often, it returns after a rest
        (`epochal.index.crowding`).

        Args:
            records: changes of heads, in their order.
            seconds: time until the process is ended. A rest takes at most half of what the batch has left of it.

        Raises:
            InvalidInput: a record is of a table that is no source's.
        """
        deadline = self.driver.clock() + seconds
        outcome = _Outcome()
        batches: dict[int, _Batch] = {}
        batch_records = list(records)
        for record in batch_records:
            source = self._source(record.table)
            try:
                change = source.appended(record.image)
                if change is None or not is_fed(change.stream):
                    continue
                number = _partition(source, change.stream)
            except CorruptData as cause:
                self._set_aside(source, record, cause, outcome)
            else:
                batches.setdefault(number, _Batch(source=source)).changes.append((record, change))
        for number, batch in batches.items():
            self._index_partition(number, batch, outcome)
        self._notify(batch_records, outcome)
        if not outcome.failed:
            outcome.rested = self.rest(outcome.by_partition, deadline)
        return outcome.report()

    def _notify(self, records: Iterable[Record], outcome: _Outcome) -> None:
        """Notify reactions; if that fails, have the records delivered again if they added anything.

        When they come again they add nothing new, so they are not failed a second time: the index does not wait for a
        topic that is unavailable.
        """
        try:
            outcome.notified = self.notify()
        except Exception as error:  # noqa: BLE001  # whatever a client raises, the index is written
            outcome.notice_error = error
            if any(ingested.events or ingested.removals for ingested in outcome.by_partition.values()):
                outcome.failed = [record.sequence_number for record in records]

    def index_now(self, table: str, image: Item) -> Ingested | None:
        """Index the change that an image shows; return the result, or None if it shows none; raise errors.

        Nothing is set aside.

        Raises:
            CorruptData: it is malformed, or its stream cannot be healed.
        """
        source = self._source(table)
        change = source.appended(image)
        if change is None or not is_fed(change.stream):
            return None
        ingested = self.ingest(source.heal, _partition(source, change.stream), [change])
        if change.stream in ingested.unhealed:
            raise ingested.unhealed[change.stream].cause
        return ingested

    def _source(self, table: str) -> Source:
        """Return the source of a table; raise `InvalidInput` if it is none of this indexer's."""
        for source in self.sources:
            if source.table == table:
                return source
        raise InvalidInput("table", f"{table!r} does not belong to any source of this indexer")

    def _index_partition(self, number: int, batch: _Batch, outcome: _Outcome) -> None:
        """Index one partition's changes; note its records as failed, or set aside those that cannot be healed."""
        try:
            changes = [change for change, _ in batch.ordered()]
            ingested = self.ingest(batch.source.heal, number, changes, batch.times)
        except EpochalError as error:
            outcome.fail(batch.source, (record for record, _ in batch.changes), error)
            return
        outcome.by_partition[number] = ingested
        for record, change in batch.changes:
            unhealed = ingested.unhealed.get(change.stream)
            if unhealed is not None and (isinstance(change, Touched) or change.next > unhealed.index):
                self._set_aside(batch.source, record, unhealed.cause, outcome)

    def _set_aside(self, source: Source, record: Record, cause: Exception, outcome: _Outcome) -> None:
        """Store a record that cannot be indexed; if even that fails, have it delivered again."""
        poison = UnreadableRecord(
            source=source.name,
            sequence_number=record.change or record.sequence_number,
            image=record.image,
            cause=cause,
        )
        steps = set_aside(self.index_table, poison, self.ids())
        try:
            outcome.set_aside += self.driver.run(steps)
        except EpochalError as error:
            outcome.fail(source, [record], error)


def _partition(source: Source, stream: str) -> int:
    """Return a stream's partition; raise `CorruptData` if its name is too long for a mark."""
    number = source.partition_of(stream)
    if len(mark_name(number, stream).encode()) > MAX_KEY_BYTES:
        raise CorruptData("the name of the stream is too long for the key of an index mark")
    return number


def sources_of(settings: Settings) -> tuple[Source, ...]:
    """Return the source of each layout of a deployment."""
    return tuple(layout.port.source(settings) for layout in layouts_in(settings))


def indexer_of(settings: Settings, driver: Driver) -> Indexer:
    """Build the indexer of a deployment."""
    return Indexer(driver=driver, index_table=settings.index_table, sources=sources_of(settings))
