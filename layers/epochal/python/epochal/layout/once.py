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

from epochal.errors import InvalidInput
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
from epochal.model.events import PER_SECOND, Ticks, from_unix_nanoseconds
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
    """Unfolds alone were not written.

    Attributes:
        head: reads what the head is by now.
        seen: what the record says.
        etag: that the write would have left; None where none was sent.
    """

    head: Steps[H_co | None]
    seen: Remembered | None
    etag: str | None


class Attempts(Protocol[H]):
    """One batch, known by a key, and all that can be tried with it."""

    @property
    def table(self) -> str:
        """Where it goes."""

    @property
    def batch(self) -> KeyedWrite:
        """What is appended."""

    def load(self) -> Steps[H | None]:
        """The head of its stream."""

    def append_on(self, known: Known[H], *, repeatable: bool) -> Steps[Answer[H]]:
        """Append events on exactly what is known; `repeatable`: another process may have appended them later."""

    def is_new(self, known: Known[H]) -> bool | None:
        """See `KeyedStreams.is_new`."""

    def settle(self, head: H, since: int, *, repeatable: bool) -> Steps[Settled | None]:
        """What a stream that is there says of an append that another process may have made from index `since` on."""

    def unfold_on(
        self, known: Known[H], record: KeyRecord, seen: Remembered | None
    ) -> Steps[Token | UnfoldsRefused[H] | Unmet]:
        """Write unfolds alone on exactly what is known, together with the record, if that is still as `seen`."""

    def is_pruned(self, head: H, since: int) -> Steps[bool]:
        """Whether nobody can tell any more if events were appended under the key from index `since` on.

        Raises:
            InvalidInput: they were; unfolds alone are other contents.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call(Generic[H]):
    attempts: Attempts[H]
    expected: ExpectedVersion
    record: KeyRecord


def append_once(attempts: Attempts[H], expected: ExpectedVersion, record: KeyRecord) -> Steps[Answer[H]]:
    """Append the events, where they are known by the recorded key."""
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
    """What to do on a head that was read, with what the record said after that."""
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
    """A head that was read is not what was expected: a conflict, unless this append is itself the cause."""
    if head is not None and isinstance(call.expected, AtVersion | Token):
        settled = yield from call.attempts.settle(head, call.expected.version, repeatable=False)
        if settled is not None:
            return settled
    return Rejected(head=head)


def _tried(call: _Call[H], known: Known[H], *, was_read: bool = False) -> Steps[Answer[H]]:
    """Tries on what is known, and on what comes back as long as it is what is expected.

    Where the head was read, others may have used the key since. A token or an absence may be so old that a search of
    all that has come since would have no end; the record was fresh, so that hardly anybody can have used the key.
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
    """The key of a decision on one stream, and what its append is known by there."""

    layout: KeyedStreams
    table: str
    stream: str
    record: KeyRecord
    append_id: bytes
    above: Ticks = NEVER

    def on(self, batch: Batch) -> Batch:
        """What the decision appends, known by its key."""
        append_id = decision_id(self.append_id, len(batch.events))
        return replace(batch, append_id=append_id, keyed=True, above=self.above)


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """Up to the head nothing has been appended under the key. Where it was `read`, that is the head to decide on."""

    head: Head | None = None
    read: bool = False


def begin(key: DecisionKey, known: Known[Any]) -> Steps[Settled | Free]:
    """Before a decision: what came of an earlier one under the key, or what this one may be made on.

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
        # It has expired meanwhile.
        found = yield from remember(key.table, key.record, version_of(head))
    settled = None if found is None else (yield from _made(key, head, found))
    return settled or Free(head=head, read=True)


def resume(key: DecisionKey, since: Known[Any], known: Known[Any]) -> Steps[Settled | None]:
    """Before it is made again, on another head: what came of an earlier one. Up to `since` there was none."""
    found: Remembered | None = None
    if version_of(known) < version_of(since):
        # A stream that was begun anew, or a token of another: no try may be below what the record says.
        found = yield from recall(key.table, key.record)
    return (yield from _made(key, known, found or Remembered(first=version_of(since))))


def _made(key: DecisionKey, head: Known[Any], found: Remembered) -> Steps[Settled | None]:
    """What the stream says of the key; where that is nothing, the record's bound is not above the head."""
    check_contents(found, None)
    if head is not None:
        settled: Settled | None = yield from key.layout.decided(key, head, found.first)
        if settled is not None:
            return settled
    yield from lower(key.table, key.record, version_of(head), found)
    return None


