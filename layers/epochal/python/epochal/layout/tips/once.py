"""Appends of events under an idempotency key: one append within its stream, whatever is expected later.

    no record      it is put before the first try; then the append goes out as any other does
    a record       the stream is searched for the append id, from the record's bound up to the Tip that was read
      ├ found         appended, by an earlier call
      ├ pruned        undetermined
      └ absent        the append goes out on that Tip; where this is below the bound, the bound is lowered first

The record only bounds the search. What makes the append once: every try is conditional on a Tip up to which the search
has found nothing, and no try stands below the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from epochal.layout.expectations import UNREAD, Unread, accepts, told
from epochal.layout.key_records import KeyRecord, Remembered, check_contents, lower, recall, remember
from epochal.layout.streams import Rejected
from epochal.layout.tips.append import append_on, settle, too_late
from epochal.layout.tips.batch import Known, Result, WireBatch
from epochal.layout.tips.calving import Calving
from epochal.layout.tips.items import Tip
from epochal.layout.tips.reading import load_tip
from epochal.layout.tips.writes import version_of
from epochal.model.versions import ExpectedVersion
from epochal.plan.ops import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    table: str
    batch: WireBatch
    expected: ExpectedVersion
    calving: Calving
    record: KeyRecord


def append_once(
    table: str, batch: WireBatch, expected: ExpectedVersion, calving: Calving, record: KeyRecord
) -> Steps[Result]:
    """`append`, where `batch.append_id` stems from the recorded key."""
    call = _Call(table=table, batch=batch, expected=expected, calving=calving, record=record)
    known: Known | Unread = told(expected)
    if known is not UNREAD and (yield from remember(table, record, version_of(known))) is None:
        return (yield from _tried(call, known))
    tip = yield from load_tip(table, batch.stream)
    # After the Tip, so that what it says covers every try that the Tip may have in it.
    if accepts(expected, tip):
        found = yield from remember(table, record, version_of(tip))
    else:
        found = yield from recall(table, record)
    return (yield from _again(call, tip, found))


def _again(call: _Call, tip: Tip | None, found: Remembered | None) -> Steps[Result]:
    """What is to be done on a Tip that was read, with what the record said thereafter."""
    check_contents(found, call.batch)
    if found is not None and tip is not None:
        settled = yield from settle(call.table, call.batch, tip, found.first, repeatable=True)
        if settled is not None:
            return settled
    if not accepts(call.expected, tip):
        return (yield from too_late(call.table, call.batch, call.expected, tip))
    if found is not None:
        check_contents((yield from lower(call.table, call.record, version_of(tip), found)), call.batch)
    return (yield from _tried(call, tip, was_read=True))


def _tried(call: _Call, known: Known, *, was_read: bool = False) -> Steps[Result]:
    """Tries on what is known, and on what comes back as long as it is what is expected.

    Where the Tip was read, others may have used the key since. A token or an absence may be so old that a search of
    all that has come since would have no end; the record was fresh, so that hardly anybody can have used the key.
    """
    while True:
        result = yield from append_on(call.table, call.batch, known, call.calving, repeatable=was_read)
        if not isinstance(result, Rejected) or not accepts(call.expected, result.head):
            return result
        known = result.head
        check_contents((yield from recall(call.table, call.record)), call.batch)
