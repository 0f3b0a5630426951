"""Lists the events, tags and groups of a store of tagged events, with their numbers, in any layout.

A subclass implements the listings for its layout. Pages are read as they are consumed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, Protocol, TypeVar, cast

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Recorded
from epochal.model.kinds import must_be_texts, must_be_whole
from epochal.model.tag_answers import TagCount, TagEntry
from epochal.model.tags import EVERYTHING, MAX_ASKED_BYTES, check_tag, group_of, parse_place
from epochal.pages.tags.entries import EventOfTag, placed, recorded_each
from epochal.pages.tags.listing import (
    begin_read_after,
    count_since,
    entries_after,
    entry_of,
    latest,
    make_tag_scan,
    read_tag,
)
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import Scan
from epochal.plan.values import Item
from epochal.store.tagged import TaggedStore
from epochal.store.tagged_pages import TaggedEvents

T = TypeVar("T", TagEntry, Recorded)

PAGE: Final = 500
"""Largest number of entries or events in a request: some 100 KB of entries; larger events end a page at 1 MB before
that."""

Progress = Callable[[int], None]
"""Function that is called after each page with the number read so far; one call at a time, maybe on other threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCount:
    """A group of tags, with the number of tags in it.

    Attributes:
        group: name of the group, which is the part of its tags before the colon.
        tags: number of tags in the group.
    """

    group: str
    tags: int


