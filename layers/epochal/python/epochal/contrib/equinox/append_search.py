"""Finds an append by its id, to tell a write of our own from another after a lost response (DESIGN §5.3).

Contents are never compared: two writers may append equal events. Nor does an append count as absent because a search
did not find it: only items that cover every index where it may be prove that. A gap between them means either that
they were pruned, which reading the Tip again confirms, or that a transaction is still putting a calf, and then the
search is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final

from epochal.errors import InvalidInput
from epochal.index.tip import StoredSpan, Tip, append_id, load_tip, query_calves, read_span
from epochal.layout.streams import decided_events
from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Items, Steps
from epochal.plan.values import Key

WHOSE = 8
"""Leading bytes of an append id that tell appends apart; the rest is a digest of what was appended."""

LOOKS: Final = 10
"""Most tries to read a calf that must be there: DynamoDB shows a transaction item by item, within milliseconds."""


class Earlier(Enum):
    """Result of a search that found no append: it is absent, or its place was pruned."""

    ABSENT = "absent"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedAppend:
    """An append that has been made, as its id marks it in the stream.

    Attributes:
        first: index of its first event.
        append_id: id of the append.
    """

    first: int
    append_id: bytes


def find(
    table: str, tip: Tip, id_to_find: bytes, index: int, *, or_later: bool
) -> Steps[MarkedAppend | Earlier]:
    """Search a stream's Tip and calves for an append by its id; return it, or why it is not found.

    Args:
        id_to_find: id of the append.
        index: index of its first event.
        or_later: whether the append may begin at any later index up to the Tip's version. Events in the Tip are
            searched from `index` on in either case.

    Raises:
        InvalidInput: an append under the same idempotency key holds other events.
    """
    end = tip.version if or_later else index + 1
    marked = _in_span(tip.span.since(index), id_to_find)
    if marked is not None:
        return marked
    if index >= tip.span.base:
        return Earlier.ABSENT
    for _ in range(LOOKS):
        calved = yield from _in_calves(table, tip, id_to_find, index, min(end, tip.span.base))
        if calved is not Earlier.PRUNED or (yield from _is_pruned(table, tip.stream, index)):
            return calved
    return Earlier.PRUNED


def _is_pruned(table: str, stream: str, index: int) -> Steps[bool]:
    """Read the Tip again, and return whether the event at an index is pruned, or the stream gone."""
    tip = yield from load_tip(table, stream)
    return tip is None or tip.low_water > index


def _in_calves(
    table: str, tip: Tip, id_to_find: bytes, index: int, end: int
) -> Steps[MarkedAppend | Earlier]:
    """Search the calves for an append, newest first; return it, absent, or pruned after a gap.

    A retry follows its first try closely, so new calves come first. Calves may overlap (see `reading`).
    """
    uncovered = end
    last: Key | None = None
    # The calf that holds one index is nearly always the last to begin at or before it.
    limit = 1 if end == index + 1 else None
    while True:
        reply: Items = yield query_calves(
            table, tip.stream, 0, end - 1, forward=False, limit=limit, after=last
        )
        for span in map(read_span, reply.items):
            marked = _in_span(span.since(index).before(end), id_to_find)
            if marked is not None:
                return marked
            if span.next >= uncovered:
                uncovered = min(uncovered, span.base)
            if uncovered <= index:
                return Earlier.ABSENT
        if reply.last is None:
            return Earlier.PRUNED
        last = reply.last


def _in_span(span: StoredSpan, id_to_find: bytes) -> MarkedAppend | None:
    """Return the append of the given id in a span, else None; raise if the id had other contents.

    Raises:
        InvalidInput: an append under the same idempotency key holds other contents.
    """
    for index, stored in _append_ids(span):
        if stored[:WHOSE] == id_to_find[:WHOSE]:
            both_decided = decided_events(stored) is not None is not decided_events(id_to_find)
            if stored != id_to_find and not both_decided:
                raise InvalidInput("idempotency_key", "was already used for an append with other contents")
            return MarkedAppend(first=index, append_id=stored)
    return None


def _append_ids(span: StoredSpan) -> Iterator[tuple[int, bytes]]:
    """Yield index and append id of each event in a span that has one."""
    for offset, event in enumerate(span.events):
        stored = append_id(event)
        if stored is not None:
            yield span.base + offset, stored
