"""Records in quarantine: they can be listed with their causes, retried once these are mended, or given up.

    waiting      set aside by the indexer, and nothing done about it
    retried      indexed since, by request
    discarded    given up: its events come with the next append to its stream, if that can be healed, or never

Nothing is deleted: what became of a record is an event of the same stream, so that it can be told afterwards.
This outlives the code: FORMATS §4.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, Literal, get_args

from epochal.codec.bodies import decode_inline, encode
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.indexer import Indexer
from epochal.feed.stream_records import read_value
from epochal.feed.unreadable_records import SET_ASIDE
from epochal.index.checkpoints import poison_stream
from epochal.index.ingestion import Ingested
from epochal.index.tip import read_all
from epochal.index.tip_append import append
from epochal.index.wire_batch import batch_of
from epochal.layout.registry import head_key
from epochal.layout.source import Source
from epochal.layout.streams import EncodedEvent
from epochal.lazy_dataclasses import dataclass, replace
from epochal.plan.ops import Get
from epochal.plan.values import Item, Key

RESOLVED: Final = "Resolved"

Outcome = Literal["retried", "discarded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonRecord:
    """A stream record that the indexer could not index, and set aside.

    Attributes:
        source: name of the feed's source.
        index: number of the record among those of its source, from 0.
        since: when the indexer set it aside, ISO 8601.
        cause: why the indexer could not index it.
        image: the head as it was then; its keys alone, where it was too large to be kept.
        omitted: size of the image in bytes, where only its keys were kept; else None.
        outcome: what became of the record; None while it waits.
    """

    source: str
    index: int
    since: str
    cause: str
    image: Item
    omitted: int | None = None
    outcome: Outcome | None = None

    @property
    def key(self) -> Key:
        """Primary key of the head."""
        return head_key(self.source, self.image)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonRecords:
    """Lists, retries and discards the stream records that an indexer has set aside."""

    indexer: Indexer

    def waiting(self) -> Iterator[PoisonRecord]:
        """Yield the records that wait for a retry or to be discarded, source by source, oldest first."""
        return (record for record in self.all() if record.outcome is None)

    def all(self) -> Iterator[PoisonRecord]:
        """Yield every record that was ever set aside, source by source, oldest first."""
        for source in self.indexer.sources:
            yield from self._of(source).values()

    def retry(self, source: str, index: int) -> Ingested:
        """Index a poison record again, from its head as it is now or else as it was kept; note the outcome.

        Raises:
            InvalidInput: there is no such record, or it is no longer waiting.
            CorruptData: it is as wrong as before, and still waits.
        """
        events_source, record = self._waiting(source, index)
        ingested = self._as_it_is_now(events_source, record)
        if ingested is None and record.omitted is None:
            ingested = self.indexer.index_now(events_source.table, record.image)
        if ingested is None:
            raise CorruptData(
                f"neither the current head of {record.key} nor the stored copy contains an event for the feed"
            )
        self._resolve(events_source, index, "retried")
        return ingested

    def discard(self, source: str, index: int) -> None:
        """Give up a record: note that it is not going to be indexed.

        Raises:
            InvalidInput: there is no such record, or it is no longer waiting.
        """
        events_source, _ = self._waiting(source, index)
        self._resolve(events_source, index, "discarded")

    def _as_it_is_now(self, source: Source, record: PoisonRecord) -> Ingested | None:
        """Index a record's head as it is now; None where the head is gone."""
        image = self.indexer.driver.ask(Get(table=source.table, key=record.key)).item
        return None if image is None else self.indexer.index_now(source.table, image)

    def _waiting(self, name: str, index: int) -> tuple[Source, PoisonRecord]:
        """Return a poison record and its source; raise if it is not there, or was retried or discarded."""
        for source in self.indexer.sources:
            if source.name == name:
                record = self._of(source).get(index)
                if record is None or record.outcome is not None:
                    raise InvalidInput("index", f"no record {index} of {name} is waiting")
                return source, record
        raise InvalidInput("source", f"{name!r} is not a source of this index")

    def _of(self, source: Source) -> dict[int, PoisonRecord]:
        """Read the records of a source, by index, each with its outcome."""
        table, stream = self.indexer.index_table, poison_stream(source.base)
        records: dict[int, PoisonRecord] = {}
        for index, event in enumerate(self.indexer.driver.run(read_all(table, stream))):
            if event.type == SET_ASIDE:
                records[index] = _read(source.name, index, event)
            elif event.type == RESOLVED:
                fields = _fields(event)
                records[fields["index"]] = replace(
                    records[fields["index"]], outcome=_outcome(fields["outcome"])
                )
        return records

    def _resolve(self, source: Source, index: int, outcome: Outcome) -> None:
        """Append the outcome of a record to the stream of records that were set aside."""
        ids = self.indexer.ids()
        body = json.dumps({"index": index, "outcome": outcome}, separators=(",", ":")).encode()
        event = EncodedEvent(type=RESOLVED, data=encode(body), timestamp=ids.timestamp)
        batch = batch_of(poison_stream(source.base), (event,), etag=ids.etag, append_id=ids.append_id)
        self.indexer.driver.run(append(self.indexer.index_table, batch))


def _read(source: str, index: int, event: EncodedEvent) -> PoisonRecord:
    """Read a poison record from the event that set it aside."""
    fields = _fields(event)
    return PoisonRecord(
        source=source,
        index=index,
        since=event.timestamp,
        cause=fields["cause"],
        image={name: read_value(value, bytes.fromhex) for name, value in fields["image"].items()},
        omitted=fields.get("omitted"),
    )


def _fields(event: EncodedEvent) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(decode_inline(event.data))
    return fields


def _outcome(text: str) -> Outcome:
    """Return a stored outcome; raise `CorruptData` if this version does not know it."""
    for outcome in get_args(Outcome):
        if outcome == text:
            result: Outcome = outcome
            return result
    raise CorruptData(f"a poison record has the unknown outcome {text!r}")
