"""Listing what there is: all events in order, the entries of a tag, the tags of a group.

All events, and tags by group, are found through indexes, which lag by moments: what they return is complete
up to some moment in the past. Entries of a tag come from the base table, strongly consistent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.layout.dcb.reading import Site
from epochal.model.dcb import SortableId
from epochal.plan.ops import Query
from epochal.plan.values import Item, Key, read_number, text

_FIRST: Final = "0"
_LAST: Final = "~"
"""Sort keys begin with 30 digits; a head's `#` lies below them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagEntry:
    """A tag's entry for one of its events. `index` counts from 0; None on entries of the original library."""

    event_id: str
    event_type: str
    sortable_id: SortableId
    index: int | None
    created_at: str


def events_page(site: Site, partition: str, since: SortableId | None, after: Key | None, limit: int) -> Query:
    """A page of one partition of the index of all events, after `since`."""
    lowest = _FIRST if since is None else f"{int(since) + 1:030d}"
    return Query(
        table=site.events,
        index="GSI1",
        partition=("gsi1pk", text(partition)),
        sort=("sortableUniqueId", text(lowest), text(_LAST)),
        consistent=False,
        limit=limit,
        after=after,
    )


def entries_page(
    site: Site, tag: str, since: SortableId | None, after: Key | None, *, newest_first: bool = False
) -> Query:
    """A page of a tag's entries after `since`; newest first it is the latest alone."""
    lowest = _FIRST if since is None else f"{since}#~"
    return Query(
        table=site.tags,
        partition=("pk", text(site.keys.tag(tag))),
        sort=("sk", text(lowest), text(_LAST)),
        forward=not newest_first,
        limit=1 if newest_first else None,
        after=after,
    )


def group_page(site: Site, group: str, after: Key | None) -> Query:
    """A page of the entries of a group's tags, tag by tag."""
    name = f"{site.keys.service}|{group}" if site.keys.service else group
    return Query(
        table=site.tags, index="GSI1", partition=("tagGroup", text(name)), consistent=False, after=after
    )


def read_entry(item: Item) -> TagEntry:
    """Decode a tag's entry."""
    return TagEntry(
        event_id=item["eventId"]["S"],
        event_type=item["eventType"]["S"],
        sortable_id=SortableId(item["sortableUniqueId"]["S"]),
        index=read_number(item, "tagIndex"),
        created_at=item["createdAt"]["S"],
    )
