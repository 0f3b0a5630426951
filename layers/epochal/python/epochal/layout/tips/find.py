"""Finding an append by its id, to tell our own write from another's after a lost response (DESIGN §5.3).

Contents are never compared: two writers may append equal events. Nor is an append taken for absent because it was not
found: only items that cover every index where it may stand show that. A gap between them means that they were pruned,
which the Tip read again confirms, or that a transaction is still putting a calf, which is then looked for again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from epochal.errors import InvalidInput
from epochal.layout.streams import decided_events
from epochal.layout.tips.items import StoredSpan, Tip, append_id, calf_key, read_span, read_tip, tip_key
from epochal.plan.ops import Get, Items, Query, Steps
from epochal.plan.values import Key, number

WHOSE = 8
"""Leading bytes of an append id that tell appends apart; the rest is a digest of what was appended."""

LOOKS: Final = 10
"""For a calf that the Tip says is there: DynamoDB shows a transaction item by item, within milliseconds."""


class Earlier(Enum):
    """What a search that found nothing means."""

    ABSENT = "absent"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedAppend:
    """An append that has been made: the index of its first event, and its id."""

    first: int
    append_id: bytes


def find(table: str, tip: Tip, wanted: bytes, at: int, *, or_later: bool) -> Steps[MarkedAppend | Earlier]:
    """The append whose first event has index `at`, or with `or_later` any from there up to the Tip's version. What the
    Tip carries is looked through in either case.

    Raises:
        InvalidInput: an append under the same idempotency key holds other events.
    """
    end = tip.version if or_later else at + 1
    found = _in_span(tip.span.since(at), wanted)
    if found is not None:
        return found
    if at >= tip.span.base:
        return Earlier.ABSENT
    for _ in range(LOOKS):
        there = yield from _in_calves(table, tip, wanted, at, min(end, tip.span.base))
        if there is not Earlier.PRUNED or (yield from _is_pruned(table, tip.stream, at)):
            return there
    return Earlier.PRUNED


def _is_pruned(table: str, stream: str, at: int) -> Steps[bool]:
    reply = yield Get(table=table, key=tip_key(stream))
    return reply.item is None or read_tip(reply.item).low_water > at


def _in_calves(table: str, tip: Tip, wanted: bytes, at: int, end: int) -> Steps[MarkedAppend | Earlier]:
    """Newest calves first: a retry follows its first try closely. They may overlap (see `reading`)."""
    uncovered, last = end, None
    while True:
        reply: Items = yield _query(table, tip, at, end, last)
        for span in map(read_span, reply.items):
            found = _in_span(span.since(at).before(end), wanted)
            if found is not None:
                return found
            if span.next >= uncovered:
                uncovered = min(uncovered, span.base)
            if uncovered <= at:
                return Earlier.ABSENT
        if reply.last is None:
            return Earlier.PRUNED
        last = reply.last


def _query(table: str, tip: Tip, at: int, end: int, last: Key | None) -> Query:
    key = calf_key(tip.stream, 0)
    # The calf that holds one index is nearly always the last to begin at or before it.
    limit = 1 if end == at + 1 else None
    return Query(
        table=table,
        partition=("p", key["p"]),
        sort=("i", key["i"], number(end - 1)),
        forward=False,
        limit=limit,
        after=last,
    )


def _in_span(span: StoredSpan, wanted: bytes) -> MarkedAppend | None:
    for index, stored in _append_ids(span):
        if stored[:WHOSE] == wanted[:WHOSE]:
            both_decided = decided_events(stored) is not None is not decided_events(wanted)
            if stored != wanted and not both_decided:
                raise InvalidInput("idempotency_key", "was used before for other contents")
            return MarkedAppend(first=index, append_id=stored)
    return None


def _append_ids(span: StoredSpan) -> Iterator[tuple[int, bytes]]:
    for offset, event in enumerate(span.events):
        stored = append_id(event)
        if stored is not None:
            yield span.base + offset, stored
