"""Appends under an idempotency key: one append to the stream, whatever version later calls expect.

    no record      it is put before the first try; then the append goes out as any other does
    a record       the stream is searched for the append, from the record's bound up to the head that was read
      ├ found         appended, by an earlier call
      ├ pruned        undetermined
      └ absent        the append goes out on that head; where it ends below the bound, the bound is lowered first
    refused again   it pauses (`giving_way`); then the append is looked for in what was written meanwhile

The record only limits the search. The batch is appended only once because every try is conditional on a head up to
which the search has found nothing, and no try is below the bound.

Unfolds alone leave no trace once replaced. They are written once, together with the record that says so.

    written        the head and the key's record, in one transaction
    refused by the record
      ├ it says that these unfolds were written     written, by this call or an earlier one
      ├ it says that others were                    refused: the key was used for other contents
      └ it bounds tries of events                   these are searched for; where there are none, again
    refused by the head                             a conflict; or, where it still is what is expected, again, from
                                                    the second refusal on after a pause

A layout defines what it can try with a batch under a key (`Attempts`); this module defines the order of the tries, for
all layouts.
"""

from __future__ import annotations

from typing import Generic, Protocol

from epochal.errors import InvalidInput
from epochal.layout.giving_way import pause_after
from epochal.layout.key_records import (
    KeyedWrite,
    KeyRecord,
    RecordContents,
    check_contents,
    load_record,
    lower_bound,
    put_record,
)
from epochal.layout.outcomes import conflict_at, refusing_head
from epochal.layout.streams import H, H_co, Known, accepts
from epochal.lazy_dataclasses import dataclass
from epochal.model.expected_version import UNREAD, AtVersion, ExpectedVersion, Unread, expected_head
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import Token, version_of
from epochal.plan.ops import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfoldsRefused(Generic[H_co]):
    """The reply to a write of unfolds alone that was refused.

    Attributes:
        head: steps that read the current head of the stream.
        seen: contents of the key's record; None where there is none.
        etag: etag that the write would have left; None where no write was sent.
    """

    head: Steps[H_co | None]
    seen: RecordContents | None
    etag: str | None


class Attempts(Protocol[H]):
    """One batch that an idempotency key identifies, and the requests that can be tried with the batch."""

    @property
    def table(self) -> str:
        """Name of the table that the batch is written to."""

    @property
    def batch(self) -> KeyedWrite:
        """The batch that is appended."""

    def load(self, *, recent: bool = False) -> Steps[H | None]:
        """Read the head of the batch's stream; None if there is no such stream.

        Args:
            recent: whether the newest events will be searched. A layout may read some of them with the head.
        """

    def append_on(self, known_head: Known[H], *, repeatable: bool) -> Steps[Outcome]:
        """Append events on exactly the known head; return the outcome.

        Args:
            repeatable: whether another process may have appended the batch since that head.
        """

    def is_new(self, known_head: Known[H]) -> bool | None:
        """Whether nothing known of the stream was written after the key's moment (`KeyedStreams.is_new`)."""

    def settle(self, head: H, since: int, *, repeatable: bool) -> Steps[Appended | Undetermined | None]:
        """Look for the batch in the stream from index `since` on; None if it is not there.

        Args:
            repeatable: whether another process may have appended the batch.
        """

    def unfold_on(
        self, known_head: Known[H], record: KeyRecord, seen: RecordContents | None
    ) -> Steps[Token | UnfoldsRefused[H] | Conflict]:
        """Write unfolds alone and the key's record on the known head; return the token, refusal or conflict.

        Args:
            seen: contents that the record must still have; None for no record.

        Returns:
            The new token, the refusal, or the conflict with conditions of other writes.
        """

    def is_pruned(self, head: H, since: int) -> Steps[bool]:
        """Return whether events that the key may have appended from index `since` on are pruned.

        Then it can no longer be found out whether they were appended.

        Raises:
            InvalidInput: events were appended under the key; unfolds alone are other contents.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call(Generic[H]):
    """One append under an idempotency key: the batch, its expected version and the key's record."""

    attempts: Attempts[H]
    expected: ExpectedVersion
    record: KeyRecord


def append_once(attempts: Attempts[H], expected: ExpectedVersion, record: KeyRecord) -> Steps[Outcome]:
    """Append events under an idempotency key, unless an earlier call has; return the outcome.

    Args:
        attempts: the batch, and the requests that can be tried with it.
        expected: expected version of the stream.
        record: the key's record.

    Returns:
        The outcome: undetermined if the evidence is pruned.
    """
    call = _Call(attempts=attempts, expected=expected, record=record)
    table = attempts.table
    known_head: Known[H] | Unread = expected_head(expected)
    new: bool | None = None
    if known_head is not UNREAD:
        new = attempts.is_new(known_head)
        if new or (new is None and (yield from put_record(table, record, version_of(known_head))) is None):
            return (yield from _append_with_retries(call, known_head))
    # Where the known head is newer than the key, what came since will be searched.
    head = yield from attempts.load(recent=new is False)
    # The record is read after the head, so that its bound covers every try that the head may contain.
    if (new := attempts.is_new(head)) is not None:
        contents = None if new else (yield from load_record(table, record)) or RecordContents(first=0)
    elif accepts(expected, head):
        contents = yield from put_record(table, record, version_of(head))
    else:
        contents = yield from load_record(table, record)
    return (yield from _find_or_append(call, head, contents))


