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

from dataclasses import dataclass

from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.layout.journal.items import AggregateHead, of_known_versions, read_event, read_head
from epochal.layout.journal.keys import HEAD
from epochal.layout.journal.lookup import last_number
from epochal.layout.journal.writes import AggregateBatch, Base, JournalSite, Key, lock_after, transaction
from epochal.model.aggregates import AggregateId, ExpectedLock, Lock
from epochal.model.versions import NO_STREAM, meets
from epochal.plan.effects import after
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Get, Overflow, Refusal, Steps, TransactGet
from epochal.plan.sizes import item_size
from epochal.plan.values import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateWritten:
    """Committed: events `first` to `lock.seq_nr`; `replayed` where an earlier call with the key did it."""

    first: int
    lock: Lock
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateRejected:
    """Not committed: this head stood in the way; None where there is no such aggregate."""

    head: AggregateHead | None


def append(
    site: JournalSite, batch: AggregateBatch, expected: ExpectedLock
) -> Steps[AggregateWritten | AggregateRejected]:
    """Append `batch`.

    Raises:
        InvalidInput: an aggregate's first event comes without a snapshot, the number in a lock does not join the
            events there are, or the key was used for other contents.
        TooLarge: the head has no room for the events' types beside its snapshot.
        CorruptData: an event has the number that, by the head, the next one gets; or the snapshot is of another
            library's form than events would be appended in.
    """
    base = yield from _start(site, batch, expected)
    while isinstance(base, Base):
        reply = yield transaction(site, batch, base)
        if isinstance(reply, Done):
            return AggregateWritten(first=base.first, lock=lock_after(batch, base))
        if isinstance(reply, Overflow):
            raise (yield from _too_large(site, batch, base))
        if batch.key is not None and reply.failed[-1] and reply.items[-1] is not None:
            # Answered only once the head shows it too, so that the caller finds the append.
            yield TransactGet(keys=((site.snapshot, site.keys.key(batch.aggregate, HEAD)),))
            return _earlier(batch.append_id, batch.key, reply.items[-1])
        head, taken = yield from _in_the_way(site, batch, base, reply)
        if (yield from _was_ours(site, batch, base, head, reply)):
            return AggregateWritten(first=base.first, lock=lock_after(batch, base))
        if not accepts(expected, head):
            return AggregateRejected(head=head)
        check_form(site, head)
        again = yield from _again(site, batch, expected, head)
        if again == base and taken is not None:
            raise CorruptData(
                f"{batch.aggregate}: event {taken} is in the journal, yet its head stands at {base.first - 1}, as when "
                "the two tables were restored to different moments: restore both to one"
            )
        base = again
    return base


def _start(
    site: JournalSite, batch: AggregateBatch, expected: ExpectedLock
) -> Steps[Base | AggregateWritten | AggregateRejected]:
    """What the first try builds on: what is expected tells it, or the head that is read."""
    if isinstance(expected, Lock):
        return Base(lock=expected)
    if expected is NO_STREAM:
        return Base()
    head = yield from read(site, batch.aggregate)
    if not accepts(expected, head):
        return (yield from _too_late(site, batch, head))
    check_form(site, head)
    return (yield from base_of(site, head, batch.aggregate))


def read(site: JournalSite, aggregate: AggregateId) -> Steps[AggregateHead | None]:
    """The head, strongly consistent; None where there is no such aggregate."""
    reply = yield Get(table=site.snapshot, key=site.keys.key(aggregate, HEAD))
    return None if reply.item is None else read_head(reply.item, aggregate)


def check_form(site: JournalSite, head: AggregateHead | None) -> None:
    """Raise `CorruptData` where the snapshot in a head is of another library's form: an append would mix the two."""
    if head is not None:
        payload = head.payload
        of_known_versions(head.unknown, lambda: site.serializer.snapshot(payload))


def accepts(expected: ExpectedLock, head: AggregateHead | None) -> bool:
    """Whether a head is what a writer expects."""
    if isinstance(expected, Lock):
        return head is not None and head.version == expected.version
    return meets(expected, None if head is None else head.version)


