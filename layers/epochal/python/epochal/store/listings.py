"""Listing what a store of tagged events holds, however it is stored: everything, by tag, by group, and counts.

A subclass says how its layout does that. Pages are read as they are consumed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar

from epochal.errors import InvalidInput
from epochal.model.dcb import RecordedTaggedEvent, SortableId, check_tag, group_of, parse_sortable_id
from epochal.model.tagged_results import TagCount, TagEntry
from epochal.plan.ops import Scan
from epochal.plan.values import Item
from epochal.store.tagged_store import TaggedStore

T = TypeVar("T", TagEntry, RecordedTaggedEvent)

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
    ) -> Iterator[RecordedTaggedEvent]:
        """Every event after `since` in order of sortable ids.

        Args:
            max_count: where to stop; all events of the last one's sortable id come with it, so that going on `since`
                that id loses none.
        """

    @abstractmethod
    def tagged(
        self, tag: str, *, since: str | None = None, progress: Progress | None = None, page: int = PAGE
    ) -> Iterator[RecordedTaggedEvent]:
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
    """Events or entries until there are `least` of them, and no other has the sortable id of the last."""
    last = ""
    for place, each in enumerate(found):
        if place >= least and each.sortable_id != last:
            return
        last = each.sortable_id
        yield each


def checked_since(since: str | None) -> SortableId | None:
    """Where to go on; an empty id is the beginning, as in Sekiban's library."""
    return None if since is None or since == "" else parse_sortable_id(since)


def check_group(group: str) -> None:
    """Raise `InvalidInput` for what is no group."""
    check_tag(group, "group")
    if ":" in group:
        raise InvalidInput("group", "ends before the first : of its tags")
