"""Tags, as the feed sees them: an event stands in the stream of each of its tags."""

from __future__ import annotations

from typing import Final

from epochal.errors import CorruptData
from epochal.layout.dcb import heads
from epochal.layout.dcb.seeking import entries
from epochal.layout.dcb.site import TagSite, tag_site_of
from epochal.layout.dcb.tables import EVENTS, TAGS
from epochal.layout.port import CategoriesBy, Gap, Heal, Healed, Port, Source, soundly
from epochal.model.dcb import group_of
from epochal.model.spans import Span
from epochal.plan.ops import Steps
from epochal.settings import Settings, variable


def dcb_source(site: TagSite, partitions: int = 1) -> Source:
    """Tags of the site's tenant."""
    service = site.keys.service
    return Source(
        name="dcb",
        table=site.tags,
        partitions=partitions,
        setting=variable("dcb_partitions"),
        appended=lambda item: heads.appended(item, service),
        heal=heal_dcb(site),
        end=lambda item: heads.end(item, service),
        told=lambda item: heads.appended(item, service),
        where=heads.where(site.keys),
        moved=None,
        stored=lambda item: heads.stored(item, service),
    )


def heal_dcb(site: TagSite) -> Heal:
    """Heals gaps of tags from their entries, which outlive the events."""
    return soundly(lambda gap: _healed(site, gap), "dcb")


def _healed(site: TagSite, gap: Gap) -> Steps[Healed]:
    if gap.end is None:
        raise CorruptData(f"tag {gap.stream!r}: its head does not tell what was appended")
    found = Healed()
    index, after = gap.index, None
    while index < gap.end:
        if found.full:
            found.whole = False
            return found
        page = yield from entries(site, gap.stream, index, gap.end, after=after)
        found.add(Span(gap.stream, index, tuple(entry.event_type for entry in page)))
        index, after = index + len(page), page[-1].sortable_id
    return found


def _source(settings: Settings) -> Source:
    return dcb_source(tag_site_of(settings), settings.dcb_partitions)


PORT: Final = Port(
    tables=(EVENTS, TAGS),
    heads=TAGS,
    source=_source,
    categories=lambda _: CategoriesBy(group_of),
)
