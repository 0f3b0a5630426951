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
from epochal.feed.indexer import SET_ASIDE, Indexer, read_value
from epochal.index.checkpoints import poison_stream
from epochal.index.ingestion import Ingested
from epochal.index.tip import read_all
from epochal.index.tip_append import append, batch_of
from epochal.layout.port import Source, head_key
from epochal.layout.streams import EncodedEvent
from epochal.lazy_dataclasses import dataclass, replace
from epochal.plan.ops import Get
from epochal.plan.values import Item, Key

RESOLVED: Final = "Resolved"

Outcome = Literal["retried", "discarded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonRecord:
    """A record that was set aside.

    Attributes:
        source: of the feed.
        index: which of the source's, from 0.
        since: when it was set aside, ISO 8601.
        image: of the head; of one too large to be kept only its keys.
        omitted: bytes of the image, where only its keys were kept.
        outcome: what became of it; None while it waits.
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
    """What the sources of an indexer have had set aside."""

    indexer: Indexer

    def waiting(self) -> Iterator[PoisonRecord]:
        """Records that nothing has been done about, source by source, oldest first."""
        return (record for record in self.all() if record.outcome is None)

    def all(self) -> Iterator[PoisonRecord]:
        """Every record ever set aside, source by source, oldest first."""
        for source in self.indexer.sources:
            yield from self._of(source).values()

    def retry(self, source: str, index: int) -> Ingested:
        """Index what the head tells now, or else what it told then, and record the outcome.

        Raises:
            InvalidInput: there is no such record, or it is no longer waiting.
            CorruptData: it is as wrong as before, and still waits.
        """
        of, record = self._waiting(source, index)
        ingested = self._as_it_is_now(of, record)
        if ingested is None and record.omitted is None:
            ingested = self.indexer.index_now(of.table, record.image)
        if ingested is None:
            raise CorruptData(f"neither the head of {record.key} nor what was kept of it tells of any event")
        self._resolve(of, index, "retried")
        return ingested

    def discard(self, source: str, index: int) -> None:
        """Give a record up.

        Raises:
            InvalidInput: there is no such record, or it is no longer waiting.
        """
        of, _ = self._waiting(source, index)
        self._resolve(of, index, "discarded")

    def _as_it_is_now(self, source: Source, record: PoisonRecord) -> Ingested | None:
        found = self.indexer.driver.ask(Get(table=source.table, key=record.key)).item
        return None if found is None else self.indexer.index_now(source.table, found)

    def _waiting(self, name: str, index: int) -> tuple[Source, PoisonRecord]:
        for source in self.indexer.sources:
            if source.name == name:
                record = self._of(source).get(index)
                if record is None or record.outcome is not None:
                    raise InvalidInput("index", f"no record {index} of {name} is waiting")
                return source, record
        raise InvalidInput("source", f"{name!r} is none of this index")

    def _of(self, source: Source) -> dict[int, PoisonRecord]:
        """A source's records, by index."""
        table, stream = self.indexer.index_table, poison_stream(source.base)
        found: dict[int, PoisonRecord] = {}
        for index, event in enumerate(self.indexer.driver.run(read_all(table, stream))):
            if event.type == SET_ASIDE:
                found[index] = _read(source.name, index, event)
            elif event.type == RESOLVED:
                fields = _fields(event)
                found[fields["index"]] = replace(found[fields["index"]], outcome=_outcome(fields["outcome"]))
        return found

    def _resolve(self, source: Source, index: int, outcome: Outcome) -> None:
        ids = self.indexer.ids()
        body = json.dumps({"index": index, "outcome": outcome}, separators=(",", ":")).encode()
        event = EncodedEvent(type=RESOLVED, data=encode(body), timestamp=ids.timestamp)
        batch = batch_of(poison_stream(source.base), (event,), etag=ids.etag, append_id=ids.append_id)
        self.indexer.driver.run(append(self.indexer.index_table, batch))


def _read(source: str, index: int, event: EncodedEvent) -> PoisonRecord:
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
    for outcome in get_args(Outcome):
        if outcome == text:
            found: Outcome = outcome
            return found
    raise CorruptData(f"a record of poison was {text!r}, of which this version knows nothing")
