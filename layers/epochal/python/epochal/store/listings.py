"""Listing what a store of tagged events holds, however it is stored: everything, by tag, by group, and counts.

A subclass says how its layout does that. Pages are read as they are consumed.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Generic, TypeVar

from epochal.errors import InvalidInput
from epochal.layout.pages.tags.entries import EventOfTag, placed, recorded_all
from epochal.layout.pages.tags.reading import (
    count_since,
    entries_after,
    entry_of,
    latest,
    read_tag,
    stand_after,
    tags_page,
)
from epochal.model.events import Recorded
from epochal.model.kinds import MAX_WHOLE, must_be_texts, must_be_whole
from epochal.model.tags import (
    EVERYTHING,
    MAX_ASKED_BYTES,
    TagCount,
    TagEntry,
    check_tag,
    group_of,
    parse_place,
)
from epochal.plan.ops import BATCH_KEYS, Scan
from epochal.plan.values import Item, Key
from epochal.settings import RESPONSE_BYTES
from epochal.store.tagged import TaggedEvents, TaggedStore

T = TypeVar("T", TagEntry, Recorded)

PAGE: Final = 500
"""Entries or events a request at most: some 100 KB of entries; larger events end a page at 1 MB before that."""

Progress = Callable[[int], None]
"""Called with how much has been read so far, page by page; never twice at once, but maybe on another thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCount:
    """A group and how many tags it has."""

    group: str
    tags: int


class Listings(ABC):
    """What a store of tagged events holds.

    Attributes:
        groups_are_indexed: whether an index lists the tags of a group; else they are found as those of all groups are,
            by a scan.
    """

    __slots__ = ()
    groups_are_indexed: ClassVar[bool]
    store: TaggedStore

    @abstractmethod
    def all_events(
        self,
        *,
        since: str | None = None,
        max_count: int | None = None,
        progress: Progress | None = None,
        page: int = PAGE,
    ) -> Iterator[Recorded]:
        """Every event after the place `since`, in order of places.

        Args:
            max_count: where to stop; all events of the last one's place come with it, so that going on `since` that
                place loses none.
        """

    @abstractmethod
    def tagged(
        self, tag: str, *, since: str | None = None, progress: Progress | None = None, page: int = PAGE
    ) -> Iterator[Recorded]:
        """A tag's events after `since`, in order."""

    @abstractmethod
    def entries(self, tag: str, *, since: str | None = None, page: int = PAGE) -> Iterator[TagEntry]:
        """A tag's entries after `since`, in order: its events without their bodies."""

    @abstractmethod
    def latest(self, tag: str) -> TagEntry | None:
        """A tag's newest entry; None where it has none."""

    @abstractmethod
    def count(self, *, since: str | None = None, progress: Progress | None = None) -> int:
        """How many events there are after `since`."""

    @abstractmethod
    def counted(self, tags: list[str]) -> list[TagCount]:
        """Tags with their numbers of events."""

    @abstractmethod
    def tag_name_pages(
        self, group: str, beyond: str | None = None, *, page: int = PAGE
    ) -> Iterator[list[str]]:
        """The tags of a group that follow `beyond`, in order, by what a request brings."""

    @abstractmethod
    def tags_page(self, group: str | None = None) -> Scan:
        """The first page of what tells which tags there are, of a group or of all."""

    @abstractmethod
    def read_tag(self, item: Item) -> TagCount | None:
        """A tag, of an item of `tags_page`, and what that tells of its number of events; None where it is reserved."""

    @abstractmethod
    def settled(self, found: Mapping[str, int]) -> list[TagCount]:
        """Tags with their numbers of events, of what `read_tag` has told of them."""

    def exists(self, tag: str) -> bool:
        """Whether a tag has any event."""
        return self.latest(tag) is not None

    def tags(self, group: str) -> list[TagCount]:
        """Every tag of a group, in order, with its number of events."""
        return self.counted([tag for page in self.tag_name_pages(group) for tag in page])

    def all_tags(self, *, progress: Progress | None = None) -> list[TagCount]:
        """Every tag, in order, with its number of events. Reads through the whole table."""
        return self._scanned(None, progress)

    def groups(self) -> list[GroupCount]:
        """Every group, in order, with its number of tags. Reads through the whole table."""
        counts = Counter(group_of(count.tag) for count in self.all_tags())
        return [GroupCount(group=group, tags=counts[group]) for group in sorted(counts)]

    def _scanned(self, group: str | None, progress: Progress | None = None) -> list[TagCount]:
        counts: Counter[str] = Counter()
        read = 0
        for page in self.store.driver.pages(self.tags_page(group)):
            found = [count for item in page.items if (count := self.read_tag(item)) is not None]
            for each in found:
                counts[each.tag] += each.events
            read += len(found)
            if progress is not None:
                progress(read)
        return self.settled({tag: counts[tag] for tag in sorted(counts)})


