"""Named streams, as the feed sees them: heads are the Tips."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from epochal.layout.port import Change, Heal, Permission, Port, Source, Touched, heal_streams
from epochal.layout.tips import heads
from epochal.layout.tips.items import is_tip
from epochal.layout.tips.reading import advance, begin
from epochal.layout.tips.tables import TIPS
from epochal.plan.values import Item
from epochal.settings import Options, Settings, variable


def tips_source(table: str, partitions: int = 1) -> Source:
    """Streams by name."""
    return Source(
        name="tips",
        table=table,
        partitions=partitions,
        setting=variable("partitions"),
        appended=heads.appended,
        heal=heal_tips(table),
        end=heads.end,
        told=_told,
        where=heads.WHERE,
        moved=heads.MOVED,
        stored=heads.stored,
    )


def heal_tips(table: str) -> Heal:
    """Heals gaps of streams from their Tips and calves."""
    return heal_streams("tips", partial(begin, table), partial(advance, table, shared=True))


def _told(item: Item) -> Change | None:
    """All that a Tip carries: of most streams that is everything, and nothing need be read."""
    end = heads.end(item)
    if end is None:
        return None
    carried = heads.stored(item)
    return Touched(stream=end.stream) if carried is None else carried


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
        "replay": ("GetItem", "Query"),
        "feed": ("GetItem", "Query"),
        "indexer": ("GetItem", "Query"),
        "auditor": ("GetItem", "Query", "Scan"),
        "reaction": ("GetItem", "Query"),
    }
    return {function: (Permission(table=TIPS, actions=each),) for function, each in actions.items()}


PORT: Final = Port(tables=(TIPS,), kind_of=_kind_of, access=_access, heads=TIPS, source=_source)
