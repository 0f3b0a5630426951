"""Records of idempotency keys, which are stored beside the streams that the keys are for.

Before the first append of events under the key, the record is put with a lower bound: no try is below it. A repeat
reads it back and searches the stream from there for the append id. Unfolds alone leave no trace once replaced, so their
record is written with them, in one transaction, and says that they were written.

    p = `$Idempotency-<32 hex digits of SHA-256 over stream, NUL, key>`   i = 0   n   ttl   (k, etag: unfolds alone)

The record of an append to several streams is written with the append, too, and has the result for each stream.

    p = likewise, over NUL, the names in order, each with a NUL, and the key   i = 0   n = 0   ttl   k   made

The events of a decision depend on the state that was read, so a digest of them would not identify it: the last eight
bytes of a decision's append id are a mark, and the number of its events.

A record that has expired by the caller's clock counts as absent, whether or not DynamoDB has deleted it yet.

This format outlives the code (FORMATS).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, replace
from epochal.plan.conditions import Absent, All, AnyOf, Compare, Condition, equals
from epochal.plan.ops import Done, Put, Steps, TransactGet
from epochal.plan.values import Item, Key, binary, number, text
from epochal.settings import KEY_WINDOW_SECONDS

PREFIX: Final = "$Idempotency-"
"""Prefix of the names of records, which are stored beside the streams of the keys."""


class KeyedWrite(Protocol):
    """A write with the append id and etag that the key's record keeps."""

    @property
    def append_id(self) -> bytes:
        """The append id: the first 8 bytes identify the append, the others its contents."""

    @property
    def etag(self) -> str:
        """The etag that the write leaves on the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """The name of the record of an idempotency key, and the current time in epoch seconds."""

    name: str
    now: int

    @classmethod
    def of(cls, stream: str, key: str, now: int) -> KeyRecord:
        """Name the record of a caller's `key` for `stream`."""
        digest = hashlib.sha256(f"{stream}\0{key}".encode()).hexdigest()[:32]
        return cls(name=f"{PREFIX}{digest}", now=now)

    @classmethod
    def of_all(cls, streams: Iterable[str], key: str, now: int) -> KeyRecord:
        """Name the record of a caller's `key` for several streams together.

        No record of a single stream has the same name.
        """
        return cls.of("\0".join(("", *sorted(streams))), key, now)

    @property
    def free(self) -> Condition:
        """The condition that the key has no record, or an expired one."""
        return AnyOf((Absent("i"), Compare("ttl", "<", number(self.now))))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordContents:
    """The contents of a key's record.

    Attributes:
        first: index below which no append of events was tried; or version at which unfolds alone were written.
        append_id: append id of unfolds alone, or of an append to several streams, that was written under the key.
        etag: etag that unfolds alone left on the head.
        made: encoded results of an append to several streams.
    """

    first: int
    append_id: bytes | None = None
    etag: str | None = None
    made: bytes = b""


def put_record(table: str, record: KeyRecord, version: int) -> Steps[RecordContents | None]:
    """Write a key's record with the bound `version`, unless there is one; return that one, or None.

    Returns:
        The contents of the record that was there already; None if this one was put.
    """
    reply = yield _put(table, record, version, record.free)
    return None if isinstance(reply, Done) or reply.item is None else read_record(reply.item)


def lower_bound(table: str, record: KeyRecord, version: int, seen: RecordContents) -> Steps[RecordContents]:
    """Lower the bound of a key's record to `version` if it is above; return the record's contents."""
    while seen.append_id is None and seen.first > version:
        reply = yield _put(table, record, version, AnyOf((record.free, _as_seen(seen))))
        if isinstance(reply, Done):
            return RecordContents(first=version)
        seen = seen if reply.item is None else read_record(reply.item)
    return seen


def load_record(table: str, record: KeyRecord) -> Steps[RecordContents | None]:
    """Read the record of a key, once no transaction on it is under way; None if there is none."""
    (item,) = (yield TransactGet(keys=((table, _key(record)),))).items
    if item is None or int(item["ttl"]["N"]) < record.now:
        return None
    return read_record(item)


def make_unfolds_record_put(
    table: str, record: KeyRecord, batch: KeyedWrite, version: int, seen: RecordContents | None
) -> Put:
    """Make the conditional put of a key's record that goes with a write of unfolds without events.

    Its condition is that the key is free, or its record still has the contents `seen`.
    """
    condition = record.free if seen is None else AnyOf((record.free, _as_seen(seen)))
    put = _put(table, record, version, condition)
    return replace(put, item={**put.item, "k": binary(batch.append_id), "etag": text(batch.etag)})


def make_record_put(
    table: str, record: KeyRecord, append_id: bytes, contents: bytes, seen: Sequence[RecordContents] = ()
) -> Put:
    """Make the conditional put of a key's record that goes with an append to several streams.

    Its condition is that the key is free, or its record has contents that are among `seen`.

    Args:
        contents: encoded results for the streams.
    """
    put = _put(table, record, 0, AnyOf((record.free, *map(_as_seen, seen))) if seen else record.free)
    return replace(put, item={**put.item, "k": binary(append_id), "made": binary(contents)})


def _key(record: KeyRecord) -> Key:
    return {"p": text(record.name), "i": number(0)}


def _put(table: str, record: KeyRecord, version: int, condition: Condition) -> Put:
    item = {**_key(record), "n": number(version), "ttl": number(record.now + KEY_WINDOW_SECONDS)}
    return Put(table=table, item=item, condition=condition)


def _as_seen(seen: RecordContents) -> Condition:
    return All((Absent("k"), equals("n", number(seen.first))))


def read_record(item: Item) -> RecordContents:
    """Decode the item of a key's record."""
    return RecordContents(
        first=int(item["n"]["N"]),
        append_id=bytes(item["k"]["B"]) if "k" in item else None,
        etag=item["etag"]["S"] if "etag" in item else None,
        made=bytes(item["made"]["B"]) if "made" in item else b"",
    )


def check_contents(record: RecordContents | None, append_id: bytes | None) -> None:
    """Raise `InvalidInput` if a record has an append id, and it is not `append_id`.

    Args:
        append_id: append id of the write; None for a decision, which no such write may have preceded.
    """
    if record is not None and record.append_id not in (None, append_id):
        raise InvalidInput("idempotency_key", "was already used for an append with other contents")