def until_whole(found: Iterable[T], least: int) -> Iterator[T]:
    """Events or entries until there are `least` of them, and no other has the place of the last."""
    last = ""
    for place, each in enumerate(found):
        if place >= least and each.place != last:
            return
        last = each.place
        yield each


def checked_since(since: str | None) -> str | None:
    """Where to go on; an empty id is the beginning, as in Sekiban's library."""
    return None if since is None or since == "" else parse_place(since)


def check_group(group: str) -> None:
    """Raise `InvalidInput` for what is no group."""
    check_tag(group, "group")
    if ":" in group:
        raise InvalidInput("group", "ends before the first : of its tags")


# Listings of tagged events as pages: all strongly consistent, but for which tags there are.
#
# everything        the stream of all events, where the store was opened with `everything`
# by tag            the tag's stream, from an event on that a place names
# tags              by a scan of the table, which has every tag's first page: no index lists them

U = TypeVar("U")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedListings(Listings):
    """Lists the tagged events of a table of pages."""

    store: TaggedEvents
    groups_are_indexed: ClassVar[bool] = False

    def all_events(
        self,
        *,
        since: str | None = None,
        max_count: int | None = None,
        progress: Progress | None = None,
        page: int = PAGE,
    ) -> Iterator[Recorded]:
        """Every event after the place `since`, in order of places.

        Raises:
            InvalidInput: the store was not opened with `everything`.
        """
        self._check_everything()
        if max_count is not None:
            must_be_whole(max_count, "max_count", 1)
            page = min(page, max_count)
        found = self._events(EVERYTHING, since, progress, page)
        return found if max_count is None else until_whole(found, max_count)

    def tagged(
        self, tag: str, *, since: str | None = None, progress: Progress | None = None, page: int = PAGE
    ) -> Iterator[Recorded]:
        """A tag's events after `since`, in order."""
        yield from self._events(check_tag(tag, "tag"), since, progress, page)

    def entries(self, tag: str, *, since: str | None = None, page: int = PAGE) -> Iterator[TagEntry]:
        """A tag's entries after `since`, in order: its events without their bodies."""
        for found in self._parts(check_tag(tag, "tag"), since, page, lambda entries: entries):
            yield from map(entry_of, found)

    def latest(self, tag: str) -> TagEntry | None:
        """A tag's newest entry; None where it has none."""
        return self.store.driver.run(latest(self.store.site, check_tag(tag, "tag")))

    def count(self, *, since: str | None = None, progress: Progress | None = None) -> int:
        """How many events there are after `since`.

        Raises:
            InvalidInput: the store was not opened with `everything`.
        """
        self._check_everything()
        count = self.store.driver.run(count_since(self.store.site, EVERYTHING, checked_since(since)))
        if progress is not None:
            progress(count)
        return count

    def counted(self, tags: list[str]) -> list[TagCount]:
        """Tags with their numbers of events."""
        must_be_texts(tags, MAX_ASKED_BYTES, "tags")
        counts = self.store.counts(list(dict.fromkeys(tags)))
        return [TagCount(tag=tag, events=counts[tag]) for tag in tags]

    def tag_name_pages(
        self, group: str, beyond: str | None = None, *, page: int = PAGE
    ) -> Iterator[list[str]]:
        """Names of a group's tags after `beyond`: one page of all, since only a scan finds them."""
        check_group(group)
        must_be_whole(page, "page", 1)
        yield [each.tag for each in self._scanned(group) if beyond is None or each.tag > check_tag(beyond)]

    def tags(self, group: str) -> list[TagCount]:
        """The tags of a group with their numbers of events; scans the whole table."""
        check_group(group)
        return self._scanned(group)

    def tags_page(self, group: str | None = None) -> Scan:
        """The scan that finds all tags, or those of a group."""
        return tags_page(self.store.site, group)

    def read_tag(self, item: Item) -> TagCount | None:
        """The tag whose first page an item is, with its count, which is 0 where the tag has several pages."""
        return read_tag(self.store.site, item)

    def settled(self, found: Mapping[str, int]) -> list[TagCount]:
        """Tags that a scan found, with counts: those of several pages are counted by their last page."""
        long = {each.tag: each.events for each in self.counted([tag for tag in found if not found[tag]])}
        return [TagCount(tag=tag, events=events or long[tag]) for tag, events in found.items()]

    def _check_everything(self) -> None:
        if EVERYTHING not in self.store.site.type_heads:
            raise InvalidInput(
                "tag",
                "must be named: there is no stream of everything (`everything`); the feed has all events",
            )

    def _events(
        self, tag: str, since: str | None, progress: Progress | None, page: int
    ) -> Iterator[Recorded]:
        def recorded(entries: list[EventOfTag]) -> Sequence[Recorded]:
            events = self.store.driver.run(recorded_all(self.store.site, entries))
            return list(map(placed, events, entries))

        read = 0
        for events in self._parts(tag, since, page, recorded):
            read += len(events)
            if progress is not None:
                progress(read)
            yield from self.store.whole(tuple(events))

    def _parts(
        self, tag: str, since: str | None, page: int, shown: Callable[[list[EventOfTag]], Sequence[U]]
    ) -> Iterator[Sequence[U]]:
        """A tag's events after a place, by what a request brings."""
        after, driver, site = checked_since(since), self.store.driver, self.store.site
        must_be_whole(page, "page", 1)
        page = min(page, PAGE)
        cursor = driver.run(stand_after(site, tag, after, page))
        read = 0
        while cursor is not None and not cursor.at_end:
            cursor, entries = driver.run(entries_after(site, cursor, after, page - read % page))
            read += len(entries)
            # Their bodies may be elsewhere, and large.
            for start in range(0, len(entries), BATCH_KEYS):
                yield shown(entries[start : start + BATCH_KEYS])


