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
from epochal.layout.categories import CategoriesBy
from epochal.layout.changes import Span
from epochal.layout.healing import Gap, Heal, Healed, soundly
from epochal.layout.port import ObjectAccess, Permission, Port
from epochal.layout.source import End, Source
from epochal.model.tags import UNTAGGED, group_of, is_reserved
from epochal.plan.conditions import All, BeginsWith, Condition, equals
from epochal.plan.ops import Steps
from epochal.plan.tables import TableSpec
from epochal.plan.values import Item, read_list, read_number, text
from epochal.settings import Options, Settings, variable


def dcb_source(site: TagSite, partitions: int = 1) -> Source:
    """Make the feed source of the tags of the site's tenant."""
    service = site.keys.service
    return Source(
        name="dcb",
        table=site.tags,
        partitions=partitions,
        setting=variable("dcb_partitions"),
        appended=lambda item: appended(item, service),
        heal=heal_dcb(site),
        end=lambda item: end(item, service),
        change_up_to=lambda item: appended(item, service),
        where=where(site.keys),
        moved=None,
        stored=lambda item: stored(item, service),
    )


def heal_dcb(site: TagSite) -> Heal:
    """Make a function that heals gaps of tags from their entries, which outlive the events."""
    return soundly(lambda gap: _healed(site, gap), "dcb")


def _healed(site: TagSite, gap: Gap) -> Steps[Healed]:
    """Read the entries of a gap in a tag; return spans that fill it, or its beginning if they are many."""
    if gap.end is None:
        raise CorruptData(f"tag {gap.stream!r}: its head does not show what was appended")
    healed = Healed()
    index, after = gap.index, None
    while index < gap.end:
        if healed.full:
            healed.whole = False
            return healed
        page = yield from entries(site, gap.stream, index, gap.end, after=after)
        healed.add(Span(gap.stream, index, tuple(entry.event_type for entry in page)))
        index, after = index + len(page), page[-1].place
    return healed


def _source(settings: Settings) -> Source:
    """Make the feed source of the tagged events of a deployment."""
    return dcb_source(tag_site_of(settings), settings.partitions("dcb_partitions"))


_NAMED: Final = re.compile(r"(?:SERVICE#[^#]*#)?(EVENT|TAG|PROJECTOR)#")
"""Pattern of partition keys of any tenant, with the kind of item as group 1."""


def _kind_of(item: Item) -> str | None:
    """Return the kind of table that an item belongs to by its partition key, or None for other items."""
    if not item.keys() >= set(EVENTS.keys):
        return None
    names = _NAMED.match(item["pk"].get("S", ""))
    return names and {"EVENT": EVENTS, "TAG": TAGS, "PROJECTOR": PROJECTION_STATES}[names[1]].kind


def access_of(options: Options) -> Mapping[str, tuple[Permission, ...]]:
    """Return the DynamoDB permissions that each function needs, by the function's name.

    Where tenants share the tables, permissions cover the tenant's items only.

    Conditions on heads that an append does not move need `ConditionCheckItem`. Listing the tags of all groups scans
    the table, since no index has all of them; a scan has no key to restrict, so it also reads other tenants' items,
    which are skipped. A reader of events needs `GetItem` for transactions that read the events which a plain read does
    not find.
    """
    service = options.of_plugin(SekibanOptions).service

    def own(table: TableSpec, *actions: str, index: str = "") -> Permission:
        """Make a permission on the tenant's items of a table.

        Keys begin with the tenant's name, and so do the keys of the index by group.
        """
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
            *(own(table, "Query", index=index.name) for table in (TAGS, EVENTS) for index in table.indexes),
            own(PROJECTION_STATES, "GetItem", "Query"),
        ),
        "feed": (own(EVENTS, "BatchGetItem"), own(TAGS, "Query")),
        "indexer": (own(TAGS, "Query"),),
        "auditor": (own(TAGS, "GetItem", "Query"), all_tags),
        "reaction": (own(EVENTS, "BatchGetItem"), own(TAGS, "BatchGetItem", "Query")),
    }


def objects_of(options: Options) -> ObjectAccess:
    """Return the access that functions need to the tenant's large states in the bucket."""
    chosen = options.of_plugin(SekibanOptions)
    tenant = f"{chosen.service}/" if chosen.service else ""
    return ObjectAccess(
        prefix=f"{chosen.states_prefix}/{tenant}",
        actions={"append": ("PutObject",), "replay": ("GetObject",)},
    )


def where(keys: Keys) -> Condition:
    """Build the condition that heads of the tenant's tags meet.

    Heads by type meet the condition too, if there are any, since their keys have the same prefix. No append moves them
    without moving a tag's head.
    """
    return All((BeginsWith("pk", keys.tag("")), equals("sk", text(HEAD))))


def appended(item: Item, service: str = "") -> Span | None:
    """Return the span of events in the latest append to a tag, from its head; None for other items.

    Entries, heads by type and items of other tenants are not fed.

    Args:
        item: an item of the tags table.
        service: name of the tenant that the feed belongs to; empty for tables of one tenant.

    Raises:
        CorruptData: the item is a head of the tenant, but its counters contradict each other.
    """
    tag = _tag_of(item, service)
    if not is_head(item) or tag is None:
        return None
    following, latest = read_number(item, "n"), read_number(item, "a")
    types = tuple(kind["S"] for kind in read_list(item, "c"))
    if following is None or latest != len(types) or not 0 < latest <= following:
        raise CorruptData(f"{item['pk']['S']}: its head has inconsistent n, a and c")
    return Span(tag, following - latest, types)


def end(item: Item, service: str = "") -> End | None:
    """Return the end of a tag from its head; None for other items.

    Raises:
        CorruptData: the item is a head of the tenant, but its counters contradict each other.
    """
    span = appended(item, service)
    return None if span is None else End(span.stream, span.next)


def stored(item: Item, service: str = "") -> Span | None:
    """Return the span of the one event of an entry; None for other items."""
    tag, index = _tag_of(item, service), read_number(item, "tagIndex")
    if tag is None or index is None or is_head(item):
        return None
    return Span(tag, index, (item["eventType"]["S"],))


def _tag_of(item: Item, service: str) -> str | None:
    """Return the tag that an item belongs to, or None if the feed does not have that tag."""
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
