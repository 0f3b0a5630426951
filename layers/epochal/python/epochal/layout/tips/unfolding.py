"""Unfolds alone under an idempotency key: written once, together with the record that says so.

written        the Tip and the key's record, in one transaction
refused by the record
  ├ it says that these unfolds were written     written, by this call or an earlier one
  ├ it says that others were                    refused: the key was used for other contents
  └ it bounds tries of events                   these are searched for; where there are none, again
refused by the Tip                              a conflict; or, where it still is what is expected, again
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
from epochal.layout.streams import Rejected, Unknown, Written
from epochal.layout.tips.append import calve_and_write
from epochal.layout.tips.batch import Known, Result, WireBatch
from epochal.layout.tips.calving import Calving
from epochal.layout.tips.find import Earlier, find
from epochal.layout.tips.items import Tip, read_tip
from epochal.layout.tips.reading import load_tip
from epochal.layout.tips.writes import create, etag_over, extend, version_of
from epochal.model.versions import ExpectedVersion, Token
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Overflow, Refusal, Steps, Transact


def unfold_once(
    table: str, batch: WireBatch, expected: ExpectedVersion, calving: Calving, record: KeyRecord
) -> Steps[Result]:
    """`append` of unfolds alone, where `batch.append_id` stems from the recorded key."""
    known: Known | Unread = told(expected)
    if known is UNREAD:
        known = yield from load_tip(table, batch.stream)
        if not accepts(expected, known):
            return (yield from _rejected(table, batch, record, known))
    seen: Remembered | None = None
    while True:
        write, token = create(table, batch) if known is None else extend(table, batch, known)
        note = done_record(table, record, batch, version_of(known), seen)
        reply: Done | Refusal | Overflow = yield Transact(writes=(write, note))
        if isinstance(reply, Done):
            return Written(first=token.version, version=token.version, token=token)
        if isinstance(reply, Overflow):
            known = yield from _emptied(table, batch, known, calving, token.size)
            continue
        (tip_there, record_there), (_, by_record) = reply.items, reply.failed
        if by_record and record_there is not None:
            seen = read_record(record_there)
            if seen.append_id is not None:
                return (yield from _done(table, batch, seen))
            tip = yield from load_tip(table, batch.stream)
        else:
            tip = None if tip_there is None else read_tip(tip_there)
        untellable = yield from _events(table, batch, tip, seen)
        if untellable is not None:
            return untellable
        if not accepts(expected, tip):
            return (yield from _rejected(table, batch, record, tip))
        known = tip


def _events(table: str, batch: WireBatch, tip: Tip | None, seen: Remembered | None) -> Steps[Unknown | None]:
    """Look for events under the key, which are refused: unfolds alone are other contents. None: there are none."""
    if tip is None or seen is None:
        return None
    found = yield from find(table, tip, batch.append_id, seen.first, or_later=True)
    return Unknown(first=seen.first) if found is Earlier.PRUNED else None


def _rejected(table: str, batch: WireBatch, record: KeyRecord, tip: Tip | None) -> Steps[Result]:
    """A Tip that is not what was expected: a conflict, unless the unfolds were written by an earlier call."""
    seen = yield from recall(table, record)
    if seen is not None and seen.append_id is not None:
        return (yield from _done(table, batch, seen))
    return Rejected(head=tip)


def _done(table: str, batch: WireBatch, seen: Remembered) -> Steps[Written]:
    check_contents(seen, batch)
    tip = yield from load_tip(table, batch.stream)
    version, ours = seen.first, tip is not None and tip.etag == seen.etag
    token = tip.token() if tip is not None and ours else Token(version=version, etag=seen.etag)
    return Written(first=version, version=version, token=token, replayed=seen.etag != batch.etag)


def _emptied(table: str, batch: WireBatch, known: Known, calving: Calving, size: int) -> Steps[Known]:
    """What is known once the Tip's events are in a calf, which makes room for the unfolds."""
    tip = known if isinstance(known, Tip) else (yield from load_tip(table, batch.stream))
    if tip is None or not tip.span.events:
        raise TooLarge("unfolds", size, ITEM_BYTES)
    if isinstance(known, Token) and known.etag != tip.etag:
        return known  # the next try is refused, and says what the Tip is
    bare = replace(batch, unfolds=None, etag=etag_over(batch.etag, tip))
    left = yield from calve_and_write(table, bare, tip, calving)
    return left if isinstance(left, Token) else known
