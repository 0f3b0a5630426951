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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic

from epochal.errors import InvalidInput
from epochal.layout.attempts import Attempts
from epochal.layout.expectations import UNREAD, Unread, accepts, told, version_of
from epochal.layout.key_records import KeyRecord, Remembered, check_contents, lower, recall, remember
from epochal.layout.streams import AnyStreamLayout, H, Head, Known, Rejected, Result, Settled
from epochal.model.versions import AtVersion, ExpectedVersion, Token
from epochal.plan.ops import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call(Generic[H]):
    attempts: Attempts[H]
    expected: ExpectedVersion
    record: KeyRecord


def append_once(attempts: Attempts[H], expected: ExpectedVersion, record: KeyRecord) -> Steps[Result[H]]:
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


def _again(call: _Call[H], head: H | None, found: Remembered | None) -> Steps[Result[H]]:
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


def _too_late(call: _Call[H], head: H | None) -> Steps[Result[H]]:
    """A head that was read is not what was expected: a conflict, unless this append is itself the cause."""
    if head is not None and isinstance(call.expected, AtVersion | Token):
        settled = yield from call.attempts.settle(head, call.expected.version, repeatable=False)
        if settled is not None:
            return settled
    return Rejected(head=head)


def _tried(call: _Call[H], known: Known[H], *, was_read: bool = False) -> Steps[Result[H]]:
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
