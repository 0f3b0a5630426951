"""Appends of events under an idempotency key: one append within its stream, whatever is expected later.

    no record      it is put before the first try; then the append goes out as any other does
    a record       the stream is searched for the append, from the record's bound up to the head that was read
      ├ found         appended, by an earlier call
      ├ pruned        undetermined
      └ absent        the append goes out on that head; where it ends below the bound, the bound is lowered first

A decision on a stream's state does the same around what decides: `begin` before it, `resume` on each head that it goes
on with, and each of its tries is on exactly a head that one of these has answered.

The record only bounds the search. What makes the append once: every try is conditional on a head up to which the search
has found nothing, and no try stands below the bound.

Unfolds alone leave no trace once replaced. They are written once, together with the record that says so.

    written        the head and the key's record, in one transaction
    refused by the record
      ├ it says that these unfolds were written     written, by this call or an earlier one
      ├ it says that others were                    refused: the key was used for other contents
      └ it bounds tries of events                   these are searched for; where there are none, again
    refused by the head                             a conflict; or, where it still is what is expected, again

A layout says what it can try with a batch under a key (`Attempts`); in which order that is tried is said here, for all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, Protocol

from epochal.errors import InvalidInput, KeyAhead
from epochal.layout.streams import (
    NEVER,
    Answer,
    Batch,
    H,
    H_co,
    Head,
    KeyedStreams,
    Known,
    Rejected,
    Settled,
    Unknown,
    Unmet,
    Written,
    accepts,
    decision_id,
)
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import PER_SECOND, Ticks, from_unix_nanoseconds
from epochal.model.versions import (
    UNREAD,
    AtVersion,
    ExpectedVersion,
    Token,
    Unread,
    expected_head,
    version_of,
)
from epochal.plan.conditions import Absent, All, AnyOf, Compare, Condition, equals
from epochal.plan.ops import Done, Put, Steps, TransactGet
from epochal.plan.values import Item, Key, binary, number, text
from epochal.settings import KEY_WINDOW_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfoldsRefused(Generic[H_co]):
    """The reply to a write of unfolds alone that was refused.

    Attributes:
        head: steps that read the current head of the stream.
        seen: contents of the key's record; None where there is none.
        etag: etag that the write would have left; None where no write was sent.
    """

    head: Steps[H_co | None]
    seen: Remembered | None
    etag: str | None


class Attempts(Protocol[H]):
    """One batch that an idempotency key identifies, and the requests that can be tried with the batch."""

    @property
    def table(self) -> str:
        """Name of the table that the batch is written to."""

    @property
    def batch(self) -> KeyedWrite:
        """The batch that is appended."""

    def load(self) -> Steps[H | None]:
        """Read the head of the batch's stream; None if there is no such stream."""

    def append_on(self, known: Known[H], *, repeatable: bool) -> Steps[Answer[H]]:
        """Append events on exactly the known head; return the layout's answer.

        Args:
            repeatable: whether another process may have appended the batch since that head.
        """

    def is_new(self, known: Known[H]) -> bool | None:
        """Whether nothing known of the stream was written after the key's moment (`KeyedStreams.is_new`)."""

    def settle(self, head: H, since: int, *, repeatable: bool) -> Steps[Settled | None]:
        """Look for the batch in the stream from index `since` on; None if it is not there.

        Args:
            repeatable: whether another process may have appended the batch.
        """

    def unfold_on(
        self, known: Known[H], record: KeyRecord, seen: Remembered | None
    ) -> Steps[Token | UnfoldsRefused[H] | Unmet]:
        """Write unfolds alone on exactly the known head, with the key's record in the same transaction.

        Args:
            seen: contents that the record must still have; None for no record.

        Returns:
            The new token, the refusal, or the conditions of other writes that failed.
        """

    def is_pruned(self, head: H, since: int) -> Steps[bool]:
        """Whether events that the key may have appended from index `since` on are pruned.

        Nobody can find out any more then if they were appended.

        Raises:
            InvalidInput: events were appended under the key; unfolds alone are other contents.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call(Generic[H]):
    """One append under an idempotency key: the batch, its expected version and the key's record."""

    attempts: Attempts[H]
    expected: ExpectedVersion
    record: KeyRecord