def unfold_once(attempts: Attempts[H], expected: ExpectedVersion, record: KeyRecord) -> Steps[Answer[H]]:
    """Append unfolds alone, where they are known by the recorded key."""
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
    """A head that is not what was expected: a conflict, unless the unfolds were written by an earlier call."""
    seen = yield from recall(attempts.table, record)
    if seen is not None and seen.append_id is not None:
        return (yield from _done(attempts, seen, tried))
    return Rejected(head=head)


def _done(attempts: Attempts[H], seen: Remembered, tried: set[str | None]) -> Steps[Written]:
    check_contents(seen, attempts.batch.append_id)
    if seen.etag is None:
        raise InvalidInput("idempotency_key", "was used before for an append with a condition")
    head = yield from attempts.load()
    ours = head is not None and head.etag == seen.etag
    token = head.token() if head is not None and ours else Token(version=seen.first, etag=seen.etag)
    return Written(first=seen.first, version=seen.first, token=token, replayed=seen.etag not in tried)


# What is stored of a caller's idempotency key beside the append itself: a record of the stream and the key.
#
# Before the first append of events under the key, the record is put with a lower bound: no try stands below it. A
# repeat reads it back and searches the stream from there for the append id. Unfolds alone leave no trace once replaced,
# so for these the record is written with them, in one transaction, and says that it is done.
#
#     p = `$Idempotency-<32 hex digits of SHA-256 over stream, NUL, key>`   i = 0   n   ttl   (k, etag: unfolds alone)
#
# That of an append to several streams is written with it, too, and says what each of them got.
#
#     p = likewise, over NUL, the names in order, each with a NUL, and the key   i = 0   n = 0   ttl   k   made
#
# What a decision appends depends on the state that it found, so its contents tell nothing: the last eight bytes of its
# append id are a mark, and how many events it has.
#
# A record that has expired by the caller's clock counts as absent, whether or not DynamoDB has deleted it yet.

# A key that ends with a UUIDv7 tells when it was made. Where stamps rise along a stream, appends under it are stamped
# above that moment, whatever the clock says. So on a state of that moment or before there is none yet, and nothing is
# put on record; elsewhere the search ends at the moment.

_TELLS: Final = re.compile(r"(?ai)([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}\Z")

_AHEAD: Final = 300 * PER_SECOND
"""By how much a key's moment may be ahead. What is stamped above it dates what follows in the stream."""


def told_by(key: str, now: Ticks) -> Ticks:
    """See `KeyedStreams.told_by`."""
    if (found := _TELLS.search(key)) is None:
        return NEVER
    moment = from_unix_nanoseconds(int(found[1] + found[2], 16) * 1_000_000)
    if moment > now + _AHEAD:
        raise InvalidInput("idempotency_key", "is a UUIDv7 of more than five minutes from now")
    return moment


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


def made_record(
    table: str, record: KeyRecord, append_id: bytes, made: bytes, seen: Sequence[Remembered] = ()
) -> Put:
    """The record that an append to several streams is written with, if the key is free, or its record as `seen`."""
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
    """Decode a record."""
    return Remembered(
        first=int(item["n"]["N"]),
        append_id=bytes(item["k"]["B"]) if "k" in item else None,
        etag=item["etag"]["S"] if "etag" in item else None,
        made=bytes(item["made"]["B"]) if "made" in item else b"",
    )


def check_contents(found: Remembered | None, append_id: bytes | None) -> None:
    """Raise `InvalidInput` where the record of a write was written with other contents, or of None with any."""
    if found is not None and found.append_id not in (None, append_id):
        raise InvalidInput("idempotency_key", "was used before for other contents")
