"""Unfolds alone under an idempotency key: written once, together with the record that says so.

written        the page and the key's record, in one transaction
refused by the record
  ├ it says that these unfolds were written     written, by this call or an earlier one
  ├ it says that others were                    refused: the key was used for other contents
  └ it bounds tries of events                   these are searched for; where there are none, again
refused by the page                             a conflict; or, where the stream still is what is expected, again
"""

from __future__ import annotations

from dataclasses import replace

from epochal.errors import TooLarge
from epochal.layout.expectations import UNREAD, Unread, accepts, told
from epochal.layout.key_records import (
    KeyRecord,
    Remembered,
    check_contents,
    done_record,
    read_record,
    recall,
)
from epochal.layout.pages.attempt import Blocked, head_from, next_write
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.find import Earlier, find
from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.reading import load_head
from epochal.layout.pages.writes import Planned, can_be_left, version_of
from epochal.layout.streams import Known, Rejected, Result, Unknown, Written
from epochal.model.versions import ExpectedVersion, Token
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Overflow, Refusal, Steps, Transact


def unfold_once(
    table: str, batch: Packed, expected: ExpectedVersion, record: KeyRecord
) -> Steps[Result[Page]]:
    """`append` of unfolds alone, where the batch is known by the recorded key."""
    known: Known[Page] | Unread = told(expected)
    if known is UNREAD:
        known = yield from load_head(table, batch.stream)
        if not accepts(expected, known):
            return (yield from _rejected(table, batch, record, known))
    seen: Remembered | None = None
    tried: set[str | None] = set()
    while True:
        sent = yield from _write(table, batch, record, known, seen)
        if isinstance(sent, Planned):
            return Written(first=sent.token.version, version=sent.token.version, token=sent.token)
        blocked, seen = sent
        tried.add(None if blocked.planned is None else blocked.planned.token.etag)
        if seen is not None and seen.append_id is not None:
            return (yield from _done(table, batch, seen, tried))
        head = yield from head_from(table, batch.stream, blocked.page)
        untellable = yield from _events(table, batch, head, seen)
        if untellable is not None:
            return untellable
        if not accepts(expected, head):
            return (yield from _rejected(table, batch, record, head))
        known = head


def _write(
    table: str, batch: Packed, record: KeyRecord, known: Known[Page], seen: Remembered | None
) -> Steps[Planned | tuple[Blocked, Remembered | None]]:
    """One attempt: what was written, or what blocked it, and what the record says."""
    extending = True
    while True:
        planned = yield from next_write(table, batch, known, extending=extending)
        if isinstance(planned, Blocked):
            return planned, seen
        leaving = replace(batch, etag=planned.token.etag or "")
        note = done_record(table, record, leaving, version_of(known), seen)
        reply: Done | Refusal | Overflow = yield Transact(writes=(planned.write, note))
        if isinstance(reply, Done):
            return planned
        if isinstance(reply, Refusal):
            page, said = reply.items
            return (
                Blocked(page=None if page is None else read_page(page, table), planned=planned),
                seen if said is None else read_record(said),
            )
        if not extending or not can_be_left(known):
            raise TooLarge("unfolds", planned.token.size, ITEM_BYTES)
        extending = False


def _events(table: str, batch: Packed, head: Page | None, seen: Remembered | None) -> Steps[Unknown | None]:
    """Look for events under the key, which are refused: unfolds alone are other contents. None: there are none."""
    if head is None or seen is None:
        return None
    found = yield from find(table, head, batch, seen.first, or_later=True)
    return Unknown(first=seen.first) if found is Earlier.PRUNED else None


def _rejected(table: str, batch: Packed, record: KeyRecord, head: Page | None) -> Steps[Result[Page]]:
    """A last page that is not what was expected: a conflict, unless the unfolds were written by an earlier call."""
    seen = yield from recall(table, record)
    if seen is not None and seen.append_id is not None:
        return (yield from _done(table, batch, seen, set()))
    return Rejected(head=head)


def _done(table: str, batch: Packed, seen: Remembered, tried: set[str | None]) -> Steps[Written]:
    check_contents(seen, batch)
    head = yield from load_head(table, batch.stream)
    ours = head is not None and head.etag == seen.etag
    token = head.token() if head is not None and ours else Token(version=seen.first, etag=seen.etag)
    return Written(first=seen.first, version=seen.first, token=token, replayed=seen.etag not in tried)
