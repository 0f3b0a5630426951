"""Appends of events under an idempotency key: one append within its stream, whatever is expected later.

    no record      it is put before the first try; then the append goes out as any other does
    a record       the stream is searched for the append, from the record's bound up to the last page that was read
      ├ found         appended, by an earlier call
      ├ pruned        undetermined
      └ absent        the append goes out on that page; where it ends below the bound, the bound is lowered first

The record only bounds the search. What makes the append once: every try is conditional on a page up to which the search
has found nothing, and no try stands below the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochal.layout.expectations import UNREAD, Unread, accepts, told
from epochal.layout.key_records import KeyRecord, Remembered, check_contents, lower, recall, remember
from epochal.layout.pages.append import append_on, settle, too_late
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.items import Page
from epochal.layout.pages.reading import load_head
from epochal.layout.pages.writes import version_of
from epochal.layout.streams import Known, Rejected, Result
from epochal.model.versions import ExpectedVersion
from epochal.plan.ops import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    table: str
    batch: Packed
    expected: ExpectedVersion
    record: KeyRecord


def append_once(
    table: str, batch: Packed, expected: ExpectedVersion, record: KeyRecord
) -> Steps[Result[Page]]:
    """`append`, where the batch is known by the recorded key."""
    call = _Call(table=table, batch=batch, expected=expected, record=record)
    known: Known[Page] | Unread = told(expected)
    if known is not UNREAD and (yield from remember(table, record, version_of(known))) is None:
        return (yield from _tried(call, known))
    head = yield from load_head(table, batch.stream)
    # After the page, so that what it says covers every try that the page may have in it.
    if accepts(expected, head):
        found = yield from remember(table, record, version_of(head))
    else:
        found = yield from recall(table, record)
    return (yield from _again(call, head, found))


def _again(call: _Call, head: Page | None, found: Remembered | None) -> Steps[Result[Page]]:
    """What is to be done on a page that was read, with what the record said thereafter."""
    check_contents(found, call.batch)
    if found is not None and head is not None:
        settled = yield from settle(call.table, call.batch, head, found.first, repeatable=True)
        if settled is not None:
            return settled
    if not accepts(call.expected, head):
        return (yield from too_late(call.table, call.batch, call.expected, head))
    if found is not None:
        check_contents((yield from lower(call.table, call.record, version_of(head), found)), call.batch)
    return (yield from _tried(call, head, was_read=True))


def _tried(call: _Call, known: Known[Page], *, was_read: bool = False) -> Steps[Result[Page]]:
    """Tries on what is known, and on what comes back as long as it is what is expected.

    Where the page was read, others may have used the key since. A token or an absence may be so old that a search of
    all that has come since would have no end; the record was fresh, so that hardly anybody can have used the key.
    """
    while True:
        result = yield from append_on(call.table, call.batch, known, repeatable=was_read)
        if not isinstance(result, Rejected) or not accepts(call.expected, result.head):
            return result
        known = result.head
        check_contents((yield from recall(call.table, call.record)), call.batch)
