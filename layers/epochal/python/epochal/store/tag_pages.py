"""Bounded pages of what `TagListings` lists, each with where the next one goes on: what an HTTP API answers with.

events, entries    go on after a sortable id; a page ends at a number or a size, and never between equal ids
tags of a group    go on after a tag
tags of all        go on after a place in the tags table, in whose order they come: to sort them, all must be read
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

from epochal.errors import InvalidInput
from epochal.layout.dcb.listing import TagCount, TagEntry, read_tag, tags_page
from epochal.model.dcb import RecordedTaggedEvent, SortableId, check_tag, group_of
from epochal.plan.values import Key, text
from epochal.settings import RESPONSE_BYTES
from epochal.store.tag_listings import TagListings

T = TypeVar("T", TagEntry, RecordedTaggedEvent)

MAX_LIMIT: Final = 1_000
SCANS: Final = 8
"""Requests, of 1 MB each, that a page of all tags takes at most: some 30,000 entries."""

_FIELDS: Final = 300
"""Bytes reckoned for the fields of an event besides its data, and for an entry."""

_PARTITION_KEY: Final = 2_048
_SORT_KEY: Final = 1_024
"""Bytes that DynamoDB takes for a key's value, of which there must be one at least."""


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

    listings: TagListings

    def all_events(self, *, since: SortableId | None = None, limit: int) -> DatedPage[RecordedTaggedEvent]:
        """Some of all events after `since`."""
        found = self.listings.all_events(since=since, page=_checked(limit) + 1)
        return _cut(found, limit, _event_bytes)

    def tagged(
        self, tag: str, *, since: SortableId | None = None, limit: int
    ) -> DatedPage[RecordedTaggedEvent]:
        """Some of a tag's events after `since`; those that have expired are missing."""
        found = self.listings.tagged(tag, since=since, page=_checked(limit) + 1)
        return _cut(found, limit, _event_bytes)

    def entries(self, tag: str, *, since: SortableId | None = None, limit: int) -> DatedPage[TagEntry]:
        """Some of a tag's entries after `since`."""
        found = self.listings.entries(tag, since=since, page=_checked(limit) + 1)
        return _cut(found, limit, lambda _: _FIELDS)

    def tags(self, group: str | None = None, *, after: str | None = None, limit: int) -> TagPage:
        """Some tags of a group, or without one of all groups.

        Args:
            after: `next` of the page before.
        """
        _checked(limit)
        if group is None:
            return self._of_all(None if after is None else _read_place(after), limit)
        if after is not None and group_of(check_tag(after, "after")) != group:
            raise InvalidInput("after", "must be `next` of a page of the same group")
        names = list(islice(self.listings.tag_names(group, after, page=limit + 1), limit + 1))
        found = self.listings.counted(names[:limit])
        return TagPage(tags=tuple(found), next=names[limit - 1] if len(names) > limit else None)

    def _of_all(self, after: Key | None, limit: int) -> TagPage:
        site = self.listings.store.site
        begun = None if after is None else after["pk"]
        found: dict[str, int] = {}
        for _ in range(SCANS):
            page = self.listings.store.driver.ask(tags_page(site, after))
            for item in page.items:
                tag = read_tag(site, item)
                # Entries of the original library are many for one tag, and a page may end among them.
                if tag is None or item["pk"] == begun:
                    continue
                if len(found) == limit and tag.tag not in found:
                    return _tag_page(found, after)
                found[tag.tag] = found.get(tag.tag, 0) + tag.events
                after = {"pk": item["pk"], "sk": item["sk"]}
            after = page.last
            if after is None:
                break
        return _tag_page(found, after)


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
    return _FIELDS + len(event.data.encode())


def _tag_page(found: dict[str, int], last: Key | None) -> TagPage:
    tags = tuple(TagCount(tag=tag, events=events) for tag, events in found.items())
    return TagPage(tags=tags, next=None if last is None else _write_place(last))


def _write_place(key: Key) -> str:
    """Where a scan stands, as text: opaque, safe in URLs."""
    raw = json.dumps([key["pk"]["S"], key["sk"]["S"]], ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _read_place(written: str) -> Key:
    """Read `_write_place` back, and nothing else: DynamoDB goes on from wherever it is told to, if it is a key."""
    try:
        raw = base64.b64decode(written + "=" * (-len(written) % 4), altchars=b"-_", validate=True)
        partition, sort = json.loads(raw)
        place = {"pk": text(partition), "sk": text(sort)}
        if _write_place(place) == written and _is_key(partition, _PARTITION_KEY) and _is_key(sort, _SORT_KEY):
            return place
    except (ValueError, TypeError, RecursionError):
        pass
    raise InvalidInput("after", "must be `next` of the page before")


def _is_key(value: object, most: int) -> bool:
    return isinstance(value, str) and 0 < len(value.encode()) <= most


def _checked(limit: int) -> int:
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be 1 to {MAX_LIMIT:,}")
    return limit