def base_of(site: JournalSite, head: AggregateHead | None, aggregate: AggregateId) -> Steps[Base]:
    """What an append on this head builds on."""
    if head is None:
        return Base()
    if head.lock is not None:
        return Base(lock=head.lock)
    last = yield from last_number(site, aggregate)
    return Base(lock=Lock(version=head.version, seq_nr=last), looked_up=True)


def _too_late(
    site: JournalSite, batch: AggregateBatch, head: AggregateHead | None
) -> Steps[AggregateWritten | AggregateRejected]:
    """A head that is not what was expected: a conflict, unless an earlier call with the key is the cause."""
    made = None
    if batch.key is not None:
        made = yield from made_under(site, batch.aggregate, batch.key, batch.append_id)
    return made or AggregateRejected(head=head)


def made_under(
    site: JournalSite, aggregate: AggregateId, key: Key, append_id: bytes = b""
) -> Steps[AggregateWritten | None]:
    """The append under a key, once the head shows it too; None where there is none.

    Raises:
        InvalidInput: it has other contents.
    """
    keys = ((site.snapshot, key.primary), (site.snapshot, site.keys.key(aggregate, HEAD)))
    record, _ = (yield TransactGet(keys=keys)).items
    if record is None or int(record["ttl"]["N"]) < key.now:
        return None
    return _earlier(append_id, key, record)


def _earlier(append_id: bytes, key: Key, record: Item) -> AggregateWritten:
    """What the record of the key says: it was put by the append itself."""
    if bytes(record["contents"]["B"]) != key.contents:
        raise InvalidInput("idempotency_key", "was used before for other contents")
    lock = Lock(version=int(record["version"]["N"]), seq_nr=int(record["last_seq_nr"]["N"]))
    replayed = bytes(record["append_id"]["B"]) != append_id
    return AggregateWritten(first=int(record["first_seq_nr"]["N"]), lock=lock, replayed=replayed)


def _in_the_way(
    site: JournalSite, batch: AggregateBatch, base: Base, reply: Refusal
) -> Steps[tuple[AggregateHead | None, int | None]]:
    """The head as it is now: the one that came back; or, where only an event was in the way, read in one moment with
    that event, whose number comes too if it is there.
    """
    if reply.failed[0]:
        return None if reply.item is None else read_head(reply.item, batch.aggregate), None
    number = base.first + reply.failed.index(True) - 1
    keys = site.keys.key(batch.aggregate, HEAD), site.keys.key(batch.aggregate, number)
    both = yield TransactGet(keys=((site.snapshot, keys[0]), (site.journal, keys[1])))
    head, event = both.items
    found = None if head is None else read_head(head, batch.aggregate)
    return found, None if event is None else number


def _too_large(site: JournalSite, batch: AggregateBatch, base: Base) -> Steps[TooLarge]:
    """A head that has no room for the types of the events beside the snapshot that it keeps."""
    reply = yield Get(table=site.snapshot, key=site.keys.key(batch.aggregate, HEAD))
    left = after(transaction(site, batch, base).writes[0], reply.item)
    return TooLarge("events", max(ITEM_BYTES + 1, item_size(left or {})), ITEM_BYTES)


def _was_ours(
    site: JournalSite, batch: AggregateBatch, base: Base, head: AggregateHead | None, reply: Refusal
) -> Steps[bool]:
    if head is not None and head.append_id == batch.append_id:
        return True
    if not reply.ambiguous:
        return False
    first = yield TransactGet(keys=((site.journal, site.keys.key(batch.aggregate, base.first)),))
    (stored,) = first.items
    return stored is not None and read_event(stored).append_id == batch.append_id


def _again(
    site: JournalSite, batch: AggregateBatch, expected: ExpectedLock, head: AggregateHead | None
) -> Steps[Base | AggregateRejected]:
    """What the next try builds on; or a conflict, where another append overtook the search for the last number."""
    base = yield from base_of(site, head, batch.aggregate)
    if isinstance(expected, Lock) and base.lock != expected:
        now = yield from read(site, batch.aggregate)
        if not accepts(expected, now):
            return AggregateRejected(head=now)
        last = 0 if base.lock is None else base.lock.seq_nr
        raise InvalidInput("seq_nr", f"{expected.seq_nr + 1} does not join: the last event is {last}")
    return base
