"""What is stored of a caller's idempotency key beside the append itself: a record of the stream and the key.

Before the first append of events under the key, the record is put with a lower bound: no try stands below it. A
repeat reads it back and searches the stream from there for the append id. Unfolds alone leave no trace once replaced,
so for these the record is written with them, in one transaction, and says that it is done.

    p = `$Idempotency-<32 hex digits of SHA-256 over stream, NUL, key>`   i = 0   n   ttl   (k, etag: unfolds alone)

That of an append to several streams is written with it, too, and says what each of them got.

    p = likewise, over NUL, the names in order, each with a NUL, and the key   i = 0   n = 0   ttl   k   made

What a decision appends depends on the state that it found, so its contents tell nothing: the last eight bytes of its
append id are a mark, and how many events it has.

A record that has expired by the caller's clock counts as absent, whether or not DynamoDB has deleted it yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from epochal.errors import InvalidInput
from epochal.plan.ops import Absent, All, AnyOf, Compare, Condition, Done, Put, Steps, TransactGet, equals
from epochal.plan.values import Item, Key, binary, number, text
from epochal.settings import KEY_WINDOW_SECONDS

PREFIX: Final = "$Idempotency-"
"""Of the names of records, which stand beside the streams that the keys are for."""


class KeyedWrite(Protocol):
    """What a record keeps of a write that it is written with."""

    @property
    def append_id(self) -> bytes:
        """The first 8 bytes tell appends apart, the rest their contents."""

    @property
    def etag(self) -> str:
        """That they leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """Where a key is remembered, and the time (epoch seconds)."""

    name: str
    now: int

    @classmethod
    def of(cls, stream: str, key: str, now: int) -> KeyRecord:
        """The record of a caller's `key` for `stream`."""
        digest = hashlib.sha256(f"{stream}\0{key}".encode()).hexdigest()[:32]
        return cls(name=f"{PREFIX}{digest}", now=now)

    @classmethod
    def of_all(cls, streams: Iterable[str], key: str, now: int) -> KeyRecord:
        """The record of a caller's `key` for these streams together. No stream has a name of one that is."""
        return cls.of("\0".join(("", *sorted(streams))), key, now)

    @property
    def free(self) -> Condition:
        """That the key is not remembered."""
        return AnyOf((Absent("i"), Compare("ttl", "<", number(self.now))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a record says.

    Attributes:
        first: no try of events stands below this index; unfolds alone were written at this version.
        append_id: of unfolds alone that were written under the key, and
        etag: that they left. Or of an append to several streams, and
        made: what each of them got.
    """

    first: int
    append_id: bytes | None = None
    etag: str | None = None
    made: bytes = b""


def remember(table: str, record: KeyRecord, version: int) -> Steps[Remembered | None]:
    """Put the record, so that tries at `version` and above may follow; where there is one already, what it says."""
    reply = yield _put(table, record, version, record.free)
    return None if isinstance(reply, Done) or reply.item is None else read_record(reply.item)


def lower(table: str, record: KeyRecord, version: int, seen: Remembered) -> Steps[Remembered]:
    """Make sure that the record's bound is not above `version`; what it says then."""
    while seen.append_id is None and seen.first > version:
        reply = yield _put(table, record, version, AnyOf((record.free, _as_seen(seen))))
        if isinstance(reply, Done):
            return Remembered(first=version)
        seen = seen if reply.item is None else read_record(reply.item)
    return seen


def recall(table: str, record: KeyRecord) -> Steps[Remembered | None]:
    """What the record says, once no transaction of it is under way; None where there is none."""
    (item,) = (yield TransactGet(keys=((table, _key(record)),))).items
    if item is None or int(item["ttl"]["N"]) < record.now:
        return None
    return read_record(item)


def done_record(
    table: str, record: KeyRecord, batch: KeyedWrite, version: int, seen: Remembered | None
) -> Put:
    """The record that unfolds alone are written with, if the key is free, or its record still is as `seen`."""
    condition = record.free if seen is None else AnyOf((record.free, _as_seen(seen)))
    put = _put(table, record, version, condition)
    return replace(put, item={**put.item, "k": binary(batch.append_id), "etag": text(batch.etag)})


def made_record(table: str, record: KeyRecord, append_id: bytes, made: bytes) -> Put:
    """The record that an append to several streams is written with, if the key is free."""
    put = _put(table, record, 0, record.free)
    return replace(put, item={**put.item, "k": binary(append_id), "made": binary(made)})


def _key(record: KeyRecord) -> Key:
    return {"p": text(record.name), "i": number(0)}


def _put(table: str, record: KeyRecord, version: int, condition: Condition) -> Put:
    item = {
        **_key(record),
        "n": number(version),
        "ttl": number(record.now + KEY_WINDOW_SECONDS),
    }
    return Put(table=table, item=item, condition=condition)


def _as_seen(seen: Remembered) -> Condition:
    return All((Absent("k"), equals("n", number(seen.first))))


def read_record(item: Item) -> Remembered:
    """Decode a record."""
    return Remembered(
        first=int(item["n"]["N"]),
        append_id=bytes(item["k"]["B"]) if "k" in item else None,
        etag=item["etag"]["S"] if "etag" in item else None,
        made=bytes(item["made"]["B"]) if "made" in item else b"",
    )


def check_contents(found: Remembered | None, append_id: bytes) -> None:
    """Raise `InvalidInput` where the record of a write was written with other contents."""
    if found is not None and found.append_id not in (None, append_id):
        raise InvalidInput("idempotency_key", "was used before for other contents")
