"""Named streams as pages, as the feed sees them: every page is a head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from epochal.layout.pages import heads
from epochal.layout.pages.items import STREAMS, is_page
from epochal.layout.pages.reading import advance, begin
from epochal.layout.port import Access, Gap, Heal, Healed, Port, Source, soundly
from epochal.model.spans import Span
from epochal.plan.ops import Steps
from epochal.plan.values import Item
from epochal.settings import Options, Settings, variable


def pages_source(table: str, partitions: int = 1) -> Source:
    """Streams by name."""
    return Source(
        name="pages",
        table=table,
        partitions=partitions,
        setting=variable("pages_partitions"),
        appended=heads.appended,
        heal=heal_pages(table),
        end=heads.end,
        told=heads.stored,
        where=heads.WHERE,
        moved=heads.MOVED,
        stored=heads.stored,
    )


def heal_pages(table: str) -> Heal:
    """Heals gaps of streams from their pages; what is pruned is passed over."""
    return soundly(lambda gap: _healed(table, gap), "pages")


def _healed(table: str, gap: Gap) -> Steps[Healed]:
    cursor = yield from begin(table, gap.stream, gap.index)
    found = Healed()
    while cursor is not None and not cursor.at_end and (gap.end is None or cursor.at < gap.end):
        if found.full:
            found.whole = False
            return found
        part = yield from advance(table, cursor)
        for span in part.spans:
            kept = span if gap.end is None else span.before(gap.end)
            found.add(Span(gap.stream, kept.base, tuple(kept.types)))
        cursor = part.cursor
    return found


def _source(settings: Settings) -> Source:
    return pages_source(settings.table(STREAMS.kind), settings.partitions("pages_partitions"))


def _kind_of(item: Item) -> str | None:
    return STREAMS.kind if is_page(item) else None


def _access(_: Options) -> Mapping[str, tuple[Access, ...]]:
    """A stream is read by its key. The HTTP API has no operation on pages: applications append by the library."""
    actions = {
        "feed": ("Query",),
        "indexer": ("Query",),
        "auditor": ("GetItem", "Query", "Scan"),
        "reaction": ("Query",),
    }
    return {function: (Access(table=STREAMS, actions=each),) for function, each in actions.items()}


PORT: Final = Port(tables=(STREAMS,), kind_of=_kind_of, access=_access, heads=STREAMS, source=_source)
