"""Bounded pages of what `TagListings` lists, each with where the next one goes on: what an HTTP API answers with.

events, entries    go on after a place; a page ends at a number or a size, and never between equal ids
tags of a group    go on after a tag
tags of all        go on at a place in the tags table: to sort them, all must be read
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from epochal.errors import InvalidInput
from epochal.model.events import Recorded
from epochal.model.kinds import MAX_WHOLE, must_be_whole
from epochal.model.tags import TagCount, TagEntry, check_tag, group_of
from epochal.plan.values import Key
from epochal.settings import RESPONSE_BYTES
from epochal.store.listings import Listings, check_group

# Pages of tags that no index lists: by a scan, a part of the table at a time.
#
#     place   how many parts the table is read in, which of them is next, and beyond which of its own tags to go on
#
# A place names nothing but numbers and a tag of the caller's own tenant. The key at which a scan of DynamoDB stands
# would not do: it may be another tenant's, and a caller could hand in any. So a part is read again for each
# page that begins in it, and its tags are taken by their names. A table that one request reads is one part. Any
# other is read in `PARTS`, so that one of 8 GB has 8 MB in each.

PARTS: Final = 1_024

REQUESTS: Final = 64
"""After which a page ends, where parts are small."""

READ_UNITS: Final = 128
"""After which a page ends too, at the end of a part: 1 MB, some 4,000 entries. Asking should not cost much less than
answering."""


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """Where a page goes on: in the part `part` of `parts`, with the tags that follow `beyond`."""

    parts: int
    part: int = 0
    beyond: str = ""

    def text(self) -> str:
        """Opaque, safe in URLs."""
        raw = json.dumps([self.parts, self.part, self.beyond], ensure_ascii=False).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Scanned:
    """Tags with their numbers of events, and where the next page goes on; None at the end."""

    events: dict[str, int]
    rest: ScanPosition | None


def read_place(written: str, field: str = "after") -> ScanPosition:
    """Read `ScanPosition.text` back, and nothing else; raises `InvalidInput` naming `field`."""
    try:
        raw = base64.b64decode(written + "=" * (-len(written) % 4), altchars=b"-_", validate=True)
        parts, part, beyond = json.loads(raw)
        place = ScanPosition(parts, part, beyond)
        whole = all(type(number) is int for number in (parts, part)) and isinstance(beyond, str)
        if whole and parts in (1, PARTS) and 0 <= part < parts and place.text() == written:
            if beyond:
                check_tag(beyond, field)
            return place
    except (ValueError, TypeError, RecursionError):
        pass
    raise InvalidInput(field, "must be `next` of the page before")


def scan(listings: Listings, group: str | None, after: ScanPosition | None, limit: int) -> Scanned:
    """At most `limit` tags of a group, or of all. There may be none, and the scan still have moved on."""
    scanned = _Scan(listings, group)
    place = after or ScanPosition(1)
    found: dict[str, int] = {}
    while place.part < place.parts:
        if len(found) == limit or scanned.is_enough():
            return Scanned(found, place)
        events = scanned.part(place)
        if events is None:
            return Scanned(found, ScanPosition(PARTS))
        tags = sorted(tag for tag in events if tag > place.beyond)
        taken = tags[: limit - len(found)]
        found |= {tag: events[tag] for tag in taken}
        if len(taken) < len(tags):
            return Scanned(found, replace(place, beyond=taken[-1]))
        place = ScanPosition(place.parts, place.part + 1)
    return Scanned(found, None)


class _Scan:
    """The requests of one page."""

    def __init__(self, listings: Listings, group: str | None) -> None:
        self._listings = listings
        self._first = listings.tags_page(group)
        self._requests = 0
        self._units = 0.0

    def is_enough(self) -> bool:
        """Whether the page has cost what it may."""
        return self._requests >= REQUESTS or self._units >= READ_UNITS

    def part(self, place: ScanPosition) -> Counter[str] | None:
        """The tenant's tags of a part; None where a table is too large to be one, and was not one before."""
        counts: Counter[str] = Counter()
        after: Key | None = None
        while True:
            op = replace(self._first, after=after, segment=(place.part, place.parts))
            page = self._listings.store.driver.ask(op)
            for item in page.items:
                tag = self._listings.read_tag(item)
                if tag is not None:
                    counts[tag.tag] += tag.events
            after = page.last
            self._requests += 1
            self._units += page.units.read
            if after is None:
                return counts
            if place == ScanPosition(1):
                return None


T = TypeVar("T", TagEntry, Recorded)

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
    """Events or entries in order of their places. `next` is the `since` of the next page; None at the end."""

    items: tuple[T, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPage:
    """Some tags. It may have none, and still have moved on. `next` is the `after` of the next; None at the end."""

    tags: tuple[TagCount, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPages:
    """Pages of a store's listings. Limits are 1 to 1,000."""

    listings: Listings

    def all_events(self, *, since: str | None = None, limit: int) -> DatedPage[Recorded]:
        """Some of all events after `since`."""
        found = self.listings.all_events(since=since, page=_checked(limit) + 1)
        return _cut(found, limit, _event_bytes)

    def tagged(self, tag: str, *, since: str | None = None, limit: int) -> DatedPage[Recorded]:
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
        if taken and full and item.place > taken[-1].place:
            return DatedPage(items=tuple(taken), next=taken[-1].place)
        taken.append(item)
    return DatedPage(items=tuple(taken), next=None)


def _event_bytes(event: Recorded) -> int:
    return _FIELDS + event.size


def _checked(limit: int) -> int:
    must_be_whole(limit, "limit", -MAX_WHOLE)
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be 1 to {MAX_LIMIT:,}")
    return limit
