"""The reading half of the original event-store API over tagged events: everything, by tag, by group, and
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from epochal.errors import InvalidInput
from epochal.layout.dcb.items import read_event
from epochal.layout.dcb.listing import TagEntry, entries_page, events_page, group_page, read_entry
from epochal.layout.dcb.reading import read_events, read_heads
from epochal.model.dcb import RecordedTaggedEvent, SortableId, check_tag
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import Items, Query, Steps
from epochal.plan.values import Key
from epochal.store.tagged import TaggedEvents

PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCount:
    """A tag and how many events it has."""

    tag: str
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagListings:
    """Lists what a store of tagged events holds. Pages are read as they are consumed."""

    store: TaggedEvents

    def all_events(
        self, *, since: SortableId | None = None, max_count: int | None = None
    ) -> Iterator[RecordedTaggedEvent]:
        """Every event after `since` in order of sortable ids, at most `max_count`; through an index that
        lags.
        """
        if max_count is not None and max_count < 1:
            raise InvalidInput("max_count", "must be at least 1")
        size = PAGE if max_count is None else min(PAGE, max_count)
        partitions = self.store.site.keys.every_partition()
        found = merge(
            *(self._events(name, since, size) for name in partitions),
            key=lambda event: (event.sortable_id, event.id),
        )
        return islice(found, max_count)

    def tagged(self, tag: str, *, since: SortableId | None = None) -> Iterator[RecordedTaggedEvent]:
        """A tag's events after `since`, in order; those that have expired are missing."""
        entries = self.entries(tag, since=since)
        while batch := list(islice(entries, BATCH_KEYS)):
            ids = [entry.event_id for entry in batch]
            events = self.store.driver.run(read_events(self.store.site, ids))
            yield from (events[event_id] for event_id in ids if event_id in events)

    def entries(self, tag: str, *, since: SortableId | None = None) -> Iterator[TagEntry]:
        """A tag's entries after `since`, in order."""
        site = self.store.site
        check_tag(tag, "tag")
        for page in self._pages(lambda after: entries_page(site, tag, since, after)):
            yield from map(read_entry, page.items)

    def latest(self, tag: str) -> TagEntry | None:
        """A tag's newest entry; None where it has none."""
        check_tag(tag, "tag")
        query = entries_page(self.store.site, tag, None, None, newest_first=True)
        found = self.store.driver.run(_one(query)).items
        return read_entry(found[0]) if found else None

    def exists(self, tag: str) -> bool:
        """Whether a tag has any event."""
        return self.latest(tag) is not None

    def count(self, *, since: SortableId | None = None, told: Callable[[int], None] | None = None) -> int:
        """How many events there are after `since`; `told` hears the count so far, page by page."""
        total = 0
        for name in self.store.site.keys.every_partition():
            for page in self._partition(name, since, PAGE):
                total += len(page.items)
                if told is not None:
                    told(total)
        return total

    def tags(self, group: str) -> list[TagCount]:
        """Every tag of a group, with its count as its head has it."""
        site = self.store.site
        names = dict.fromkeys(
            item["tagString"]["S"]
            for page in self._pages(lambda after: group_page(site, group, after))
            for item in page.items
        )
        heads = self.store.driver.run(read_heads(site, list(names)))
        return [TagCount(tag=tag, events=heads[tag].count) for tag in names]

    def _events(self, name: str, since: SortableId | None, size: int) -> Iterator[RecordedTaggedEvent]:
        for page in self._partition(name, since, size):
            yield from map(read_event, page.items)

    def _partition(self, name: str, since: SortableId | None, size: int) -> Iterator[Items]:
        return self._pages(lambda after: events_page(self.store.site, name, since, after, size))

    def _pages(self, query: Callable[[Key | None], Query]) -> Iterator[Items]:
        after: Key | None = None
        while True:
            page = self.store.driver.run(_one(query(after)))
            yield page
            if page.last is None:
                return
            after = page.last


def _one(query: Query) -> Steps[Items]:
    reply: Items = yield query
    return reply
