"""Keys of subjects: an item each, with the data key wrapped by KMS, or a tombstone (FORMATS §7).

    none          the first who seals puts a key there, if there is none
    key           everybody seals and unseals with it
    tombstone     the subject is forgotten, for ever: nobody puts a key there again

The table has no point-in-time recovery, no stream of more than names, and belongs in no backup: what brings a key back
brings back all that was sealed with it. A second table, the forget log, may hold the tombstones alone: it has nothing
to hide, may be backed up, and says who is forgotten whatever becomes of the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from epochal.lazy_dataclasses import dataclass
from epochal.plan.conditions import Absent
from epochal.plan.ops import Done, Get, Put, Steps
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.plan.values import Item, Key, number, text

SUBJECT_KEYS: Final = TableSpec(kind="subject-keys", partition=KeyAttribute(name="pk", type="S"))
"""Kind of table with the data key of each subject, encrypted under a KMS key."""

FORGET_LOG: Final = TableSpec(kind="forget-log", partition=SUBJECT_KEYS.partition)
"""Kind of table with one tombstone for each subject that was forgotten."""


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A subject's data key, encrypted by KMS."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Tombstone: the subject's key has been destroyed, at this timestamp."""

    timestamp: str


SubjectState = Wrapped | Forgotten


def look_up(table: str, subject: str) -> Steps[SubjectState | None]:
    """Read a subject's key or tombstone, strongly consistent; None if the subject never had a key."""
    reply = yield Get(table=table, key=_key(subject))
    return None if reply.item is None else _read(reply.item)


def install(table: str, subject: str, wrapped: Wrapped, timestamp: str) -> Steps[SubjectState]:
    """Store a subject's key unless it has a key or tombstone; return what the table has then."""
    item = {**_key(subject), "k": {"B": wrapped.key}, "t": text(timestamp)}
    reply = yield Put(table=table, item=item, condition=Absent("pk"))
    if isinstance(reply, Done):
        return wrapped
    # The existing item may be our own, put by an attempt whose response was lost.
    return _read(reply.item)


def destroy(table: str, subject: str, timestamp: str) -> Steps[None]:
    """Replace a subject's key, if there is one, by a tombstone."""
    yield Put(table=table, item={**_key(subject), "z": number(1), "t": text(timestamp)})


def forgotten(items: Iterable[Item]) -> dict[str, Forgotten]:
    """Return the tombstones among items of a table, by their subjects."""
    states = {item["pk"]["S"]: _read(item) for item in items}
    return {name: state for name, state in states.items() if isinstance(state, Forgotten)}


def _read(item: Item) -> SubjectState:
    """Return the key or the tombstone that an item holds."""
    return Forgotten(item["t"]["S"]) if "z" in item else Wrapped(item["k"]["B"])


def _key(subject: str) -> Key:
    """Return the key of a subject's item."""
    return {"pk": text(subject)}
