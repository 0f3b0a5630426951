"""Appending to an aggregate: the head under its version, the events only if absent, all in one transaction.

    first          the head is put with the snapshot and version 1
    later          the head's version is raised; a payload replaces the snapshot
    refused        the head that came back tells why:
      ├ the record of our key               appended by an earlier call, or by this one: a response was lost
      ├ our append id                       appended: a response was lost
      ├ our id at our first number          appended: a response was lost, and others have appended since
      ├ not what was expected               conflict
      ├ the expected version, but not ours  another library wrote last: the last number is looked up, then again
      └ the very head that was built on     its next event is there already: the tables contradict each other

An append id is on the head and on the first event of each append, so that a lost response can be resolved. What is
asked after a refusal is read together, or as a transaction: a plain read may find half of another's append.

Copies of snapshots are retired by a step after the append has committed, so that its failure can never make the append
look failed. It takes up a backlog a bounded part at a time. The newest copy always stays, and the head is no copy. What
it reads does not grow with the copies that wait to expire: `snapshot-active-ttl-index` has the keys of the others.
"""

from __future__ import annotations

import hashlib
from typing import Final

from epochal.contrib.event_store_adapter.items import (
    HEAD,
    NO_TTL,
    AggregateHead,
    JournalEvent,
    JournalSite,
    of_known_versions,
    payload_of,
    read_event,
    read_head,
    write_copy,
    write_event,
    write_made_with,
)
from epochal.contrib.event_store_adapter.model import AggregateId, ExpectedLock, Lock
from epochal.contrib.event_store_adapter.reading import last_number
from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.kinds import must_be_whole
from epochal.model.moments import MAX_EXPIRES
from epochal.model.versions import NO_STREAM, meets
from epochal.plan import conditions, limits, ops
from epochal.plan.effects import after
from epochal.plan.values import AttributeValue, Item, Key, binary, item_size, number, sequence, text
from epochal.settings import KEY_WINDOW_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateWritten:
    """Result of an append that is committed.

    Attributes:
        first: number of its first event.
        lock: lock that the append left, with the number of its last event.
        replayed: whether an earlier call with the idempotency key made the append.
    """

    first: int
    lock: Lock
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateRejected:
    """Result of an append that is not committed, since the head was not as expected.

    Attributes:
        head: the head that stood in the way; None if there is no such aggregate.
    """

    head: AggregateHead | None


def append(
    site: JournalSite, batch: AggregateBatch, expected: ExpectedLock
) -> ops.Steps[AggregateWritten | AggregateRejected]:
    """Append a batch of events to an aggregate if it is as expected, and try again after races.

    Returns the committed append, or the head that was not as expected.

    Raises:
        InvalidInput: an aggregate's first event comes without a snapshot, the number in a lock does not join the events
            there are, or the key was used for other contents.
        TooLarge: the head has no room for the events' types beside its snapshot.
        CorruptData: an event has the number that, by the head, the next one gets; or the snapshot is of another
            library's form than events would be appended in.
    """
    base = yield from _start(site, batch, expected)
    while isinstance(base, Base):
        reply = yield transaction(site, batch, base)
        if isinstance(reply, ops.Done):
            return AggregateWritten(first=base.first, lock=lock_after(batch, base))
        if isinstance(reply, ops.Overflow):
            raise (yield from _too_large(site, batch, base))
        if batch.key is not None and reply.failed[-1] and reply.items[-1] is not None:
            # Return only once the head shows the append too, so that the caller finds it.
            yield ops.TransactGet(keys=((site.snapshot, site.keys.key(batch.aggregate, HEAD)),))
            return _earlier(batch.append_id, batch.key, reply.items[-1])
        head, blocking = yield from _in_the_way(site, batch, base, reply)
        if (yield from _was_ours(site, batch, base, head, reply)):
            return AggregateWritten(first=base.first, lock=lock_after(batch, base))
        if not accepts(expected, head):
            return AggregateRejected(head=head)
        check_form(site, head)
        again = yield from _again(site, batch, expected, head)
        if again == base and blocking is not None:
            raise CorruptData(
                f"{batch.aggregate}: event {blocking} is in the journal, yet its head stands at {base.first - 1}, as "
                "when the two tables were restored to different moments: restore both to one"
            )
        base = again
    return base


def _start(
    site: JournalSite, batch: AggregateBatch, expected: ExpectedLock
) -> ops.Steps[Base | AggregateWritten | AggregateRejected]:
    """Return the base of an append's first try, from the expected lock or the head; or a final result.

    The head is read unless a whole lock or no stream is expected. The result is final if an earlier call with the key
    made the append, or if the head is not as expected.
    """
    if isinstance(expected, Lock):
        return Base(lock=expected)
    if expected is NO_STREAM:
        return Base()
    head = yield from read(site, batch.aggregate)
    if not accepts(expected, head):
        return (yield from _too_late(site, batch, head))
    check_form(site, head)
    return (yield from base_of(site, head, batch.aggregate))


