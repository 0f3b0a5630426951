"""The indexer: batches of stream records in, one append per partition out.

It answers with the records that must come again: all from the first one of a partition that could not be
written. What comes twice is dropped by the index. A record that can never be indexed is set aside with its
cause, in a stream of its own, and its neighbours go on.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from epochal.codec.bodies import encode
from epochal.errors import CorruptData, EpochalError, InvalidInput
from epochal.index.epochs import STANDARD, EpochLimits
from epochal.index.healing import heal_tips
from epochal.index.ingesting import Indexing, Ingested, Partition
from epochal.index.names import BASES, partition_of, poison_stream
from epochal.index.series import Ids, register
from epochal.layout.tips.batch import batch_of
from epochal.layout.tips.calving import ByCost
from epochal.layout.tips.heads import appended
from epochal.layout.tips.items import StoredEvent
from epochal.layout.tips.once import KeyRecord, append_once
from epochal.model.spans import Span
from epochal.model.times import format_ticks, from_unix_nanoseconds, unix_seconds
from epochal.model.versions import ANY
from epochal.plan.values import Item
from epochal.settings import PARTITIONS
from epochal.store.driver import Driver

SET_ASIDE = "SetAside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One change of an item: its new image, and its place in the table's stream."""

    sequence_number: str
    image: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a batch came to. `failed` are the records to be delivered again, by sequence number."""

    by_partition: dict[int, Ingested]
    failed: tuple[str, ...]
    set_aside: int
    errors: tuple[EpochalError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """Indexes one source into the epochs of its partitions. Keeps what it has read of them between batches.

    Attributes:
        driver: runs requests on both tables.
        source_table: a table of the `tips` layout, where gaps are healed from.
        index_table: where epochs, marks and the series are.
        partitions: how many the source has; recorded on first use, and any other number is refused
            afterwards. limits: when an epoch closes.
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
        batches: dict[int, list[tuple[str, Span]]] = {}
        set_aside = 0
        for record in records:
            try:
                span = appended(record.image)
            except (CorruptData, KeyError, TypeError, ValueError) as cause:
                self._set_aside(record, cause)
                set_aside += 1
                continue
            if span is not None and not span.stream.startswith("$"):
                number = partition_of(span.stream, self.partitions)
                batches.setdefault(number, []).append((record.sequence_number, span))
        return self._ingest_all(batches, set_aside)

    def _ingest_all(self, batches: dict[int, list[tuple[str, Span]]], set_aside: int) -> Report:
        done: dict[int, Ingested] = {}
        failed: list[str] = []
        errors: list[EpochalError] = []
        for number, batch in batches.items():
            try:
                done[number] = self._ingest(number, [span for _, span in batch])
            except EpochalError as error:
                failed += [sequence_number for sequence_number, _ in batch]
                errors.append(error)
        return Report(by_partition=done, failed=tuple(failed), set_aside=set_aside, errors=tuple(errors))

    def _ingest(self, number: int, spans: list[Span]) -> Ingested:
        indexing = Indexing(
            table=self.index_table, heal=heal_tips(self.source_table), ids=self._ids, limits=self.limits
        )
        # What is held counts only while every step of it was carried out: after an error it is read anew.
        partition = self._held.pop(number, None) or Partition(number=number)
        ingested = self.driver.run(indexing.ingest(partition, spans))
        self._held[number] = partition
        return ingested

    def _set_aside(self, record: Record, cause: Exception) -> None:
        """Keep a record that cannot be indexed, once, with what is wrong with it."""
        ids = self._ids()
        stream = poison_stream(BASES["tips"])
        body = {"cause": f"{type(cause).__name__}: {cause}", "image": record.image}
        data = json.dumps(body, default=_readable, separators=(",", ":")).encode()
        batch = batch_of(
            stream,
            [StoredEvent(type=SET_ASIDE, data=encode(data), timestamp=ids.timestamp)],
            etag=ids.etag,
            append_id=hashlib.sha256(record.sequence_number.encode()).digest()[:16],
            keyed=True,
        )
        key = KeyRecord.of(stream, record.sequence_number, unix_seconds(from_unix_nanoseconds(self.now())))
        self.driver.run(append_once(self.index_table, batch, ANY, ByCost(), key))

    def _ids(self) -> Ids:
        timestamp = format_ticks(from_unix_nanoseconds(self.now()))
        return Ids(etag=self.fresh(16).hex(), append_id=self.fresh(16), timestamp=timestamp)


def _readable(value: Any) -> str:
    """Binaries of an image, which JSON has no form for."""
    return value.hex() if isinstance(value, bytes) else repr(value)
