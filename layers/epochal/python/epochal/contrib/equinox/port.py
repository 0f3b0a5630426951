"""Named streams, as the feed sees them: heads are the Tips. This outlives the code: names are stored (FORMATS §1).

What a Tip tells the feed is the events that its latest write appended. Calves carry no `a`, and lie elsewhere; a prune
writes `a` 0, and an etag that tells it from writes of unfolds. Equinox's own trim leaves `a` as it was and shortens
`c`, so `a` counts for no more than the types there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from epochal.contrib.equinox.reading import advance, begin
from epochal.errors import CorruptData
from epochal.index.checkpoints import WHERE, is_tip
from epochal.layout.port import (
    Archive,
    Change,
    End,
    Heal,
    Permission,
    Port,
    RemovalKind,
    Source,
    Span,
    Touched,
    heal_streams,
)
from epochal.plan.ops import BeginsWith, Condition, KeyAttribute, Not, TableSpec, equals
from epochal.plan.values import Item, number, read_list, read_number
from epochal.settings import Options, Settings, variable

TIPS: Final = TableSpec(
    kind="tips",
    help="Table of streams that are stored as tips",
    partition=KeyAttribute(name="p", type="S"),
    sort=KeyAttribute(name="i", type="N"),
    ttl="ttl",
    stream=True,
)
"""Streams of events as tips and calves. `ttl` is set on idempotency records only."""

ARCHIVE: Final = TableSpec(kind="archive", partition=TIPS.partition, sort=TIPS.sort)
"""Streams as copied before they were pruned."""

MOVED: Condition = Not(equals("a", number(0)))
"""What a Tip meets that an append wrote: writes of unfolds, prunes and tombstones set `a` to 0. A Tip without a number
there was written by nobody who keeps the format, and counts: what a filter drops is gone without a trace.
"""

REMOVING: Final = "dead"
"""How the etag of a prune or a deletion begins, so that the feed knows. Of other writes one in 65,536 has such an etag,
and says again what is known."""

PRUNED: Condition = BeginsWith("etag", REMOVING)
"""What a Tip meets that a prune wrote."""


def removing(etag: str) -> str:
    """The etag of a write that takes events away."""
    return REMOVING + etag[len(REMOVING) :]


def tips_source(table: str, partitions: int = 1) -> Source:
    """Streams by name."""
    return Source(
        name="tips",
        table=table,
        partitions=partitions,
        setting=variable("partitions"),
        appended=appended,
        heal=heal_tips(table),
        end=end,
        told=_told,
        where=WHERE,
        moved=MOVED,
        pruned=PRUNED,
        stored=stored,
    )


def heal_tips(table: str) -> Heal:
    """Heals gaps of streams from their Tips and calves."""
    return heal_streams("tips", partial(begin, table), partial(advance, table, shared=True))


def appended(item: Item) -> Change | None:
    """The span that a Tip's latest write appended, or what is gone, if it was a prune or a deletion; None for calves,
    records, and other writes without events.

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
        ends = end(item) if item.get("etag", {}).get("S", "").startswith(REMOVING) else None
        return None if ends is None else ends.removal
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
    left: RemovalKind = "deleted" if "z" in item else "pruned"
    if left == "pruned" and 0 < following == pruned and "u" not in item:
        left = "emptied"
    return End(item["p"]["S"], following, pruned, left=left)


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


def _told(item: Item) -> Change | None:
    """All that a Tip carries: of most streams that is everything, and nothing need be read."""
    ends = end(item)
    if ends is None:
        return None
    carried = stored(item)
    return Touched(stream=ends.stream) if carried is None else carried


def _source(settings: Settings) -> Source:
    return tips_source(settings.table("tips"), settings.partitions("partitions"))


def _kind_of(item: Item) -> str | None:
    """Tips and calves are TIPS'. The index has them too, under names of the system's."""
    if not item.keys() >= set(TIPS.keys) or item["p"].get("S", "$").startswith("$"):
        return None
    return TIPS.kind if is_tip(item) or "c" in item else None


def _access(_: Options) -> Mapping[str, tuple[Permission, ...]]:
    """A stream is read by its key, Tip and calves; a Tip is put and updated, a calf put, and deleted with a prune."""
    actions = {
        "append": ("GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
        "timers": ("GetItem", "Query", "PutItem", "UpdateItem"),
        "replay": ("GetItem", "Query"),
        "feed": ("GetItem", "Query"),
        "indexer": ("GetItem", "Query"),
        "auditor": ("GetItem", "Query", "Scan"),
        "reaction": ("GetItem", "Query"),
    }
    return {function: (Permission(table=TIPS, actions=each),) for function, each in actions.items()}


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
