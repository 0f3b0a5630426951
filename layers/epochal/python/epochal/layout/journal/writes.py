"""The transaction of an append, as a plan. Pure arithmetic on FORMATS §2."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from epochal.codec.payloads import JAVASCRIPT, Serializer, serializer_of
from epochal.errors import InvalidInput
from epochal.layout.journal.items import NO_TTL, JournalEvent, payload_of, write_copy, write_event
from epochal.layout.journal.keys import HEAD, KeyResolver, hash_of
from epochal.model.aggregates import UNDECLARED, AggregateId, AggregateTypes, Lock
from epochal.plan.conditions import Absent, All, AnyOf, Compare, Condition, equals
from epochal.plan.ops import Put, Set, Transact, Update
from epochal.plan.values import AttributeValue, binary, number, sequence, text
from epochal.settings import KEY_WINDOW_SECONDS, Settings, variable


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSite:
    """Where aggregates are, and how what is there is read. All of it belongs together, and to the tables.

    Attributes:
        keys: how keys are made.
        types: those declared; ids are read by them.
        serializer: how payloads hold types and data.
    """

    journal: str
    snapshot: str
    keys: KeyResolver
    types: AggregateTypes = UNDECLARED
    serializer: Serializer = JAVASCRIPT


def site_of(settings: Settings) -> JournalSite:
    """The tables of a deployment."""
    return JournalSite(
        journal=settings.table("journal"),
        snapshot=settings.table("snapshot"),
        keys=KeyResolver(
            shards=settings.journal_shards, hash=hash_of(settings.journal_keys, variable("journal_keys"))
        ),
        types=AggregateTypes(settings.aggregate_types),
        serializer=serializer_of(settings.journal_serializer, variable("journal_serializer")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A caller's idempotency key, as a record in the snapshot table: put with the append, in its transaction.

    Attributes:
        name: of the record, both halves of its primary key.
        contents: a digest of what is appended, which tells a repeat from a key used twice.
        now: epoch seconds. A record that has expired by then counts as absent.
    """

    name: str
    contents: bytes
    now: int

    @classmethod
    def of(cls, aggregate: AggregateId, key: str, contents: bytes, now: int) -> Key:
        """The record of `key` for an aggregate."""
        digest = hashlib.sha256(f"{aggregate}\0{key}".encode()).hexdigest()[:32]
        return cls(name=f"$Idempotency-{digest}", contents=contents, now=now)

    @property
    def primary(self) -> dict[str, AttributeValue]:
        """The record's primary key. It has no `aid` and no `seq_nr`, so heads, copies and indexes are without it."""
        return {"pkey": text(self.name), "skey": text(self.name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateBatch:
    """One append to an aggregate.

    Attributes:
        events: at least one, in order; numbered when the head is known.
        payload: the state with these events folded in; None keeps the snapshot as it is.
        append_id: 16 random bytes, the same over all tries.
        now: epoch milliseconds.
        keep_copy: also keep the new snapshot under its number.
        key: the append is made once under it.
    """

    aggregate: AggregateId
    events: tuple[JournalEvent, ...]
    payload: bytes | None
    append_id: bytes
    now: int
    keep_copy: bool = False
    key: Key | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the events."""
        return tuple(event.event_type or "" for event in self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What an append builds on.

    Attributes:
        lock: None for an aggregate's first append.
        looked_up: another library wrote last, and the last number was looked up in the journal, so that only the
            version can be a condition, and it is unknown what the payload has folded in.
    """

    lock: Lock | None = None
    looked_up: bool = False

    @property
    def first(self) -> int:
        """Number of the next event."""
        return 1 if self.lock is None else self.lock.seq_nr + 1


def lock_after(batch: AggregateBatch, base: Base) -> Lock:
    """The lock that an append leaves."""
    version = 1 if base.lock is None else base.lock.version + 1
    return Lock(version=version, seq_nr=base.first + len(batch.events) - 1)


def unchanged(base: Base) -> Condition:
    """That the head is still the one that an append builds on."""
    if base.lock is None:
        return Absent("pkey")
    version = equals("version", number(base.lock.version))
    if base.looked_up:
        return version
    ours = equals("head_version", number(base.lock.version))
    return All((version, ours, equals("last_seq_nr", number(base.lock.seq_nr))))


def transaction(site: JournalSite, batch: AggregateBatch, base: Base) -> Transact:
    """The head, the events, the kept copy where one is wanted, and the record of a key; head first, record last.

    Raises:
        InvalidInput: an aggregate's first append comes without a snapshot.
    """
    after = lock_after(batch, base)
    writes: list[Put | Update] = [_head(site, batch, base, after)]
    for offset, event in enumerate(batch.events):
        numbered = replace(
            event, seq_nr=base.first + offset, append_id=batch.append_id if offset == 0 else None
        )
        item = write_event(site.keys, batch.aggregate, numbered, as_text=site.serializer.text)
        writes.append(Put(table=site.journal, item=item, condition=Absent("pkey")))
    if batch.keep_copy and batch.payload is not None:
        payload = payload_of(batch.payload, as_text=site.serializer.text)
        copy = write_copy(site.keys, batch.aggregate, after, payload, batch.now)
        writes.append(Put(table=site.snapshot, item=copy))
    if batch.key is not None:
        writes.append(_key_record(site, batch, batch.key, base.first, after))
    return Transact(writes=tuple(writes))


def _key_record(site: JournalSite, batch: AggregateBatch, key: Key, first: int, after: Lock) -> Put:
    item = {
        **key.primary,
        "contents": binary(key.contents),
        "append_id": binary(batch.append_id),
        "first_seq_nr": number(first),
        "last_seq_nr": number(after.seq_nr),
        "version": number(after.version),
        "ttl": number(key.now + KEY_WINDOW_SECONDS),
    }
    free = AnyOf((Absent("pkey"), Compare("ttl", "<", number(key.now))))
    return Put(table=site.snapshot, item=item, condition=free)


def _head(site: JournalSite, batch: AggregateBatch, base: Base, after: Lock) -> Put | Update:
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
    if base.lock is None:
        return _first_head(site, batch, ours)
    return Update(
        table=site.snapshot,
        key=site.keys.key(batch.aggregate, HEAD),
        sets=tuple(Set(name, value) for name, value in ours.items()),
        removes=("payload_seq_nr",) if base.looked_up and batch.payload is None else (),
        condition=unchanged(base),
    )


def _first_head(site: JournalSite, batch: AggregateBatch, ours: dict[str, AttributeValue]) -> Put:
    if batch.payload is None:
        raise InvalidInput("snapshot", "an aggregate's first event needs one")
    item = {
        **site.keys.key(batch.aggregate, HEAD),
        "aid": text(str(batch.aggregate)),
        "seq_nr": number(HEAD),
        "ttl": number(NO_TTL),
        **ours,
    }
    return Put(table=site.snapshot, item=item, condition=unchanged(Base()))
