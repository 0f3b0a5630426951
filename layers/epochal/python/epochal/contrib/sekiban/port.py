"""Tags, as the feed sees them: an event is in the stream of each of its tags, which is named by what follows `TAG#`.

    tags of users, and the reserved tag of events without any      fed: every event is in at least one of them
    heads by type and of everything                                not fed: each of their events would appear twice
    heads of another tenant                                        not fed: its tags may have the same names

A tag's head tells the events that its latest append added. Entries share the table with the heads; the original
library's tables hold nothing else, and feed nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from epochal.contrib.sekiban import SekibanOptions
from epochal.contrib.sekiban.entries import entries
from epochal.contrib.sekiban.items import (
    EVENTS,
    HEAD,
    PROJECTION_STATES,
    TAGS,
    Keys,
    TagSite,
    is_head,
    tag_site_of,
)
from epochal.errors import CorruptData
from epochal.layout.port import (
    CategoriesBy,
    End,
    Gap,
    Heal,
    Healed,
    ObjectAccess,
    Permission,
    Port,
    Source,
    Span,
    soundly,
)
from epochal.model.tags import UNTAGGED, group_of, is_reserved
from epochal.plan.conditions import All, BeginsWith, Condition, equals
from epochal.plan.ops import Steps
from epochal.plan.tables import TableSpec
from epochal.plan.values import Item, read_list, read_number, text
from epochal.settings import Options, Settings, variable


def dcb_source(site: TagSite, partitions: int = 1) -> Source:
    """Tags of the site's tenant."""
    service = site.keys.service
    return Source(
        name="dcb",
        table=site.tags,
        partitions=partitions,
        setting=variable("dcb_partitions"),
        appended=lambda item: appended(item, service),
        heal=heal_dcb(site),
        end=lambda item: end(item, service),
        told=lambda item: appended(item, service),
        where=where(site.keys),
        moved=None,
        stored=lambda item: stored(item, service),
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
        index, after = index + len(page), page[-1].place
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
        "timers": (
            own(EVENTS, "GetItem", "BatchGetItem", "PutItem"),
            own(TAGS, "GetItem", "BatchGetItem", "Query", "PutItem"),
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


def where(keys: Keys) -> Condition:
    """What heads of the tenant's tags meet.

    Heads by type meet it, too, where there are any, since their keys begin alike. No append moves them without a
    tag's head.
    """
    return All((BeginsWith("pk", keys.tag("")), equals("sk", text(HEAD))))


def appended(item: Item, service: str = "") -> Span | None:
    """The span that a head's latest append added; None for entries, for heads by type, for other tenants.

    Args:
        item: of the tags table.
        service: the tenant whose feed it is; empty for tables of one tenant.

    Raises:
        CorruptData: the item is a head of ours, but its counters do not fit each other.
    """
    tag = _tag_of(item, service)
    if not is_head(item) or tag is None:
        return None
    following, latest = read_number(item, "n"), read_number(item, "a")
    types = tuple(kind["S"] for kind in read_list(item, "c"))
    if following is None or latest != len(types) or not 0 < latest <= following:
        raise CorruptData(f"{item['pk']['S']}: a head whose n, a and c do not fit each other")
    return Span(tag, following - latest, types)


def end(item: Item, service: str = "") -> End | None:
    """Where the tag ends; None where `appended` is. Raises `CorruptData` as it does."""
    span = appended(item, service)
    return None if span is None else End(span.stream, span.next)


def stored(item: Item, service: str = "") -> Span | None:
    """The event that an entry stands for; None for whatever else the table holds."""
    tag, index = _tag_of(item, service), read_number(item, "tagIndex")
    if tag is None or index is None or is_head(item):
        return None
    return Span(tag, index, (item["eventType"]["S"],))


def _tag_of(item: Item, service: str) -> str | None:
    """The tag that an item is of, if the feed has it."""
    tag = Keys(service=service).tag_of(item["pk"]["S"])
    return None if tag is None or (is_reserved(tag) and tag != UNTAGGED) else tag


PORT: Final = Port(
    tables=(EVENTS, TAGS, PROJECTION_STATES),
    kind_of=_kind_of,
    access=access_of,
    heads=TAGS,
    source=_source,
    categories=CategoriesBy(group_of),
    objects=objects_of,
)