def _find_or_append(call: _Call[H], head: H | None, contents: RecordContents | None) -> Steps[Outcome]:
    """Return the outcome of an earlier append, sought in a stream whose head was read; else append.

    Args:
        head: the head that was read.
        contents: contents of the key's record, read after the head; None if there is none.
    """
    attempts = call.attempts
    check_contents(contents, attempts.batch.append_id)
    if contents is not None and head is not None:
        settled = yield from attempts.settle(head, contents.first, repeatable=True)
        if settled is not None:
            return settled
    if not accepts(call.expected, head):
        return (yield from _conflict_or_outcome(call, head))
    if contents is not None:
        lowered = yield from lower_bound(attempts.table, call.record, version_of(head), contents)
        check_contents(lowered, attempts.batch.append_id)
    return (yield from _append_with_retries(call, head, was_read=True))


def _conflict_or_outcome(call: _Call[H], head: H | None) -> Steps[Outcome]:
    """Return the conflict of an append at a wrong version, or its result if it was made already."""
    if head is not None and isinstance(call.expected, AtVersion | Token):
        settled = yield from call.attempts.settle(head, call.expected.version, repeatable=False)
        if settled is not None:
            return settled
    return conflict_at(head)


def _append_with_retries(call: _Call[H], known_head: Known[H], *, was_read: bool = False) -> Steps[Outcome]:
    """Append on the known head, or on newer ones that meet the expected version; return the outcome.

    If the head was read, other processes may have used the key since then. A token or an absence may be so old that a
    search of all later events would have no end; but the record was new, so hardly anybody can have used the key.

    Args:
        known_head: known head of the stream.
        was_read: whether the head was read in this call.
    """
    attempts, refusals = call.attempts, 0
    while True:
        outcome = yield from attempts.append_on(known_head, repeatable=was_read)
        if not isinstance(outcome, Conflict) or outcome.unmet:
            return outcome
        head = refusing_head(outcome)
        if not accepts(call.expected, head):
            return outcome
        refusals += 1
        pause = pause_after(refusals)
        if pause is None:
            known_head = head
        else:
            yield pause
            newer = yield from _newer_head(call, head, repeatable=was_read)
            if isinstance(newer, Appended | Conflict | Undetermined):
                return newer
            known_head = newer
        check_contents((yield from load_record(attempts.table, call.record)), attempts.batch.append_id)


def _newer_head(call: _Call[H], head: H | None, *, repeatable: bool) -> Steps[H | Outcome | None]:
    """Read the head again; return it, or the outcome if it has the append or is not as expected.

    Args:
        head: head up to which the append is not in the stream.
        repeatable: whether another process may have appended the batch.
    """
    newer = yield from call.attempts.load()
    if newer is not None:
        settled = yield from call.attempts.settle(newer, version_of(head), repeatable=repeatable)
        if settled is not None:
            return settled
    return newer if accepts(call.expected, newer) else conflict_at(newer)


def unfold_once(attempts: Attempts[H], expected: ExpectedVersion, record: KeyRecord) -> Steps[Outcome]:
    """Write unfolds alone under an idempotency key, unless an earlier call has; return the outcome.

    Args:
        attempts: the batch, and the requests that can be tried with it.
        expected: expected version of the stream.
        record: the key's record.

    Returns:
        The outcome of the write.
    """
    tried_etags: set[str | None] = set()
    refusals = 0
    known_head: Known[H] | Unread = expected_head(expected)
    if known_head is UNREAD or attempts.is_new(known_head) is False:
        known_head = yield from attempts.load()
    contents: RecordContents | None = None
    while True:
        if not isinstance(known_head, Token):
            first = (
                0 if attempts.is_new(known_head) is False else None if contents is None else contents.first
            )
            if (
                known_head is not None
                and first is not None
                and (yield from attempts.is_pruned(known_head, first))
            ):
                return Undetermined(first=first)
            if not accepts(expected, known_head):
                return (yield from _conflict_or_recorded_outcome(attempts, record, known_head, tried_etags))
        reply = yield from attempts.unfold_on(known_head, record, contents)
        if isinstance(reply, Token):
            return Appended(first=reply.version, version=reply.version, token=reply)
        if isinstance(reply, Conflict):
            return reply
        contents = reply.seen
        tried_etags.add(reply.etag)
        if contents is not None and contents.append_id is not None:
            return (yield from _recorded_outcome(attempts, contents, tried_etags))
        refusals += 1
        pause = pause_after(refusals)
        if pause is None:
            known_head = yield from reply.head
        else:
            yield pause
            known_head = yield from attempts.load()


def _conflict_or_recorded_outcome(
    attempts: Attempts[H], record: KeyRecord, head: H | None, tried_etags: set[str | None]
) -> Steps[Outcome]:
    """Return the conflict of unfolds at a wrong version, or their result if the key's record has it.

    Args:
        tried_etags: etags that this call has tried to leave.
    """
    contents = yield from load_record(attempts.table, record)
    if contents is not None and contents.append_id is not None:
        return (yield from _recorded_outcome(attempts, contents, tried_etags))
    return conflict_at(head)


def _recorded_outcome(
    attempts: Attempts[H], contents: RecordContents, tried_etags: set[str | None]
) -> Steps[Appended]:
    """Make the result of unfolds that the key's record says were written; raise for other contents.

    Args:
        contents: contents of the record.
        tried_etags: etags that this call has tried to leave; with another etag an earlier call wrote them.

    Raises:
        InvalidInput: the key was used for other contents.
    """
    check_contents(contents, attempts.batch.append_id)
    if contents.etag is None:
        raise InvalidInput("idempotency_key", "was already used for an append with a condition")
    head = yield from attempts.load()
    unchanged = head is not None and head.etag == contents.etag
    token = (
        head.token() if head is not None and unchanged else Token(version=contents.first, etag=contents.etag)
    )
    return Appended(
        first=contents.first, version=contents.first, token=token, replayed=contents.etag not in tried_etags
    )
