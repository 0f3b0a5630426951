"""Reading tips; and named streams, as the feed sees them: heads are the Tips. This outlives the code: names are
stored (FORMATS §1).

What a Tip tells the feed is the events that its latest write appended. Calves carry no `a`, and lie elsewhere; a prune
writes `a` 0, and an etag that tells it from writes of unfolds. Equinox's own trim leaves `a` as it was and shortens
`c`, so `a` counts for no more than the types there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from epochal.contrib.equinox.append_search import LOOKS
from epochal.errors import CorruptData
from epochal.index.checkpoints import TIP, WHERE, calf_key, is_tip
from epochal.index.tip import (
    StoredSpan,
    Tip,
    TipCursor,
    TipPart,
    load_tip,
    next_part,
    query_calves,
    read_span,
    readable_spans,
)
from epochal.layout.changes import Change, RemovalKind, Span, Touched
from epochal.layout.healing import Heal, heal_streams
from epochal.layout.port import Archive, Permission, Port
from epochal.layout.source import End, Source
from epochal.layout.streams import ReadPart
from epochal.lazy_dataclasses import replace
from epochal.plan.conditions import BeginsWith, Condition, Not, equals
from epochal.plan.ops import Steps, TransactGet
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.plan.values import Item, Key, number, read_list, read_number
from epochal.settings import Options, Settings, variable

# Reading a stream, forward or backward, a part at a time. A read is complete, or says where it stopped.
#
# The Tip is read first and fixes the extent of the read (DESIGN §5.6): its version is the end, its own events need
# no further request, and events below its base are in calves. Every index below has a calf that holds it, but
# calves may overlap each other and the Tip: a prune that cuts a Tip gives it a base where a writer, which crashed or
# is slow, has put calves from before. So events that were read already are dropped by index, and the calf that holds an
# index is not always the last to begin at or before it. If no calf holds an index, there are four cases:
#
#     the Tip read again says that the stream was pruned past it      the read goes on above
#     a transaction is still putting the calf                         the read is repeated, and waits for it
#     no item has any event below it either                           another library has pruned the stream: it deletes
#                                                                     calves, oldest first, and leaves no mark
#     otherwise                                                       a hole in the middle: corruption
#
# A read reports the events that it skips: its cursor moves on without spans, and its low-water mark with it.
#
# A read is a value: `Cursor`s can be kept and resumed.


def begin(table: str, stream: str, start: int | None, *, forward: bool = True) -> Steps[TipCursor | None]:
    """Read the Tip of a stream and return a cursor before event `start`; None if there is no such stream.

    Args:
        start: index of the first event to read; None for the first event, or the last one in a backward read.
    """
    tip = yield from load_tip(table, stream)
    return None if tip is None else stand(tip, start, forward=forward)


def stand(head: Tip, start: int | None, *, forward: bool = True) -> TipCursor:
    """Return a cursor before event `start` of a stream whose Tip is in hand.

    Args:
        start: index of the first event to read; None for the first event, or the last one in a backward read.
    """
    if forward:
        start_index = max(start or 0, head.low_water)
        return TipCursor(head=head, at=start_index, forward=True, located=start_index == 0)
    last = head.version if start is None else min(start + 1, head.version)
    return TipCursor(head=head, at=last, forward=False)


def advance(
    table: str, cursor: TipCursor, limit: int | None = None, *, shared: bool = False, consistent: bool = True
) -> Steps[TipPart]:
    """Return the next part of a stream after a cursor; raise `CorruptData` if its next event is missing.

    Further requests are needed only to get round an overlap of calves, or to explain a hole.

    Args:
        limit: number of events wanted; more may come, since calves are read whole.
        shared: whether other libraries may prune the stream, and leave no mark.
        consistent: whether the first query is strongly consistent; otherwise some calves may be missing from it.

    Raises:
        CorruptData: an event is in no item, but was not pruned.
    """
    for look in range(LOOKS):
        part = yield from _advance(table, cursor, limit, consistent=consistent or look > 0)
        if part is not None:
            return part
    yield _build_barrier_read(table, cursor)
    part = yield from _advance(table, cursor, limit, consistent=True)
    if part is None and shared:
        part = yield from _pruned_by_others(table, cursor)
    if part is not None:
        return part
    raise CorruptData(f"{cursor.head.stream}: event {cursor.wanted} is in no item, but was not pruned")


def _advance(table: str, cursor: TipCursor, limit: int | None, *, consistent: bool) -> Steps[TipPart | None]:
    """Read the next part of a stream once; return None if no item holds the next event."""
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


def _backward(table: str, cursor: TipCursor, limit: int | None, *, consistent: bool) -> Steps[TipPart | None]:
    """Read the next part of a backward read from the calves; return None if no calf holds the event."""
    last: Key | None = None
    while True:
        reply = yield query_calves(
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
        for span in readable_spans(reply.items):
            if span.base < cursor.at <= span.next and not cursor.at_end:
                spans.append(span.before(cursor.at).since(cursor.head.low_water))
                cursor = replace(cursor, at=spans[-1].base)
        if spans:
            return ReadPart(spans=tuple(spans), cursor=cursor)
        if reply.last is None:
            return None
        last = reply.last


def _pruned_meanwhile(table: str, cursor: TipCursor) -> Steps[TipPart | None]:
    """Read the Tip again, and move the cursor past events pruned meanwhile; return None if none were.

    It is called if no item holds the event wanted.
    """
    fresh = yield from load_tip(table, cursor.head.stream)
    return None if fresh is None else _passed(cursor, fresh.low_water)


def _pruned_by_others(table: str, cursor: TipCursor) -> Steps[TipPart | None]:
    """Return an empty part at the first event left if the next was pruned by another library, else None.

    It is called if no item holds the event wanted. Returns None if the stream has older events, so that the event
    wanted is a hole.
    """
    last: Key | None = None
    mark = cursor.head.low_water
    while True:
        # Calves that lie wholly below the mark are still to be deleted, and tell nothing.
        limit = None if mark else 1
        reply = yield query_calves(
            table, cursor.head.stream, 0, cursor.head.span.base - 1, limit=limit, after=last
        )
        for span in map(read_span, reply.items):
            if span.next > mark:
                return _passed(cursor, span.base)
        if reply.last is None:
            return _passed(cursor, cursor.head.span.base)
        last = reply.last


def _passed(cursor: TipCursor, low_water: int) -> TipPart | None:
    """Move a cursor up to a low-water mark; return None if the event wanted is not below the mark."""
    if low_water <= cursor.wanted:
        return None
    mark = min(low_water, cursor.head.version)
    tip = replace(cursor.head, low_water=mark)
    return ReadPart(spans=(), cursor=replace(cursor, head=tip, at=mark, located=False))


def _build_barrier_read(table: str, cursor: TipCursor) -> TransactGet:
    """Return a read that waits for transactions on the Tip, and on calves where one is likely to be put."""
    bases = sorted({0, cursor.head.low_water, cursor.wanted, TIP})
    return TransactGet(keys=tuple((table, calf_key(cursor.head.stream, base)) for base in bases))


# What the feed and a deployment need.

TIPS: Final = TableSpec(
    kind="tips",
    help="Table of streams that are stored as tips",
    partition=KeyAttribute(name="p", type="S"),
    sort=KeyAttribute(name="i", type="N"),
    ttl="ttl",
    stream=True,
)
"""Table of streams of events as tips and calves. `ttl` is set on idempotency records only."""

ARCHIVE: Final = TableSpec(kind="archive", partition=TIPS.partition, sort=TIPS.sort)
"""Table of events that were copied before they were pruned."""

MOVED: Condition = Not(equals("a", number(0)))
"""Condition that a Tip meets if an append wrote it: writes of unfolds, prunes and tombstones set `a` to 0.