def read(site: JournalSite, aggregate: AggregateId) -> ops.Steps[AggregateHead | None]:
    """Read an aggregate's head, strongly consistent; None if there is no such aggregate."""
    reply = yield ops.Get(table=site.snapshot, key=site.keys.key(aggregate, HEAD))
    return None if reply.item is None else read_head(reply.item, aggregate)


def check_form(site: JournalSite, head: AggregateHead | None) -> None:
    """Raise `CorruptData` if the snapshot in a head is of another library's form.

    An append would mix the two forms.
    """
    if head is not None:
        payload = head.payload
        of_known_versions(head.unknown, lambda: site.serializer.snapshot(payload))


def accepts(expected: ExpectedLock, head: AggregateHead | None) -> bool:
    """Whether a head meets a writer's expected version."""
    if isinstance(expected, Lock):
        return head is not None and head.version == expected.version
    return meets(expected, None if head is None else head.version)


def base_of(site: JournalSite, head: AggregateHead | None, aggregate: AggregateId) -> ops.Steps[Base]:
    """Return what an append on this head builds on: version and last event number.

    If another library wrote the head last, the last number is looked up in the journal.
    """
    if head is None:
        return Base()
    if head.lock is not None:
        return Base(lock=head.lock)
    last = yield from last_number(site, aggregate)
    return Base(lock=Lock(version=head.version, seq_nr=last), looked_up=True)


def _too_late(
    site: JournalSite, batch: AggregateBatch, head: AggregateHead | None
) -> ops.Steps[AggregateWritten | AggregateRejected]:
    """Return a conflict for an append whose head is unexpected, or the earlier append under its key."""
    earlier = None
    if batch.key is not None:
        earlier = yield from made_under(site, batch.aggregate, batch.key, batch.append_id)
    return earlier or AggregateRejected(head=head)


def made_under(
    site: JournalSite, aggregate: AggregateId, key: IdempotencyKey, append_id: bytes = b""
) -> ops.Steps[AggregateWritten | None]:
    """Read the append that was made under an idempotency key; None if there is none or it expired.

    It is read together with the head, so that the head shows the append too.

    Raises:
        InvalidInput: the key was used for other contents.
    """
    keys = ((site.snapshot, key.primary), (site.snapshot, site.keys.key(aggregate, HEAD)))
    record, _ = (yield ops.TransactGet(keys=keys)).items
    if record is None or int(record["ttl"]["N"]) < key.now:
        return None
    return _earlier(append_id, key, record)


def _earlier(append_id: bytes, key: IdempotencyKey, record: Item) -> AggregateWritten:
    """Read the result of an append from the record of its key, which the append itself has put.

    Raises:
        InvalidInput: the key was used for other contents.
    """
    if bytes(record["contents"]["B"]) != key.contents:
        raise InvalidInput("idempotency_key", "was used before for other contents")
    lock = Lock(version=int(record["version"]["N"]), seq_nr=int(record["last_seq_nr"]["N"]))
    replayed = bytes(record["append_id"]["B"]) != append_id
    return AggregateWritten(first=int(record["first_seq_nr"]["N"]), lock=lock, replayed=replayed)


def _in_the_way(
    site: JournalSite, batch: AggregateBatch, base: Base, reply: ops.Refusal
) -> ops.Steps[tuple[AggregateHead | None, int | None]]:
    """Return the head that refused an append, and the number of an event that was in the way, if any.

    The head is the one that came back with the refusal. If only an event was in the way, both are read in one
    transaction, and the number is None if the event is not there.
    """
    if reply.failed[0]:
        return None if reply.item is None else read_head(reply.item, batch.aggregate), None
    number = base.first + reply.failed.index(True) - 1
    keys = site.keys.key(batch.aggregate, HEAD), site.keys.key(batch.aggregate, number)
    both = yield ops.TransactGet(keys=((site.snapshot, keys[0]), (site.journal, keys[1])))
    head, event = both.items
    current = None if head is None else read_head(head, batch.aggregate)
    return current, None if event is None else number


def _too_large(site: JournalSite, batch: AggregateBatch, base: Base) -> ops.Steps[TooLarge]:
    """Make the error of a head without room for the events' types beside the snapshot that it keeps."""
    reply = yield ops.Get(table=site.snapshot, key=site.keys.key(batch.aggregate, HEAD))
    item = after(transaction(site, batch, base).writes[0], reply.item)
    return TooLarge("events", max(limits.ITEM_BYTES + 1, item_size(item or {})), limits.ITEM_BYTES)


