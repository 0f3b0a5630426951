"""Reading a stream, forward or backward, a part at a time, complete or saying where it stopped.

The Tip is read first and fixes what the read is of (DESIGN §5.6): its version is the end, its own events need
no further request, and what lies below its base is in calves. Every index below has a calf that holds it, but
calves may overlap each other and the Tip: a prune that cuts a Tip gives it a base where a writer, which crashed or
is slow, has put calves from before. So what has been passed is dropped by index, and the calf that holds an index
is not always the last to begin at or before it. Where none does,

    the Tip read again says that the stream was pruned past it      the read goes on above
    a transaction is still putting the calf                         it is looked for again, and waited for
    no item has any event below it either                           another library has pruned the stream: it deletes
                                                                    calves, oldest first, and leaves no mark
    otherwise                                                       a hole in the middle: corruption

What a read passes over it shows: its cursor moves on without spans, and its low-water mark with it.

A read is a value: `Cursor`s can be kept and resumed.
"""

from __future__ import annotations

from epochal.contrib.equinox.append import LOOKS
from epochal.errors import CorruptData
from epochal.index.checkpoints import TIP, calf_key
from epochal.index.tip import Cursor, Part, StoredSpan, Tip, calves, load_tip, next_part, read_span, sound
from epochal.layout.streams import ReadPart
from epochal.lazy_dataclasses import replace
from epochal.plan.ops import Steps, TransactGet
from epochal.plan.values import Key


def begin(table: str, stream: str, start: int | None, *, forward: bool = True) -> Steps[Cursor | None]:
    """Read the Tip and stand before event `start`, or before all of them. None: there is no such stream."""
    tip = yield from load_tip(table, stream)
    return None if tip is None else stand(tip, start, forward=forward)


def stand(head: Tip, start: int | None, *, forward: bool = True) -> Cursor:
    """Stand before event `start` of a stream whose Tip is in hand."""
    if forward:
        at = max(start or 0, head.low_water)
        return Cursor(head=head, at=at, forward=True, located=at == 0)
    last = head.version if start is None else min(start + 1, head.version)
    return Cursor(head=head, at=last, forward=False)


def advance(
    table: str, cursor: Cursor, limit: int | None = None, *, shared: bool = False, consistent: bool = True
) -> Steps[Part]:
    """One part more: one request, and others only to get round an overlap or to explain a hole.

    Args:
        limit: events wanted; more may come, since calves are read whole.
        shared: other libraries may prune the stream, and leave no mark.
        consistent: False looks first at an older state of the calves: some may be missing from it.

    Raises:
        CorruptData: an event is in no item, and was not pruned.
    """
    for look in range(LOOKS):
        part = yield from _advance(table, cursor, limit, consistent=consistent or look > 0)
        if part is not None:
            return part
    yield _settled(table, cursor)
    part = yield from _advance(table, cursor, limit, consistent=True)
    if part is None and shared:
        part = yield from _pruned_by_others(table, cursor)
    if part is not None:
        return part
    raise CorruptData(f"{cursor.head.stream}: event {cursor.wanted} is in no item, and was not pruned")


def _advance(table: str, cursor: Cursor, limit: int | None, *, consistent: bool) -> Steps[Part | None]:
    if cursor.forward:
        part = yield from next_part(table, cursor, limit, consistent=consistent)
    elif cursor.at_end:
        return ReadPart(spans=(), cursor=cursor)
    elif cursor.at > cursor.head.span.base:
        own = cursor.head.span.before(cursor.at).since(cursor.head.low_water)
        return ReadPart(spans=(own,), cursor=replace(cursor, at=own.base))
    else:
        part = yield from _backward(table, cursor, limit, consistent=consistent)
    return part or (yield from _pruned_meanwhile(table, cursor))


def _backward(table: str, cursor: Cursor, limit: int | None, *, consistent: bool) -> Steps[Part | None]:
    last: Key | None = None
    while True:
        reply = yield calves(
            table,
            cursor.head.stream,
            0,
            cursor.at - 1,
            forward=False,
            limit=limit,
            after=last,
            consistent=consistent,
        )
        spans: list[StoredSpan] = []
        for span in sound(reply.items):
            if span.base < cursor.at <= span.next and not cursor.at_end:
                spans.append(span.before(cursor.at).since(cursor.head.low_water))
                cursor = replace(cursor, at=spans[-1].base)
        if spans:
            return ReadPart(spans=tuple(spans), cursor=cursor)
        if reply.last is None:
            return None
        last = reply.last


def _pruned_meanwhile(table: str, cursor: Cursor) -> Steps[Part | None]:
    """No item holds the event wanted: if the stream was pruned past it, go on from there."""
    fresh = yield from load_tip(table, cursor.head.stream)
    return None if fresh is None else _passed(cursor, fresh.low_water)


def _pruned_by_others(table: str, cursor: Cursor) -> Steps[Part | None]:
    """No item holds the event wanted: if the stream begins above it, another library pruned it; go on from there."""
    last: Key | None = None
    mark = cursor.head.low_water
    while True:
        # Calves that lie wholly below the mark are still to be deleted, and tell nothing.
        limit = None if mark else 1
        reply = yield calves(table, cursor.head.stream, 0, cursor.head.span.base - 1, limit=limit, after=last)
        for span in map(read_span, reply.items):
            if span.next > mark:
                return _passed(cursor, span.base)
        if reply.last is None:
            return _passed(cursor, cursor.head.span.base)
        last = reply.last


def _passed(cursor: Cursor, low_water: int) -> Part | None:
    """Go on from a low-water mark, if the event wanted lies below it."""
    if low_water <= cursor.wanted:
        return None
    mark = min(low_water, cursor.head.version)
    tip = replace(cursor.head, low_water=mark)
    return ReadPart(spans=(), cursor=replace(cursor, head=tip, at=mark, located=False))


def _settled(table: str, cursor: Cursor) -> TransactGet:
    """A read that waits for transactions on the Tip, and on calves where they are likely to be put."""
    bases = sorted({0, cursor.head.low_water, cursor.wanted, TIP})
    return TransactGet(keys=tuple((table, calf_key(cursor.head.stream, base)) for base in bases))
