"""Unfolds alone under an idempotency key: written once, together with the record that says so.

written        the head and the key's record, in one transaction
refused by the record
  ├ it says that these unfolds were written     written, by this call or an earlier one
  ├ it says that others were                    refused: the key was used for other contents
  └ it bounds tries of events                   these are searched for; where there are none, again
refused by the head                             a conflict; or, where it still is what is expected, again
"""

from __future__ import annotations

from epochal.layout.attempts import Attempts
from epochal.layout.expectations import UNREAD, Unread, accepts, told
from epochal.layout.key_records import KeyRecord, Remembered, check_contents, recall
from epochal.layout.streams import H, Known, Rejected, Result, Unknown, Written
from epochal.model.versions import ExpectedVersion, Token
from epochal.plan.ops import Steps


def unfold_once(attempts: Attempts[H], expected: ExpectedVersion, record: KeyRecord) -> Steps[Result[H]]:
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
) -> Steps[Result[H]]:
    """A head that is not what was expected: a conflict, unless the unfolds were written by an earlier call."""
    seen = yield from recall(attempts.table, record)
    if seen is not None and seen.append_id is not None:
        return (yield from _done(attempts, seen, tried))
    return Rejected(head=head)


def _done(attempts: Attempts[H], seen: Remembered, tried: set[str | None]) -> Steps[Written]:
    check_contents(seen, attempts.batch.append_id)
    head = yield from attempts.load()
    ours = head is not None and head.etag == seen.etag
    token = head.token() if head is not None and ours else Token(version=seen.first, etag=seen.etag)
    return Written(first=seen.first, version=seen.first, token=token, replayed=seen.etag not in tried)
