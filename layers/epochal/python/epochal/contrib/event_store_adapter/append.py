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
"""

from __future__ import annotations

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import (
    HEAD,
    AggregateHead,
    JournalSite,
    of_known_versions,
    read_event,
    read_head,
)
from epochal.contrib.event_store_adapter.model import ExpectedLock, Lock
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict, conflict_with
from epochal.contrib.event_store_adapter.reading import last_number
from epochal.contrib.event_store_adapter.transaction import (
    AggregateBatch,
    Base,
    IdempotencyKey,
    lock_after,
    transaction,
)
from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.model.expected_version import NO_STREAM, meets
from epochal.plan import limits, ops
from epochal.plan.effects import after
from epochal.plan.values import Item, item_size


def append(
    site: JournalSite, batch: AggregateBatch, expected: ExpectedLock
) -> ops.Steps[AggregateAppended | AggregateConflict]:
    """Append a batch to an aggregate that is as expected, retrying after races; return the outcome.

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
            return AggregateAppended(first=base.first, lock=lock_after(batch, base))
        if isinstance(reply, ops.Overflow):
            raise (yield from _too_large(site, batch, base))
        if batch.key is not None and reply.failed[-1] and reply.items[-1] is not None:
            # Return only once the head shows the append too, so that the caller finds it.
            yield ops.TransactGet(keys=((site.snapshot, site.keys.key(batch.aggregate, HEAD)),))
            return _earlier(batch.append_id, batch.key, reply.items[-1])
        head, blocking = yield from _in_the_way(site, batch, base, reply)
        if (yield from _was_ours(site, batch, base, head, reply)):
            return AggregateAppended(first=base.first, lock=lock_after(batch, base))
        if not accepts(expected, head):
            return conflict_with(head)
        check_form(site, head)
        again = yield from _again(site, batch, expected, head)
        if again == base and blocking is not None:
            raise CorruptData(
                f"{batch.aggregate}: event {blocking} is in the journal, but its head is at {base.first - 1}, as "
                "when the two tables were restored to different times: restore both to the same time"
            )
        base = again
    return base


def _start(
    site: JournalSite, batch: AggregateBatch, expected: ExpectedLock
) -> ops.Steps[Base | AggregateAppended | AggregateConflict]:
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
    """Return what an append on this head builds on: version and last event number, looked up if needed.

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
) -> ops.Steps[AggregateAppended | AggregateConflict]:
    """Return a conflict for an append whose head is unexpected, or the earlier append under its key."""
    earlier = None
    if batch.key is not None:
        earlier = yield from made_under(site, batch.aggregate, batch.key, batch.append_id)
    return earlier or conflict_with(head)


def made_under(
    site: JournalSite, aggregate: AggregateId, key: IdempotencyKey, append_id: bytes = b""
) -> ops.Steps[AggregateAppended | None]:
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


def _earlier(append_id: bytes, key: IdempotencyKey, record: Item) -> AggregateAppended:
    """Read an append's result from its key's record; raise if the key was used for other contents.

    Raises:
        InvalidInput: the key was used for other contents.
    """
    if bytes(record["contents"]["B"]) != key.contents:
        raise InvalidInput("idempotency_key", "was already used for an append with other contents")
    lock = Lock(version=int(record["version"]["N"]), seq_nr=int(record["last_seq_nr"]["N"]))
    replayed = bytes(record["append_id"]["B"]) != append_id
    return AggregateAppended(first=int(record["first_seq_nr"]["N"]), lock=lock, replayed=replayed)


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
) -> ops.Steps[Base | AggregateConflict]:
    """Return the base of an append's next try after a refusal, or a conflict if it was overtaken.

    The head is as expected, but another append may overtake the search for the last number.

    Raises:
        InvalidInput: the number in the expected lock does not join the last event.
    """
    base = yield from base_of(site, head, batch.aggregate)
    if isinstance(expected, Lock) and base.lock != expected:
        now = yield from read(site, batch.aggregate)
        if not accepts(expected, now):
            return conflict_with(now)
        last = 0 if base.lock is None else base.lock.seq_nr
        raise InvalidInput("seq_nr", f"{expected.seq_nr + 1} does not follow the last event, {last}")
    return base
