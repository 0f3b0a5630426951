"""Finding an append by its id, to tell our own write from another's after a lost response (DESIGN §5.3).

Contents are never compared: two writers may append equal events. Nor is an append taken for absent because it was not
found: only items that cover every index where it may stand show that. The Tip in hand may be older than a prune that
deletes those items meanwhile, so a gap between them counts as pruned.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from epochal.errors import InvalidInput
from epochal.layout.tips.items import Span, Tip, append_id, calf_key, read_span
from epochal.plan.ops import Items, Query, Steps
from epochal.plan.values import Key, number

WHOSE = 8
"""Leading bytes of an append id that tell appends apart; the rest is a digest of what was appended."""


class Earlier(Enum):
    """What a search that found nothing means."""

    ABSENT = "absent"
    PRUNED = "pruned"


def find(table: str, tip: Tip, wanted: bytes, at: int, *, or_later: bool) -> Steps[int | Earlier]:
    """Index of the append's first event: `at`, or with `or_later` any from there up to the Tip's version.

    Raises:
        InvalidInput: an append under the same idempotency key holds other events.
    """
    end = tip.version if or_later else at + 1
    found = _in_span(tip.span.since(at).before(end), wanted)
    if found is not None:
        return found
    if at >= tip.span.base:
        return Earlier.ABSENT
    return (yield from _in_calves(table, tip, wanted, at, min(end, tip.span.base)))


def _in_calves(table: str, tip: Tip, wanted: bytes, at: int, end: int) -> Steps[int | Earlier]:
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


def _in_span(span: Span, wanted: bytes) -> int | None:
    for index, stored in _append_ids(span):
        if stored[:WHOSE] == wanted[:WHOSE]:
            if stored != wanted:
                raise InvalidInput("Idempotency-Key", "was used before for an append of other events")
            return index
    return None


def _append_ids(span: Span) -> Iterator[tuple[int, bytes]]:
    for offset, event in enumerate(span.events):
        stored = append_id(event)
        if stored is not None:
            yield span.base + offset, stored
