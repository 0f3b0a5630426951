"""Plans the transaction of an append: head, events, a kept copy of the snapshot, and the record of a key.

The head is written under its version, and an event only if there is none of its number.
"""

from __future__ import annotations

import hashlib

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import (
    HEAD,
    NO_TTL,
    JournalEvent,
    JournalSite,
    payload_of,
    write_copy,
    write_event,
    write_made_with,
)
from epochal.contrib.event_store_adapter.model import Lock
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, replace
from epochal.plan import conditions, ops
from epochal.plan.values import AttributeValue, binary, number, sequence, text
from epochal.settings import KEY_WINDOW_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A caller's idempotency key, as a record in the snapshot table, put in the append's transaction.

    Attributes:
        name: name of the record, both halves of its primary key.
        contents: digest of what is appended, which tells a repeat from a key used twice.
        now: current time in epoch seconds. A record that has expired by then counts as absent.
    """

    name: str
    contents: bytes
    now: int

    @classmethod
    def of(cls, aggregate: AggregateId, key: str, contents: bytes, now: int) -> IdempotencyKey:
        """Make the record of a caller's key for an aggregate; its name is a hash of both."""
        digest = hashlib.sha256(f"{aggregate}\0{key}".encode()).hexdigest()[:32]
        return cls(name=f"$Idempotency-{digest}", contents=contents, now=now)

    @property
    def primary(self) -> dict[str, AttributeValue]:
        """The record's primary key.

        It has no `aid` and no `seq_nr`, so that no index has the record.
        """
        return {"pkey": text(self.name), "skey": text(self.name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateBatch:
    """One append to an aggregate: its events and snapshot, before they get numbers.

    Attributes:
        aggregate: id of the aggregate.
        events: events to append, at least one, in order; numbered when the head is known.
        payload: payload of the state with these events folded in; None keeps the snapshot as it is.
        append_id: 16 random bytes, the same over all tries.
        now: current time in epoch milliseconds.
        made_with: class and version that the payload was made with; empty if unknown.
        keep_copy: whether to keep a copy of the new snapshot under its number.
        key: idempotency key under which the append is made once; None for none.
    """

    aggregate: AggregateId
    events: tuple[JournalEvent, ...]
    payload: bytes | None
    append_id: bytes
    now: int
    made_with: str = ""
    keep_copy: bool = False
    key: IdempotencyKey | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the events, in order."""
        return tuple(event.event_type or "" for event in self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """State of an aggregate that an append builds on: version and last event number.

    Attributes:
        lock: lock of the head; None for an aggregate's first append.
        looked_up: whether another library wrote last, and the last number was looked up in the journal: then only the
            version can be a condition, and it is unknown which events the payload has folded in.
    """

    lock: Lock | None = None
    looked_up: bool = False

    @property
    def first(self) -> int:
        """Number of the next event."""
        return 1 if self.lock is None else self.lock.seq_nr + 1


def lock_after(batch: AggregateBatch, base: Base) -> Lock:
    """Return the lock that an append leaves: the next version, and the number of its last event."""
    version = 1 if base.lock is None else base.lock.version + 1
    return Lock(version=version, seq_nr=base.first + len(batch.events) - 1)


def unchanged(base: Base) -> conditions.Condition:
    """Return the condition that the head is still the one that an append builds on."""
    if base.lock is None:
        return conditions.Absent("pkey")
    version = conditions.equals("version", number(base.lock.version))
    if base.looked_up:
        return version
    ours = conditions.equals("head_version", number(base.lock.version))
    return conditions.All((version, ours, conditions.equals("last_seq_nr", number(base.lock.seq_nr))))


def transaction(site: JournalSite, batch: AggregateBatch, base: Base) -> ops.Transact:
    """Make the transaction of an append: the head first, then events, kept copy and key record last.

    The copy is part of it if one is wanted, the record if there is a key.

    Raises:
        InvalidInput: an aggregate's first append comes without a snapshot.
    """
    after = lock_after(batch, base)
    writes: list[ops.Put | ops.Update] = [_head(site, batch, base, after)]
    for offset, event in enumerate(batch.events):
        numbered = replace(
            event, seq_nr=base.first + offset, append_id=batch.append_id if offset == 0 else None
        )
        item = write_event(site.keys, batch.aggregate, numbered, as_text=site.serializer.text)
        writes.append(ops.Put(table=site.journal, item=item, condition=conditions.Absent("pkey")))
    if batch.keep_copy and batch.payload is not None:
        payload = payload_of(batch.payload, as_text=site.serializer.text)
        copy = write_copy(site.keys, batch.aggregate, after, payload, batch.now)
        writes.append(ops.Put(table=site.snapshot, item=copy))
    if batch.key is not None:
        writes.append(_key_record(site, batch, batch.key, base.first, after))
    return ops.Transact(writes=tuple(writes))


def _key_record(
    site: JournalSite, batch: AggregateBatch, key: IdempotencyKey, first: int, after: Lock
) -> ops.Put:
    """Return the write of an idempotency key's record, on condition that none is there or it expired."""
    item = {
        **key.primary,
        "contents": binary(key.contents),
        "append_id": binary(batch.append_id),
        "first_seq_nr": number(first),
        "last_seq_nr": number(after.seq_nr),
        "version": number(after.version),
        "ttl": number(key.now + KEY_WINDOW_SECONDS),
    }
    free = conditions.AnyOf((conditions.Absent("pkey"), conditions.Compare("ttl", "<", number(key.now))))
    return ops.Put(table=site.snapshot, item=item, condition=free)


def _head(site: JournalSite, batch: AggregateBatch, base: Base, after: Lock) -> ops.Put | ops.Update:
    """Return the write of the head: version, last number, event types, and the payload if there is one.

    It is put for an aggregate's first append, and updated under its version later.
    """
    ours = {
        "version": number(after.version),
        "last_updated_at": number(batch.now),
        "last_seq_nr": number(after.seq_nr),
        "last_event_types": sequence(map(text, batch.types)),
        "head_version": number(after.version),
        "append_id": binary(batch.append_id),
    }
    if batch.payload is not None:
        payload = payload_of(batch.payload, as_text=site.serializer.text)
        ours |= {"payload": payload, "payload_seq_nr": number(after.seq_nr)}
        if batch.made_with:
            ours["payload_made_with"] = write_made_with(after.seq_nr, batch.made_with)
    if base.lock is None:
        return _first_head(site, batch, ours)
    return ops.Update(
        table=site.snapshot,
        key=site.keys.key(batch.aggregate, HEAD),
        sets=tuple(ops.Set(name, value) for name, value in ours.items()),
        removes=("payload_seq_nr",) if base.looked_up and batch.payload is None else (),
        condition=unchanged(base),
    )


def _first_head(site: JournalSite, batch: AggregateBatch, ours: dict[str, AttributeValue]) -> ops.Put:
    """Return the put of a new aggregate's head; raise `InvalidInput` if there is no snapshot."""
    if batch.payload is None:
        raise InvalidInput("snapshot", "is required with the first event of an aggregate")
    item = {
        **site.keys.key(batch.aggregate, HEAD),
        "aid": text(str(batch.aggregate)),
        "seq_nr": number(HEAD),
        "ttl": number(NO_TTL),
        **ours,
    }
    return ops.Put(table=site.snapshot, item=item, condition=unchanged(Base()))