class Listings(ABC):
    """Lists the events and tags that a store of tagged events holds.

    Attributes:
        groups_are_indexed: whether an index lists the tags of a group; without one they are found by a scan.
        store: the store of tagged events.
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
        """Yield all events after the place `since`, in order of places, or at least the first `max_count`.

        Args:
            since: place of the last event that is not wanted; None for the beginning.
            max_count: number of events after which the listing ends. All events with the place of the last one are
                included, so that a listing `since` that place loses none.
            progress: called after each page with the number of events read.
            page: number of events that a request reads at most.
        """

    @abstractmethod
    def tagged(
        self, tag: str, *, since: str | None = None, progress: Progress | None = None, page: int = PAGE
    ) -> Iterator[Recorded]:
        """Yield the events of a tag after the place `since`, in order.

        Args:
            tag: the tag.
            since: place after which the events begin; None for all.
            progress: function that is called with the number of events read so far; None for none.
            page: number of entries that one request reads at most.
        """

    @abstractmethod
    def entries(self, tag: str, *, since: str | None = None, page: int = PAGE) -> Iterator[TagEntry]:
        """Yield the entries of a tag after the place `since`, in order: its events without their bodies.

        Args:
            tag: the tag.
            since: place after which the entries begin; None for all.
            page: number of entries that one request reads at most.
        """

    @abstractmethod
    def latest(self, tag: str) -> TagEntry | None:
        """Return the entry of a tag's last event, without its body; None if the tag has no events.

        Args:
            tag: the tag.
        """

    @abstractmethod
    def count(self, *, since: str | None = None, progress: Progress | None = None) -> int:
        """Count the events after the place `since`.

        Args:
            since: place after which events count; None for all.
            progress: function that is called with the number of events counted so far; None for none.
        """

    def counted(self, tags: list[str]) -> list[TagCount]:
        """Return the given tags, each with its number of events.

        Args:
            tags: the tags, in the order of the result.
        """
        must_be_texts(tags, MAX_ASKED_BYTES, "tags")
        counts = self.store.counts(list(dict.fromkeys(tags)))
        return [TagCount(tag=tag, events=counts[tag]) for tag in tags]

    @abstractmethod
    def tag_name_pages(
        self, group: str, beyond: str | None = None, *, page: int = PAGE
    ) -> Iterator[list[str]]:
        """Yield the names of a group's tags after `beyond`, in order, as one list for each request.

        Args:
            group: name of the group.
            beyond: tag after which the names begin; None for all.
            page: number of items that one request reads at most.
        """

    @abstractmethod
    def make_tag_scan(self, group: str | None = None) -> Scan:
        """Make the first DynamoDB scan for the items that name the tags of a group, or all tags.

        Args:
            group: name of the group; None for all tags.
        """

    @abstractmethod
    def read_tag(self, item: Item) -> TagCount | None:
        """Read a tag and its number of events from an item of the scan; None for a reserved tag.

        The number may be that of a part of the tag's events; `settled` returns the whole.

        Args:
            item: item that the scan of `make_tag_scan` returned.
        """

    @abstractmethod
    def settled(self, found: Mapping[str, int]) -> list[TagCount]:
        """Return tags with their full numbers of events, given the sums of what `read_tag` returned.

        Args:
            found: sum of the numbers that `read_tag` returned, by tag.
        """

    def exists(self, tag: str) -> bool:
        """Return whether a tag has any event.

        Args:
            tag: the tag.
        """
        return self.latest(tag) is not None

    def tags(self, group: str) -> list[TagCount]:
        """Return every tag of a group, in order, with its number of events.

        Args:
            group: name of the group.
        """
        return self.counted([tag for page in self.tag_name_pages(group) for tag in page])

    def all_tags(self, *, progress: Progress | None = None) -> list[TagCount]:
        """Return every tag, in order, with its number of events.

        Reads the whole table.

        Args:
            progress: function that is called with the number of tags read so far; None for none.
        """
        return self._scanned(None, progress)

    def groups(self) -> list[GroupCount]:
        """Return every group of tags, in order, with its number of tags.

        Reads the whole table.
        """
        counts = Counter(group_of(count.tag) for count in self.all_tags())
        return [GroupCount(group=group, tags=counts[group]) for group in sorted(counts)]

    def _scanned(self, group: str | None, progress: Progress | None = None) -> list[TagCount]:
        """Scan the table for the tags of a group, or all tags; return each with its number of events.

        Args:
            progress: called after each page with the number of tags found.
        """
        counts: Counter[str] = Counter()
        read = 0
        for page in self.store.driver.pages(self.make_tag_scan(group)):
            counts_found = [count for item in page.items if (count := self.read_tag(item)) is not None]
            for counted in counts_found:
                counts[counted.tag] += counted.events
            read += len(counts_found)
            if progress is not None:
                progress(read)
        return self.settled({tag: counts[tag] for tag in sorted(counts)})


class ListedStore(Protocol):
    """The store of a plug-in that has its own listings."""

    @property
    def listings(self) -> Listings: ...  # noqa: D102  as it has them


def listings_of(store: TaggedStore) -> Listings:
    """Return the object that lists the events, the tags and the tag groups of a store.

    Args:
        store: store of tagged events.
    """
    if isinstance(store, TaggedEvents):
        return TaggedListings(store=store)
    return cast("ListedStore", store).listings


def until_whole(items: Iterable[T], least: int) -> Iterator[T]:
    """Yield at least `least` events or entries, and all that have the place of the last one."""
    last = ""
    for place, event in enumerate(items):
        if place >= least and event.place != last:
            return
        last = event.place
        yield event


def parse_since(since: str | None) -> str | None:
    """Parse the place to continue after; an empty text is the beginning, as in Sekiban's library.

    Raises:
        InvalidInput: the text is no place.
    """
    return None if since is None or since == "" else parse_place(since)


def check_group(group: str) -> None:
    """Raise `InvalidInput` unless a text can be the name of a group."""
    check_tag(group, "group")
    if ":" in group:
        raise InvalidInput("group", "must not contain a colon: it is a tag's part before the first one")


# Listings of tagged events in the pages layout. All are strongly consistent, except the list of tags.
#
# all events        are read from the stream of all events, if the store was opened with `everything`
# events of a tag   are read from the tag's stream, after a place
# tags              are found by a scan of the table for the first pages of tags, since no index lists them

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
        """Yield all events after `since` in order, or at least `max_count`; raise without `everything`.

        Raises:
            InvalidInput: the store was not opened with `everything`.
        """
        self._check_everything()
        if max_count is not None:
            must_be_whole(max_count, "max_count", 1)
            page = min(page, max_count)
        events = self._events(EVERYTHING, since, progress, page)
        return events if max_count is None else until_whole(events, max_count)

    def tagged(
        self, tag: str, *, since: str | None = None, progress: Progress | None = None, page: int = PAGE
    ) -> Iterator[Recorded]:
        """Yield the events of a tag after the place `since`, in order."""
        yield from self._events(check_tag(tag, "tag"), since, progress, page)

    def entries(self, tag: str, *, since: str | None = None, page: int = PAGE) -> Iterator[TagEntry]:
        """Yield the entries of a tag after the place `since`, in order: its events without their bodies."""
        for part in self._parts(check_tag(tag, "tag"), since, page, lambda entries: entries):
            yield from map(entry_of, part)

    def latest(self, tag: str) -> TagEntry | None:
        """Return the entry of a tag's last event, without its body; None if the tag has no events."""
        return self.store.driver.run(latest(self.store.site, check_tag(tag, "tag")))

    def count(self, *, since: str | None = None, progress: Progress | None = None) -> int:
        """Count all events after the place `since`; raise unless the store was opened with `everything`.

        Raises:
            InvalidInput: the store was not opened with `everything`.
        """
        self._check_everything()
        count = self.store.driver.run(count_since(self.store.site, EVERYTHING, parse_since(since)))
        if progress is not None:
            progress(count)
        return count

    def tag_name_pages(
        self, group: str, beyond: str | None = None, *, page: int = PAGE
    ) -> Iterator[list[str]]:
        """Yield one page with all names of a group's tags after `beyond`, since only a scan finds them."""
        check_group(group)
        must_be_whole(page, "page", 1)
        yield [
            counted.tag
            for counted in self._scanned(group)
            if beyond is None or counted.tag > check_tag(beyond)
        ]

    def tags(self, group: str) -> list[TagCount]:
        """Return the tags of a group with their numbers of events; scans the whole table."""
        check_group(group)
        return self._scanned(group)

    def make_tag_scan(self, group: str | None = None) -> Scan:
        """Make the scan that finds the tags of a group, or all tags."""
        return make_tag_scan(self.store.site, group)

    def read_tag(self, item: Item) -> TagCount | None:
        """Read the tag whose first page an item is, with its count; 0 if the tag has several pages."""
        return read_tag(self.store.site, item)

    def settled(self, counts: Mapping[str, int]) -> list[TagCount]:
        """Return the tags that a scan found; tags of several pages are counted by their last page."""
        long = {
            counted.tag: counted.events
            for counted in self.counted([tag for tag in counts if not counts[tag]])
        }
        return [TagCount(tag=tag, events=events or long[tag]) for tag, events in counts.items()]

    def _check_everything(self) -> None:
        """Raise `InvalidInput` unless the store was opened with `everything`."""
        if EVERYTHING not in self.store.site.type_heads:
            raise InvalidInput(
                "tag",
                "must be given, because the store was opened without `everything`; or read the feed",
            )

    def _events(
        self, tag: str, since: str | None, progress: Progress | None, page: int
    ) -> Iterator[Recorded]:
        """Yield the events of a tag after a place, with their bodies, read page by page."""
        read = 0
        for entries in self._parts(tag, since, page, lambda entries: entries):
            events = self.store.driver.run(recorded_each(self.store.site, entries))
            read += len(entries)
            if progress is not None:
                progress(read)
            for event, entry in zip(events, entries, strict=True):
                yield from self.store.whole((placed(event, entry),))

    def _parts(
        self, tag: str, since: str | None, page: int, shown: Callable[[list[EventOfTag]], Sequence[U]]
    ) -> Iterator[Sequence[U]]:
        """Yield what `shown` makes of a tag's entries after a place, for up to 100 entries at a time.

        Args:
            since: place after which the events come; None for the beginning.
            page: number of entries that a request reads at most.
            shown: function that makes the results of the entries.
        """
        after, driver, site = parse_since(since), self.store.driver, self.store.site
        must_be_whole(page, "page", 1)
        page = min(page, PAGE)
        cursor = driver.run(begin_read_after(site, tag, after, page))
        read = 0
        while cursor is not None and not cursor.at_end:
            cursor, entries = driver.run(entries_after(site, cursor, after, page - read % page))
            read += len(entries)
            # The bodies may be on other pages, and large.
            for start in range(0, len(entries), BATCH_KEYS):
                yield shown(entries[start : start + BATCH_KEYS])
