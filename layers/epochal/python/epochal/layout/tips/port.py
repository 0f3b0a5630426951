"""Named streams, as the feed sees them: heads are the Tips."""

from __future__ import annotations

from typing import Final

from epochal.layout.port import Change, Gap, Heal, Healed, Port, Source, Touched, soundly
from epochal.layout.tips import heads
from epochal.layout.tips.reading import advance, begin
from epochal.layout.tips.tables import TIPS
from epochal.model.spans import Span
from epochal.plan.ops import Steps
from epochal.plan.values import Item
from epochal.settings import Settings, variable


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
    """Heals gaps of streams from their Tips and calves; what is pruned is passed over."""
    return soundly(lambda gap: _healed(table, gap), "tips")


def _healed(table: str, gap: Gap) -> Steps[Healed]:
    cursor = yield from begin(table, gap.stream, gap.index)
    found = Healed()
    while cursor is not None and not cursor.at_end and (gap.end is None or cursor.at < gap.end):
        if found.full:
            found.whole = False
            return found
        pages = yield from advance(table, cursor, shared=True)
        for span in pages.spans:
            kept = span if gap.end is None else span.before(gap.end)
            found.add(Span(gap.stream, kept.base, kept.types))
        cursor = pages.cursor
    return found


def _told(item: Item) -> Change | None:
    """All that a Tip carries: of most streams that is everything, and nothing need be read."""
    end = heads.end(item)
    if end is None:
        return None
    carried = heads.stored(item)
    return Touched(stream=end.stream) if carried is None else carried


def _source(settings: Settings) -> Source:
    return tips_source(settings.tips_table, settings.partitions)


PORT: Final = Port(tables=(TIPS,), heads=TIPS, source=_source)
