"""Listing what there is: all events in order, the entries of a tag, the tags of a group.

All events, and tags by group, are found through indexes, which lag by moments: what they return is complete
up to some moment in the past. Entries of a tag come from the base table, strongly consistent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from epochal.contrib.sekiban.items import TagSite, is_head, read_head
from epochal.model.tags import TagCount, TagEntry, is_reserved
from epochal.plan.ops import Absent, BatchGet, Query, Scan
from epochal.plan.values import Item, Key, decodes, read_number, text


def counting_page(site: TagSite, partition: str, since: str | None) -> Query:
    """The first page of counting what `events_page` lists: as much as a request can read."""
    return replace(events_page(site, partition, since), only_count=True)


def events_page(site: TagSite, partition: str, since: str | None, limit: int | None = None) -> Query:
    """The first page of one partition of the index of all events, after `since`."""
    lowest = "0" if since is None else f"{int(since) + 1:030d}"
    return Query(
        table=site.events,
        index="GSI1",
        partition=("gsi1pk", text(partition)),
        sort=("sortableUniqueId", text(lowest), text("~")),
        consistent=False,
        limit=limit,
    )


def events_by_id(site: TagSite, ids: Sequence[str], *, consistent: bool = True) -> BatchGet:
    """At most 100 events; those that have expired, or never were, are missing from the answer."""
    return BatchGet(table=site.events, keys=tuple(map(site.keys.event, ids)), consistent=consistent)


def group_page(site: TagSite, group: str, beyond: str | None, limit: int) -> Query:
    """A page of the entries of a group's tags, tag by tag; only of the tags that follow `beyond`.

    Tags have no character as low as the one after `beyond`, and a tag of the group none as high as `;` where the
    others have `:`.
    """
    lowest = group if beyond is None else f"{beyond}\0"
    return Query(
        table=site.tags,
        index="GSI1",
        partition=("tagGroup", text(site.keys.in_group(group))),
        sort=("tagString", text(lowest), text(f"{group};")),
        consistent=False,
        limit=limit,
    )


def tags_page(site: TagSite, after: Key | None = None) -> Scan:
    """A page of what tells which tags there are: heads, and the entries of the original library, which has none.

    Heads have what a listing needs and are few beside the entries, yet only a scan finds them all: it reads
    the entries too, and leaves them out.
    """
    return Scan(table=site.tags, where=Absent("tagIndex"), consistent=False, after=after)


def read_tag(site: TagSite, item: Item) -> TagCount | None:
    """A tag and its number of events, of an item of `tags_page`; None where it is reserved, or another tenant's."""
    tag = site.keys.tag_of(item["pk"]["S"])
    if tag is None or is_reserved(tag):
        return None
    return TagCount(tag=tag, events=read_head(item).reached.count if is_head(item) else 0)


@decodes("dcb")
def read_entry(item: Item) -> TagEntry:
    """Decode a tag's entry."""
    return TagEntry(
        event_id=item["eventId"]["S"],
        event_type=item["eventType"]["S"],
        place=item["sortableUniqueId"]["S"],
        index=read_number(item, "tagIndex"),
        created_at=item["createdAt"]["S"],
    )
