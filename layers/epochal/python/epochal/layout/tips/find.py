"""Finding an append by its id, to tell our own write from another's after a lost response (DESIGN §5.3).

Contents are never compared: two writers may append equal events.
"""

from __future__ import annotations

from enum import Enum

from epochal.errors import InvalidInput
from epochal.layout.tips.items import Span, Tip, append_id, calf_key, read_span
from epochal.plan.ops import Query, Steps
from epochal.plan.values import number

WHOSE = 8
"""Leading bytes of an append id that tell appends apart; the rest is a digest of what was appended."""


class Earlier(Enum):
    """What a search that found nothing means."""

    ABSENT = "absent"
    PRUNED = "pruned"


def find(table: str, tip: Tip, wanted: bytes, since: int) -> Steps[int | Earlier]:
    """Index of the append's first event at or above `since`, up to the Tip's version.

    Raises:
        InvalidInput: an append under the same idempotency key holds other events.
    """
    found = _in_span(tip.span.since(since), wanted)
    if found is not None:
        return found
    if since < tip.span.base:
        found = yield from _in_calves(table, tip, wanted, since)
        if found is not None:
            return found
    return Earlier.PRUNED if since < tip.low_water else Earlier.ABSENT


def _in_calves(table: str, tip: Tip, wanted: bytes, since: int) -> Steps[int | None]:
    """Newest calves first: a retry follows its first try closely."""
    lowest, last = calf_key(tip.stream, 0)["i"], None
    while True:
        reply = yield Query(
            table=table,
            partition=("p", calf_key(tip.stream, 0)["p"]),
            sort=("i", lowest, number(tip.span.base - 1)),
            forward=False,
            after=last,
        )
        for item in reply.items:
            span = read_span(item)
            found = _in_span(span.since(since), wanted)
            if found is not None:
                return found
            if span.base <= since:
                return None
        if reply.last is None:
            return None
        last = reply.last


def _in_span(span: Span, wanted: bytes) -> int | None:
    for offset, event in enumerate(span.events):
        stored = append_id(event)
        if stored is not None and stored[:WHOSE] == wanted[:WHOSE]:
            if stored != wanted:
                raise InvalidInput("Idempotency-Key", "was used before for an append of other events")
            return span.base + offset
    return None