A Tip whose `a` is no number breaks the format, and meets the condition: a filter would drop it without a trace.
"""

REMOVING: Final = "dead"
"""Prefix of the etag of a prune or a deletion, by which the feed knows it.

One in 65,536 of other writes has such an etag too, and only repeats to the feed what it knows."""

PRUNED: Condition = BeginsWith("etag", REMOVING)
"""Condition that a Tip meets if a prune or a deletion wrote it."""


def removing(etag: str) -> str:
    """Return an etag with the prefix that marks a write as one that removes events."""
    return REMOVING + etag[len(REMOVING) :]


def tips_source(table: str, partitions: int = 1) -> Source:
    """Make the feed's source of the streams that are stored as tips in a table.

    Args:
        partitions: number of partitions of the source.
    """
    return Source(
        name="tips",
        table=table,
        partitions=partitions,
        setting=variable("tips_partitions"),
        appended=appended,
        heal=heal_tips(table),
        end=end,
        change_up_to=_change_up_to,
        where=WHERE,
        moved=MOVED,
        pruned=PRUNED,
        stored=stored,
    )


def heal_tips(table: str) -> Heal:
    """Make a function that reads the events of a gap in a stream from its Tip and calves."""
    return heal_streams("tips", partial(begin, table), partial(advance, table, shared=True))


def appended(item: Item) -> Change | None:
    """Return a Tip's latest change, a span of events or a removal; None without one and for other items.

    None for calves, records, and other writes without events.

    Raises:
        CorruptData: the item looks like a Tip but its counters are missing or negative.
    """
    if not is_tip(item):
        return None
    latest, following = read_number(item, "a"), read_number(item, "n")
    types = [kind["S"] for kind in read_list(item, "c")]
    if latest is not None:
        latest = min(latest, len(types))
    if latest is None or following is None or not 0 <= latest <= following:
        raise CorruptData(f"{item['p']['S']}: a Tip with inconsistent n and a")
    if latest == 0:
        ends = end(item) if item.get("etag", {}).get("S", "").startswith(REMOVING) else None
        return None if ends is None else ends.removal
    return Span(item["p"]["S"], following - latest, tuple(types[-latest:]))


def end(item: Item) -> End | None:
    """Return the end of the stream that a Tip belongs to; None for calves and records.

    Raises:
        CorruptData: the item looks like a Tip but its counters are missing or negative.
    """
    if not is_tip(item):
        return None
    following, pruned = read_number(item, "n"), read_number(item, "l") or 0
    if following is None or not 0 <= pruned <= following:
        raise CorruptData(f"{item['p']['S']}: a Tip with inconsistent n and l")
    kind: RemovalKind = "deleted" if "z" in item else "pruned"
    if kind == "pruned" and 0 < following == pruned and "u" not in item:
        kind = "emptied"
    return End(item["p"]["S"], following, pruned, left=kind)


def stored(item: Item) -> Span | None:
    """Return the span of the events that a Tip or a calf holds; None for an item without any.

    Raises:
        CorruptData: its counters are missing, or do not fit each other.
    """
    types = tuple(kind["S"] for kind in read_list(item, "c"))
    if not types:
        return None
    following = read_number(item, "n")
    if following is None or following < len(types):
        raise CorruptData(f"{item['p']['S']}: item {item['i']['N']} has inconsistent n and c")
    return Span(item["p"]["S"], following - len(types), types)


def _change_up_to(item: Item) -> Change | None:
    """Return a Tip's events as a change, `Touched` without events; None for items that are no Tips.

    For most streams these are all events, so nothing else need be read. A Tip without events says only that its stream
    was touched.
    """
    ends = end(item)
    if ends is None:
        return None
    carried = stored(item)
    return Touched(stream=ends.stream) if carried is None else carried


def _source(settings: Settings) -> Source:
    """Make the feed's source of the streams as tips of a deployment's settings."""
    return tips_source(settings.table("tips"), settings.partitions("tips_partitions"))


def _kind_of(item: Item) -> str | None:
    """Return the kind of the table of tips for a Tip or a calf of a stream; None for other items.

    The index has tips and calves too, under names that begin with `$`.
    """
    if not item.keys() >= set(TIPS.keys) or item["p"].get("S", "$").startswith("$"):
        return None
    return TIPS.kind if is_tip(item) or "c" in item else None


def _access(_: Options) -> Mapping[str, tuple[Permission, ...]]:
    """Return the permissions on the table of tips that each deployed function needs, by its name.

    A stream is read by its key, Tip and calves; a Tip is put and updated; a calf is put, and deleted after a prune.
    """
    actions = {
        "append": ("GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
        "timers": ("GetItem", "Query", "PutItem", "UpdateItem"),
        "replay": ("GetItem", "Query"),
        "feed": ("GetItem", "Query"),
        "indexer": ("GetItem", "Query"),
        "auditor": ("GetItem", "Query", "Scan"),
        "reaction": ("GetItem", "Query"),
    }
    return {function: (Permission(table=TIPS, actions=names),) for function, names in actions.items()}


PORT: Final = Port(
    tables=(TIPS,),
    kind_of=_kind_of,
    access=_access,
    heads=TIPS,
    source=_source,
    # A Tip is read by its key.
    archive=Archive(
        table=ARCHIVE, copying=("GetItem", "PutItem", "UpdateItem"), reading=("GetItem", "Query")
    ),
)
