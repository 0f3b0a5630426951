"""Tags, as the feed sees them: an event is in the stream of each of its tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from epochal.contrib.sekiban import heads
from epochal.contrib.sekiban.items import EVENTS, PROJECTION_STATES, TAGS, TagSite, tag_site_of
from epochal.contrib.sekiban.options import SekibanOptions
from epochal.contrib.sekiban.seeking import entries
from epochal.errors import CorruptData
from epochal.layout.port import (
    CategoriesBy,
    Gap,
    Heal,
    Healed,
    ObjectAccess,
    Permission,
    Port,
    Source,
    soundly,
)
from epochal.model.dcb import group_of
from epochal.model.spans import Span
from epochal.plan.ops import Steps
from epochal.plan.tables import TableSpec
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


_NAMED: Final = re.compile(r"(?:SERVICE#[^#]*#)?(EVENT|TAG|PROJECTOR)#")
"""Partition keys, whoever is the tenant."""


def _kind_of(item: Item) -> str | None:
    if not item.keys() >= set(EVENTS.keys):
        return None
    named = _NAMED.match(item["pk"].get("S", ""))
    return named and {"EVENT": EVENTS, "TAG": TAGS, "PROJECTOR": PROJECTION_STATES}[named[1]].kind


def access_of(options: Options) -> Mapping[str, tuple[Permission, ...]]:
    """By the function's name; where tenants share the tables, to the tenant's items.

    Conditions on heads that an append does not move need `ConditionCheckItem`. Listing the tags of all groups scans
    them, since no index has all of them; a scan has no key to compare, and passes by other tenants' items. A reader of
    events needs `GetItem` for transactions that read those a plain read does not find.
    """
    service = options.of_plugin(SekibanOptions).service

    def own(table: TableSpec, *actions: str, index: str = "") -> Permission:
        """Keys begin with the tenant's name, those of groups of tags as well."""
        key = f"{service}|*" if table is TAGS and index else f"SERVICE#{service}#*"
        return Permission(table=table, actions=actions, index=index, keys=(key,) if service else ())

    all_tags = Permission(table=TAGS, actions=("Scan",))
    return {
        "append": (
            own(EVENTS, "GetItem", "BatchGetItem", "PutItem"),
            own(TAGS, "GetItem", "BatchGetItem", "Query", "PutItem", "ConditionCheckItem"),
            own(PROJECTION_STATES, "PutItem", "DeleteItem"),
        ),
        "replay": (
            own(EVENTS, "GetItem", "BatchGetItem"),
            own(TAGS, "BatchGetItem", "Query"),
            all_tags,
            *(own(table, "Query", index=each.name) for table in (TAGS, EVENTS) for each in table.indexes),
            own(PROJECTION_STATES, "GetItem", "Query"),
        ),
        "feed": (own(EVENTS, "BatchGetItem"), own(TAGS, "Query")),
        "indexer": (own(TAGS, "Query"),),
        "auditor": (own(TAGS, "GetItem", "Query"), all_tags),
        "reaction": (own(EVENTS, "BatchGetItem"), own(TAGS, "BatchGetItem", "Query")),
    }


def objects_of(options: Options) -> ObjectAccess:
    """What functions do to large states: the tenant's."""
    chosen = options.of_plugin(SekibanOptions)
    tenant = f"{chosen.service}/" if chosen.service else ""
    return ObjectAccess(
        prefix=f"{chosen.states_prefix}/{tenant}",
        actions={"append": ("PutObject",), "replay": ("GetObject",)},
    )


PORT: Final = Port(
    tables=(EVENTS, TAGS, PROJECTION_STATES),
    kind_of=_kind_of,
    access=access_of,
    heads=TAGS,
    source=_source,
    categories=CategoriesBy(group_of),
    objects=objects_of,
)
