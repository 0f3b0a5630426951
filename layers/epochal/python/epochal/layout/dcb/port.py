"""Tags, as the feed sees them: an event is in the stream of each of its tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from epochal.errors import CorruptData
from epochal.layout.dcb import heads
from epochal.layout.dcb.seeking import entries
from epochal.layout.dcb.site import TagSite, tag_site_of
from epochal.layout.dcb.tables import EVENTS, TAGS
from epochal.layout.port import CategoriesBy, Gap, Heal, Healed, Permission, Port, Source, soundly
from epochal.model.dcb import group_of
from epochal.model.spans import Span
from epochal.plan.ops import Steps
from epochal.plan.values import Item
from epochal.settings import Options, Settings, variable


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
    return dcb_source(tag_site_of(settings), settings.partitions("dcb_partitions"))


_NAMED: Final = re.compile(r"(?:SERVICE#[^#]*#)?(EVENT|TAG)#")
"""Partition keys, whoever is the tenant."""


def _kind_of(item: Item) -> str | None:
    if not item.keys() >= set(EVENTS.keys):
        return None
    named = _NAMED.match(item["pk"].get("S", ""))
    return named and {"EVENT": EVENTS, "TAG": TAGS}[named[1]].kind


def _access(options: Options) -> Mapping[str, tuple[Permission, ...]]:
    from epochal.layout.dcb.access import access_of  # noqa: PLC0415  what is deployed needs it, functions do not

    return access_of(options)


PORT: Final = Port(
    tables=(EVENTS, TAGS),
    kind_of=_kind_of,
    access=_access,
    heads=TAGS,
    source=_source,
    categories=CategoriesBy(group_of),
)
