"""What a Tip tells the feed: the events that its latest write appended.

Calves carry no `a`, and lie elsewhere; a prune writes `a` 0. Equinox's own trim leaves `a` as it was and shortens `c`,
so `a` counts for no more than the types there are.
"""

from __future__ import annotations

from epochal.errors import CorruptData
from epochal.layout.tips.items import TIP, is_tip
from epochal.model.spans import End, Span
from epochal.plan.ops import Condition, Not, equals
from epochal.plan.values import Item, number, read_list, read_number

WHERE: Condition = equals("i", number(TIP))
"""What only Tips meet."""

MOVED: Condition = Not(equals("a", number(0)))
"""What a Tip meets that an append wrote: writes of unfolds, prunes and tombstones set `a` to 0. A Tip without a number
there was written by nobody who keeps the format, and counts: what a filter drops is gone without a trace.
"""


def appended(item: Item) -> Span | None:
    """The span that a Tip's latest write appended; None for calves, records, and writes without events.

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
        raise CorruptData(f"{item['p']['S']}: a Tip whose n and a do not fit each other")
    if latest == 0:
        return None
    return Span(item["p"]["S"], following - latest, tuple(types[-latest:]))


def end(item: Item) -> End | None:
    """Where the stream that a Tip heads ends; None for calves and records.

    Raises:
        CorruptData: the item looks like a Tip but its counters are missing or negative.
    """
    if not is_tip(item):
        return None
    following, pruned = read_number(item, "n"), read_number(item, "l") or 0
    if following is None or not 0 <= pruned <= following:
        raise CorruptData(f"{item['p']['S']}: a Tip whose n and l do not fit each other")
    return End(item["p"]["S"], following, pruned)


def stored(item: Item) -> Span | None:
    """The events that a Tip or a calf holds; None for an item without any.

    Raises:
        CorruptData: its counters are missing, or do not fit each other.
    """
    types = tuple(kind["S"] for kind in read_list(item, "c"))
    if not types:
        return None
    following = read_number(item, "n")
    if following is None or following < len(types):
        raise CorruptData(f"{item['p']['S']}: item {item['i']['N']} has n and c that do not fit each other")
    return Span(item["p"]["S"], following - len(types), types)