def _was_ours(
    site: JournalSite, batch: AggregateBatch, base: Base, head: AggregateHead | None, reply: ops.Refusal
) -> ops.Steps[bool]:
    """Whether a refused append had been committed by an earlier try whose response was lost.

    Its append id is on the head, or on the journal's event of the first number if others have appended since.
    """
    if head is not None and head.append_id == batch.append_id:
        return True
    if not reply.ambiguous:
        return False
    first = yield ops.TransactGet(keys=((site.journal, site.keys.key(batch.aggregate, base.first)),))
    (stored,) = first.items
    return stored is not None and read_event(stored).append_id == batch.append_id


def _again(
    site: JournalSite, batch: AggregateBatch, expected: ExpectedLock, head: AggregateHead | None
) -> ops.Steps[Base | AggregateRejected]:
    """Return the base of an append's next try after a refusal, or a conflict if it was overtaken.

    The head is as expected, but another append may overtake the search for the last number.

    Raises:
        InvalidInput: the number in the expected lock does not join the last event.
    """
    base = yield from base_of(site, head, batch.aggregate)
    if isinstance(expected, Lock) and base.lock != expected:
        now = yield from read(site, batch.aggregate)
        if not accepts(expected, now):
            return AggregateRejected(head=now)
        last = 0 if base.lock is None else base.lock.seq_nr
        raise InvalidInput("seq_nr", f"{expected.seq_nr + 1} does not join: the last event is {last}")
    return base


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
        raise InvalidInput("snapshot", "an aggregate's first event needs one")
    item = {
        **site.keys.key(batch.aggregate, HEAD),
        "aid": text(str(batch.aggregate)),
        "seq_nr": number(HEAD),
        "ttl": number(NO_TTL),
        **ours,
    }
    return ops.Put(table=site.snapshot, item=item, condition=unchanged(Base()))


AT_ONCE: Final = 100
"""Most copies of snapshots that one call retires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The number of older snapshots that an aggregate keeps, and the time after which others expire.

    Attributes:
        keep: number of the newest copies that stay, at least 1.
        ttl_seconds: seconds until the other copies expire; None deletes them at once.
    """

    keep: int = 1
    ttl_seconds: int | None = None

    def __post_init__(self) -> None:
        must_be_whole(self.keep, "keep", 1)
        if self.ttl_seconds is not None:
            must_be_whole(self.ttl_seconds, "ttl_seconds", 1, MAX_EXPIRES)


def retire(site: JournalSite, aggregate: AggregateId, retention: Retention, now: int) -> ops.Steps[int]:
    """Retire up to 100 of the copies of snapshots beyond those kept, newest first; return how many.

    A copy is deleted, or gets a time to live. Either index may lag. A copy that the index does not show yet is newer
    than those it shows, and one that it still shows had a newer one beside it: so none of the newest copies is ever
    taken for one beyond them.

    Args:
        now: current time in epoch seconds.
    """
    retired, passed, last = 0, 0, None
    while True:
        reply = yield _newest_first(site, aggregate, retention, last)
        for item in reply.items:
            passed += 1
            if passed > retention.keep and retired < AT_ONCE:
                outcome = yield _retired(site, item, retention, now)
                retired += isinstance(outcome, ops.Done)
        if reply.last is None or passed >= retention.keep + AT_ONCE:
            return retired
        last = reply.last


def _newest_first(
    site: JournalSite, aggregate: AggregateId, retention: Retention, after: Key | None
) -> ops.Query:
    """Return the query of an aggregate's copies of snapshots, newest first.

    If copies are to expire, only the keys of those that have no time to live yet; otherwise all copies.
    """
    active = retention.ttl_seconds is not None
    return ops.Query(
        table=site.snapshot,
        index="snapshot-active-ttl-index" if active else "snapshot-aid-index",
        partition=("aid", text(str(aggregate))),
        sort=("active_ttl_seq_nr" if active else "seq_nr", number(1), number(10**15)),
        consistent=False,
        forward=False,
        limit=retention.keep + AT_ONCE,
        after=after,
    )


def _retired(site: JournalSite, item: Item, retention: Retention, now: int) -> ops.Update | ops.Delete:
    """Return the write that retires a copy: a delete, or an update that sets its time to live."""
    key = {"pkey": item["pkey"], "skey": item["skey"]}
    if retention.ttl_seconds is None:
        return ops.Delete(table=site.snapshot, key=key)
    # The index may lag: an update must neither create a copy that was deleted, nor extend a copy's time to live.
    return ops.Update(
        table=site.snapshot,
        key=key,
        sets=(ops.Set("ttl", number(now + retention.ttl_seconds)),),
        removes=("active_ttl_seq_nr",),
        condition=conditions.Present("active_ttl_seq_nr"),
    )