def append_once(attempts: Attempts[H], expected: ExpectedVersion, record: KeyRecord) -> Steps[Answer[H]]:
    """Append events under an idempotency key, unless an earlier call has appended them.

    Args:
        attempts: the batch, and the requests that can be tried with it.
        expected: expected version of the stream.
        record: the key's record.

    Returns:
        What came of the append: written, rejected, or unknown if the evidence is pruned.
    """
    call = _Call(attempts=attempts, expected=expected, record=record)
    table = attempts.table
    known: Known[H] | Unread = expected_head(expected)
    if known is not UNREAD:
        new = attempts.is_new(known)
        if new or (new is None and (yield from remember(table, record, version_of(known))) is None):
            return (yield from _tried(call, known))
    head = yield from attempts.load()
    # After the head, so that what it says covers every try that the head may have in it.
    if (new := attempts.is_new(head)) is not None:
        found = None if new else (yield from recall(table, record)) or Remembered(first=0)
    elif accepts(expected, head):
        found = yield from remember(table, record, version_of(head))
    else:
        found = yield from recall(table, record)
    return (yield from _again(call, head, found))


def _again(call: _Call[H], head: H | None, found: Remembered | None) -> Steps[Answer[H]]:
    """Look for an earlier append of the batch in a stream whose head was read; append if there is none.

    Args:
        head: the head that was read.
        found: contents of the key's record, read after the head; None if there is none.
    """
    attempts = call.attempts
    check_contents(found, attempts.batch.append_id)
    if found is not None and head is not None:
        settled = yield from attempts.settle(head, found.first, repeatable=True)
        if settled is not None:
            return settled
    if not accepts(call.expected, head):
        return (yield from _too_late(call, head))
    if found is not None:
        lowered = yield from lower(attempts.table, call.record, version_of(head), found)
        check_contents(lowered, attempts.batch.append_id)
    return (yield from _tried(call, head, was_read=True))


def _too_late(call: _Call[H], head: H | None) -> Steps[Answer[H]]:
    """Reject an append whose expected version is not met, unless this append is itself the cause."""
    if head is not None and isinstance(call.expected, AtVersion | Token):
        settled = yield from call.attempts.settle(head, call.expected.version, repeatable=False)
        if settled is not None:
            return settled
    return Rejected(head=head)


