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

from dataclasses import dataclass
from typing import Any, Generic, Protocol

from epochal.errors import InvalidInput
from epochal.layout.key_records import (
    KeyedWrite,
    KeyRecord,
    Remembered,
    check_contents,
    lower,
    recall,
    remember,
)
from epochal.layout.streams import (
    UNREAD,
    Answer,
    AnyStreamLayout,
    H,
    H_co,
    Head,
    Known,
    Rejected,
    Settled,
    Unknown,
    Unmet,
    Unread,
    Written,
    accepts,
    told,
    version_of,
)
from epochal.model.versions import AtVersion, ExpectedVersion, Token
from epochal.plan.ops import Steps


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
    known: Known[H] | Unread = told(expected)
    if known is not UNREAD and (yield from remember(table, record, version_of(known))) is None:
        return (yield from _tried(call, known))
    head = yield from attempts.load()
    # After the head, so that what it says covers every try that the head may have in it.
    if accepts(expected, head):
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

    layout: AnyStreamLayout
    table: str
    stream: str
    record: KeyRecord
    append_id: bytes


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
    if (yield from remember(key.table, key.record, version_of(known))) is None:
        return Free()
    head: Head | None = yield from key.layout.load(key.table, key.stream)
    # After the head, so that what it says covers every try that the head may have in it.
    found = yield from recall(key.table, key.record)
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
    if found.append_id is not None:
        raise InvalidInput("idempotency_key", "was used before for other contents")
    if head is not None:
        settled: Settled | None = yield from key.layout.decided(key.table, head, key.append_id, found.first)
        if settled is not None:
            return settled
    yield from lower(key.table, key.record, version_of(head), found)
    return None


def unfold_once(attempts: Attempts[H], expected: ExpectedVersion, record: KeyRecord) -> Steps[Answer[H]]:
    """Append unfolds alone, where they are known by the recorded key."""
    tried: set[str | None] = set()
    known: Known[H] | Unread = told(expected)
    if known is UNREAD:
        known = yield from attempts.load()
        if not accepts(expected, known):
            return (yield from _rejected(attempts, record, known, tried))
    seen: Remembered | None = None
    while True:
        sent = yield from attempts.unfold_on(known, record, seen)
        if isinstance(sent, Token):
            return Written(first=sent.version, version=sent.version, token=sent)
        if isinstance(sent, Unmet):
            return sent
        seen = sent.seen
        tried.add(sent.etag)
        if seen is not None and seen.append_id is not None:
            return (yield from _done(attempts, seen, tried))
        head = yield from sent.head
        if head is not None and seen is not None and (yield from attempts.is_pruned(head, seen.first)):
            return Unknown(first=seen.first)
        if not accepts(expected, head):
            return (yield from _rejected(attempts, record, head, tried))
        known = head


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
