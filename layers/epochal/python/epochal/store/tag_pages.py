"""Bounded pages of what `TagListings` lists, each with where the next one goes on: what an HTTP API answers with.

events, entries    go on after a sortable id; a page ends at a number or a size, and never between equal ids
tags of a group    go on after a tag
tags of all        go on at a place in the tags table (`tag_scans`): to sort them, all must be read
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from epochal.errors import InvalidInput
from epochal.model.dcb import RecordedTaggedEvent, SortableId, check_tag, group_of
from epochal.model.kinds import MAX_WHOLE, must_be_whole
from epochal.model.tagged_results import TagCount, TagEntry
from epochal.settings import RESPONSE_BYTES
from epochal.store.listings import Listings, check_group
from epochal.store.tag_scans import read_place, scan

T = TypeVar("T", TagEntry, RecordedTaggedEvent)

MAX_LIMIT: Final = 1_000

QUERIES: Final = 16
"""Requests, of 500 entries each, that a page of a group's tags takes at most. Where tags have many events, one may
bring a single tag."""

_FIELDS: Final = 300
"""Bytes reckoned for the fields of an event besides its data, and for an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Tags of a page, and whether others may follow."""

    tags: list[str]
    more: bool


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class DatedPage(Generic[T]):
    """Events or entries in order of their sortable ids. `next` is the `since` of the next page; None at the end."""

    items: tuple[T, ...]
    next: SortableId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPage:
    """Some tags. It may have none, and still have moved on. `next` is the `after` of the next; None at the end."""

    tags: tuple[TagCount, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPages:
    """Pages of a store's listings. Limits are 1 to 1,000."""

    listings: Listings

    def all_events(self, *, since: str | None = None, limit: int) -> DatedPage[RecordedTaggedEvent]:
        """Some of all events after `since`."""
        found = self.listings.all_events(since=since, page=_checked(limit) + 1)
        return _cut(found, limit, _event_bytes)

    def tagged(self, tag: str, *, since: str | None = None, limit: int) -> DatedPage[RecordedTaggedEvent]:
        """Some of a tag's events after `since`; those that have expired are missing."""
        found = self.listings.tagged(tag, since=since, page=_checked(limit) + 1)
        return _cut(found, limit, _event_bytes)

    def entries(self, tag: str, *, since: str | None = None, limit: int) -> DatedPage[TagEntry]:
        """Some of a tag's entries after `since`."""
        found = self.listings.entries(tag, since=since, page=_checked(limit) + 1)
        return _cut(found, limit, lambda _: _FIELDS)

    def tags(self, group: str | None = None, *, after: str | None = None, limit: int) -> TagPage:
        """Some tags of a group, or without one of all groups.

        Args:
            after: `next` of the page before.
        """
        _checked(limit)
        if group is None or not self.listings.groups_are_indexed:
            if group is not None:
                check_group(group)
            scanned = scan(self.listings, group, None if after is None else read_place(after), limit)
            tags = tuple(self.listings.settled(scanned.events))
            return TagPage(tags=tags, next=None if scanned.rest is None else scanned.rest.text())
        if after is not None and group_of(check_tag(after, "after")) != group:
            raise InvalidInput("after", "must be `next` of a page of the same group")
        names = self._of_group(group, after, limit)
        found = self.listings.counted(names.tags)
        return TagPage(tags=tuple(found), next=names.tags[-1] if names.more else None)

    def _of_group(self, group: str, after: str | None, limit: int) -> _Names:
        names: list[str] = []
        for asked, page in enumerate(self.listings.tag_name_pages(group, after, page=limit + 1), start=1):
            names += page
            if len(names) > limit or asked == QUERIES:
                return _Names(tags=names[:limit], more=True)
        return _Names(tags=names, more=False)


def _cut(found: Iterator[T], limit: int, size: Callable[[T], int]) -> DatedPage[T]:
    taken: list[T] = []
    total = 0
    for item in found:
        total += size(item)
        full = len(taken) >= limit or total > RESPONSE_BYTES
        if taken and full and item.sortable_id > taken[-1].sortable_id:
            return DatedPage(items=tuple(taken), next=taken[-1].sortable_id)
        taken.append(item)
    return DatedPage(items=tuple(taken), next=None)


def _event_bytes(event: RecordedTaggedEvent) -> int:
    return _FIELDS + event.size


def _checked(limit: int) -> int:
    must_be_whole(limit, "limit", -MAX_WHOLE)
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be 1 to {MAX_LIMIT:,}")
    return limit