# Bounded pages of what listings list, each with where the next one goes on: what an HTTP API answers with.
#
# events, entries    go on after a place; a page ends at a number or a size, and never between equal ids
# tags of a group    go on after a tag
# tags of all        go on at a place in the tags table: to sort them, all must be read
#
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


def scan(
    listings: Listings, group: str | None, after: ScanPosition | None, limit: int
) -> tuple[dict[str, int], ScanPosition | None]:
    """At most `limit` tags of a group, or of all, with their numbers of events, and where the next page goes on; None
    at the end. There may be no tags, and the scan still have moved on.
    """
    first, requests, units = listings.tags_page(group), 0, 0.0

    def part(place: ScanPosition) -> Counter[str] | None:
        """The tenant's tags of a part; None where a table is too large to be one, and was not one before."""
        nonlocal requests, units
        counts: Counter[str] = Counter()
        after: Key | None = None
        while True:
            page = listings.store.driver.ask(replace(first, after=after, segment=(place.part, place.parts)))
            for tag in filter(None, map(listings.read_tag, page.items)):
                counts[tag.tag] += tag.events
            after, requests, units = page.last, requests + 1, units + page.units.read
            if after is None or place == ScanPosition(1):
                return counts if after is None else None

    place = after or ScanPosition(1)
    found: dict[str, int] = {}
    while place.part < place.parts:
        if len(found) == limit or requests >= REQUESTS or units >= READ_UNITS:
            return found, place
        events = part(place)
        if events is None:
            return found, ScanPosition(PARTS)
        tags = sorted(tag for tag in events if tag > place.beyond)
        taken = tags[: limit - len(found)]
        found |= {tag: events[tag] for tag in taken}
        if len(taken) < len(tags):
            return found, replace(place, beyond=taken[-1])
        place = ScanPosition(place.parts, place.part + 1)
    return found, None


MAX_LIMIT: Final = 1_000

QUERIES: Final = 16
"""Requests, of 500 entries each, that a page of a group's tags takes at most. Where tags have many events, one may
bring a single tag."""

_FIELDS: Final = 300
"""Bytes reckoned for the fields of an event besides its data, and for an entry."""


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
            events, rest = scan(self.listings, group, None if after is None else read_place(after), limit)
            tags = tuple(self.listings.settled(events))
            return TagPage(tags=tags, next=None if rest is None else rest.text())
        if after is not None and group_of(check_tag(after, "after")) != group:
            raise InvalidInput("after", "must be `next` of a page of the same group")
        names, more = list[str](), False
        for asked, page in enumerate(self.listings.tag_name_pages(group, after, page=limit + 1), start=1):
            names += page
            if more := len(names) > limit or asked == QUERIES:
                break
        names = names[:limit]
        return TagPage(tags=tuple(self.listings.counted(names)), next=names[-1] if more else None)


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
