"""The indexer: batches of stream records in, one append per partition out. It serves all sources of the feed.

It answers with the records that must come again: all of a partition that could not be written. What comes
twice is dropped by the index. A record that can never be indexed is set aside with its cause, in a stream of
its own, and its neighbours go on; so is a record whose stream has a gap that its corrupt store cannot fill.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from epochal.errors import CorruptData, EpochalError, InvalidInput
from epochal.index.ingestion import Ingested
from epochal.index.series import register
from epochal.index.stored import MAX_KEY_BYTES, mark_name
from epochal.indexer.index_writer import IndexWriter
from epochal.indexer.quarantine import UnreadableRecord, set_aside
from epochal.layout.port import Change, Source, Touched
from epochal.model.names import is_fed
from epochal.plan.values import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One change of an item of `table`: its new image, and its place in the table's stream."""

    table: str
    sequence_number: str
    image: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a batch.

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


@dataclass(slots=True, kw_only=True)
class _Batch:
    """What a batch of records tells of one partition of `source`."""

    source: Source
    changes: list[tuple[Record, Change]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer(IndexWriter):
    """Indexes what stream records tell of sources.

    Attributes:
        sources: those whose records come here.
    """

    sources: tuple[Source, ...]

    def register(self) -> None:
        """Put the sources' numbers of partitions on record, once for each process.

        Raises:
            InvalidInput: the index has another number on record; changing it means a rebuild.
        """
        counts = {source.name: source.partitions for source in self.sources}
        recorded = self.driver.run(register(self.index_table, counts, self.ids()))
        for source in self.sources:
            if recorded[source.name] != source.partitions:
                rule = f"the index has {recorded[source.name]} on record; another number needs a rebuild"
                raise InvalidInput(source.setting, rule)

    def index(self, records: Iterable[Record]) -> Report:
        """Index a batch, in the order of its records.

        Raises:
            InvalidInput: a record is of a table that is no source's.
        """
        outcome = _Outcome()
        batches: dict[int, _Batch] = {}
        for record in records:
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
        return outcome.report()

    def index_now(self, table: str, image: Item) -> Ingested | None:
        """Index one image, and raise what is wrong with it instead of setting it aside. None: it adds nothing.

        Raises:
            CorruptData: it is malformed, or its stream cannot be healed.
        """
        source = self._source(table)
        change = source.appended(image)
        if change is None:
            return None
        ingested = self.ingest(source.heal, _partition(source, change.stream), [change])
        if change.stream in ingested.unhealed:
            raise ingested.unhealed[change.stream].cause
        return ingested

    def _source(self, table: str) -> Source:
        for source in self.sources:
            if source.table == table:
                return source
        raise InvalidInput("table", f"{table!r} is the table of no source of this indexer")

    def _index_partition(self, number: int, batch: _Batch, outcome: _Outcome) -> None:
        try:
            ingested = self.ingest(batch.source.heal, number, [change for _, change in batch.changes])
        except EpochalError as error:
            outcome.fail((record for record, _ in batch.changes), error)
            return
        outcome.by_partition[number] = ingested
        for record, change in batch.changes:
            unhealed = ingested.unhealed.get(change.stream)
            if unhealed is not None and (isinstance(change, Touched) or change.next > unhealed.index):
                self._set_aside(batch.source, record, unhealed.cause, outcome)

    def _set_aside(self, source: Source, record: Record, cause: Exception, outcome: _Outcome) -> None:
        poison = UnreadableRecord(
            source=source.name, sequence_number=record.sequence_number, image=record.image, cause=cause
        )
        steps = set_aside(self.index_table, poison, self.ids())
        try:
            outcome.set_aside += self.driver.run(steps)
        except EpochalError as error:
            outcome.fail([record], error)


def _partition(source: Source, stream: str) -> int:
    number = source.partition_of(stream)
    if len(mark_name(number, stream).encode()) > MAX_KEY_BYTES:
        raise CorruptData("the name of the stream is so long that it could have no mark")
    return number