def _tried(call: _Call[H], known: Known[H], *, was_read: bool = False) -> Steps[Answer[H]]:
    """Try to append on the known head, and on each newer head that still meets the expected version.

    If the head was read, other processes may have used the key since then. A token or an absence may be so old that a
    search of all later events would have no end; but the record was new, so hardly anybody can have used the key.

    Args:
        known: known head of the stream.
        was_read: whether the head was read in this call.
    """
    attempts = call.attempts
    while True:
        result = yield from attempts.append_on(known, repeatable=was_read)
        if not isinstance(result, Rejected) or not accepts(call.expected, result.head):
            return result
        known = result.head
        check_contents((yield from recall(attempts.table, call.record)), attempts.batch.append_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionKey:
    """The idempotency key of a decision on one stream, with the append id that it gives the decision.

    Attributes:
        layout: layout of the stream.
        table: name of the table of streams.
        stream: name of the stream.
        record: the key's record.
        append_id: append id of the decision, but for the number of events.
        above: moment of the key (`KeyedStreams.told_by`).
    """

    layout: KeyedStreams
    table: str
    stream: str
    record: KeyRecord
    append_id: bytes
    above: Ticks = NEVER

    def on(self, batch: Batch) -> Batch:
        """Return the batch of a decision with the append id that the key gives it."""
        append_id = decision_id(self.append_id, len(batch.events))
        return replace(batch, append_id=append_id, keyed=True, above=self.above)


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """The answer that nothing has been appended under a key up to the head.

    Attributes:
        head: the head to decide on, if it was read.
        read: whether the head was read.
    """

    head: Head | None = None
    read: bool = False


def begin(key: DecisionKey, known: Known[Any]) -> Steps[Settled | Free]:
    """Look for an earlier decision under a key; return its outcome, or the head to decide on (`Free`).

    Args:
        known: known head of the stream.

    Raises:
        InvalidInput: the key was used for unfolds.
    """
    new = key.layout.is_new(known, key.above)
    if new or (new is None and (yield from remember(key.table, key.record, version_of(known))) is None):
        return Free()
    head: Head | None = yield from key.layout.load(key.table, key.stream)
    # After the head, so that what it says covers every try that the head may have in it.
    found = (yield from recall(key.table, key.record)) or (Remembered(first=0) if new is False else None)
    if found is None:
        # The record has expired meanwhile.
        found = yield from remember(key.table, key.record, version_of(head))
    settled = None if found is None else (yield from _made(key, head, found))
    return settled or Free(head=head, read=True)


def resume(key: DecisionKey, since: Known[Any], known: Known[Any]) -> Steps[Settled | None]:
    """Look for an earlier decision under a key before the decision is made again on another head.

    Args:
        since: head up to which there was none.
        known: the head to decide on.

    Returns:
        The outcome of the earlier decision; None if there is none.
    """
    found: Remembered | None = None
    if version_of(known) < version_of(since):
        # The stream was begun anew, or the token is of another stream: no try may be below the record's bound.
        found = yield from recall(key.table, key.record)
    return (yield from _made(key, known, found or Remembered(first=version_of(since))))


def _made(key: DecisionKey, head: Known[Any], found: Remembered) -> Steps[Settled | None]:
    """Look for a decision under a key in a stream from the record's bound on; None if there is none.

    If there is none, the record's bound is lowered to the head's version, so that a try may follow.

    Args:
        found: contents of the key's record.
    """
    check_contents(found, None)
    if head is not None:
        settled: Settled | None = yield from key.layout.decided(key, head, found.first)
        if settled is not None:
            return settled
    yield from lower(key.table, key.record, version_of(head), found)
    return None


def unfold_once(attempts: Attempts[H], expected: ExpectedVersion, record: KeyRecord) -> Steps[Answer[H]]:
    """Write unfolds alone under an idempotency key, unless an earlier call has written them.

    Args:
        attempts: the batch, and the requests that can be tried with it.
        expected: expected version of the stream.
        record: the key's record.

    Returns:
        What came of the write.
    """
    tried: set[str | None] = set()
    known: Known[H] | Unread = expected_head(expected)
    if known is UNREAD or attempts.is_new(known) is False:
        known = yield from attempts.load()
    seen: Remembered | None = None
    while True:
        if not isinstance(known, Token):
            first = 0 if attempts.is_new(known) is False else None if seen is None else seen.first
            if known is not None and first is not None and (yield from attempts.is_pruned(known, first)):
                return Unknown(first=first)
            if not accepts(expected, known):
                return (yield from _rejected(attempts, record, known, tried))
        sent = yield from attempts.unfold_on(known, record, seen)
        if isinstance(sent, Token):
            return Written(first=sent.version, version=sent.version, token=sent)
        if isinstance(sent, Unmet):
            return sent
        seen = sent.seen
        tried.add(sent.etag)
        if seen is not None and seen.append_id is not None:
            return (yield from _done(attempts, seen, tried))
        known = yield from sent.head


def _rejected(
    attempts: Attempts[H], record: KeyRecord, head: H | None, tried: set[str | None]
) -> Steps[Answer[H]]:
    """Reject unfolds whose expected version is not met, unless an earlier call has written them.

    Args:
        tried: etags that this call has tried to leave.
    """
    seen = yield from recall(attempts.table, record)
    if seen is not None and seen.append_id is not None:
        return (yield from _done(attempts, seen, tried))
    return Rejected(head=head)


def _done(attempts: Attempts[H], seen: Remembered, tried: set[str | None]) -> Steps[Written]:
    """Make the result of unfolds that the key's record says were written.

    Args:
        seen: contents of the record.
        tried: etags that this call has tried to leave; with another etag an earlier call wrote them.

    Raises:
        InvalidInput: the key was used for other contents.
    """
    check_contents(seen, attempts.batch.append_id)
    if seen.etag is None:
        raise InvalidInput("idempotency_key", "was used before for an append with a condition")
    head = yield from attempts.load()
    ours = head is not None and head.etag == seen.etag
    token = head.token() if head is not None and ours else Token(version=seen.first, etag=seen.etag)
    return Written(first=seen.first, version=seen.first, token=token, replayed=seen.etag not in tried)


# A caller's idempotency key is stored beside the append itself: in a record of the stream and the key.
#
# Before the first append of events under the key, the record is put with a lower bound: no try stands below it. A
# repeat reads it back and searches the stream from there for the append id. Unfolds alone leave no trace once replaced,
# so for these the record is written with them, in one transaction, and says that it is done.
#
#     p = `$Idempotency-<32 hex digits of SHA-256 over stream, NUL, key>`   i = 0   n   ttl   (k, etag: unfolds alone)
#
# The record of an append to several streams is written with the append, too, and has the result for each stream.
#
#     p = likewise, over NUL, the names in order, each with a NUL, and the key   i = 0   n = 0   ttl   k   made
#
# The events of a decision depend on the state that was read, so a digest of them would tell nothing: the last eight
# bytes of a decision's append id are a mark, and the number of its events.
#
# A record that has expired by the caller's clock counts as absent, whether or not DynamoDB has deleted it yet.

# A key that ends with a UUIDv7 contains the moment at which it was made. Where stamps rise along a stream, appends
# under the key are stamped above that moment, whatever the clock says. So a state of that moment or before has no such
# append yet, and no record is needed; in a later state the search for the append ends at the moment.

_TELLS: Final = re.compile(r"(?ai)([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}\Z")

_AHEAD: Final = 300 * PER_SECOND
"""How far a key's moment may be ahead of the clock. Later events of the stream are stamped after it, too."""

_OF_NO_CLOCK: Final = 3_600 * PER_SECOND
"""What is further ahead than this was made by no clock that is merely wrong: waiting would not help."""


def told_by(key: str, now: Ticks) -> Ticks:
    """Return the moment of a key that ends with a UUIDv7; `NEVER` for other keys.

    Raises:
        KeyAhead: the moment is more than five minutes ahead.
        InvalidInput: it is more than an hour ahead.
    """
    if (found := _TELLS.search(key)) is None:
        return NEVER
    moment = from_unix_nanoseconds(int(found[1] + found[2], 16) * 1_000_000)
    if moment > now + _OF_NO_CLOCK:
        raise InvalidInput("idempotency_key", "is a UUIDv7 of more than an hour from now")
    if moment > now + _AHEAD:
        raise KeyAhead((moment - now) // PER_SECOND)
    return moment


PREFIX: Final = "$Idempotency-"
"""Prefix of the names of records, which stand beside the streams that the keys are for."""


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
class Remembered:
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


def remember(table: str, record: KeyRecord, version: int) -> Steps[Remembered | None]:
    """Put the record of a key with the bound `version`, so that tries there and above may follow.

    Returns:
        The contents of the record that was there already; None if this one was put.
    """
    reply = yield _put(table, record, version, record.free)
    return None if isinstance(reply, Done) or reply.item is None else read_record(reply.item)


def lower(table: str, record: KeyRecord, version: int, seen: Remembered) -> Steps[Remembered]:
    """Lower the bound of a key's record to `version` if it is above; return the record's contents."""
    while seen.append_id is None and seen.first > version:
        reply = yield _put(table, record, version, AnyOf((record.free, _as_seen(seen))))
        if isinstance(reply, Done):
            return Remembered(first=version)
        seen = seen if reply.item is None else read_record(reply.item)
    return seen


def recall(table: str, record: KeyRecord) -> Steps[Remembered | None]:
    """Read the record of a key, once no transaction on it is under way; None if there is none."""
    (item,) = (yield TransactGet(keys=((table, _key(record)),))).items
    if item is None or int(item["ttl"]["N"]) < record.now:
        return None
    return read_record(item)


def done_record(
    table: str, record: KeyRecord, batch: KeyedWrite, version: int, seen: Remembered | None
) -> Put:
    """Make the write of the record that goes with unfolds alone.

    Its condition is that the key is free, or its record still has the contents `seen`.
    """
    condition = record.free if seen is None else AnyOf((record.free, _as_seen(seen)))
    put = _put(table, record, version, condition)
    return replace(put, item={**put.item, "k": binary(batch.append_id), "etag": text(batch.etag)})


def made_record(
    table: str, record: KeyRecord, append_id: bytes, made: bytes, seen: Sequence[Remembered] = ()
) -> Put:
    """Make the write of the record that goes with an append to several streams.

    Its condition is that the key is free, or its record has contents that are among `seen`.

    Args:
        made: encoded results for the streams.
    """
    put = _put(table, record, 0, AnyOf((record.free, *map(_as_seen, seen))) if seen else record.free)
    return replace(put, item={**put.item, "k": binary(append_id), "made": binary(made)})


def _key(record: KeyRecord) -> Key:
    return {"p": text(record.name), "i": number(0)}


def _put(table: str, record: KeyRecord, version: int, condition: Condition) -> Put:
    item = {**_key(record), "n": number(version), "ttl": number(record.now + KEY_WINDOW_SECONDS)}
    return Put(table=table, item=item, condition=condition)


def _as_seen(seen: Remembered) -> Condition:
    return All((Absent("k"), equals("n", number(seen.first))))


def read_record(item: Item) -> Remembered:
    """Decode the item of a key's record."""
    return Remembered(
        first=int(item["n"]["N"]),
        append_id=bytes(item["k"]["B"]) if "k" in item else None,
        etag=item["etag"]["S"] if "etag" in item else None,
        made=bytes(item["made"]["B"]) if "made" in item else b"",
    )


def check_contents(found: Remembered | None, append_id: bytes | None) -> None:
    """Raise `InvalidInput` if a record is of a write with another append id.

    Args:
        append_id: append id of the write; None for a decision, which no such write may have preceded.
    """
    if found is not None and found.append_id not in (None, append_id):
        raise InvalidInput("idempotency_key", "was used before for other contents")
