"""The reading half of the original event-store API over tagged events: everything, by tag, by group, and counts.

    in order of time    through the index of all events, which lags by moments
    by tag              from base tables: strongly consistent, unless the store was opened for cheaper reads
    tags of a group     through the index by group, which lags; it is asked only for tags not seen yet, so that a tag
                        with a million entries costs no more than one request
    tags of all groups  by a scan of the tags table: no index lists groups

Counts of tags are their heads' (0 where only the original library has written, which keeps none).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from heapq import merge
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from epochal.contrib.sekiban.entries import (
    after_id,
    counting_page,
    events_page,
    group_page,
    make_tag_scan,
    read_entry,
    read_tag,
)
from epochal.contrib.sekiban.items import read_event
from epochal.errors import CorruptData
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Recorded
from epochal.model.kinds import must_be_whole
from epochal.model.tag_answers import TagCount, TagEntry
from epochal.model.tags import Trail, check_tag
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import Items, Scan
from epochal.plan.values import Item, Key
from epochal.store.driver import ahead, pool
from epochal.store.listings import PAGE, Listings, Progress, check_group, parse_since, until_whole

if TYPE_CHECKING:
    from epochal.contrib.sekiban.store import DcbEvents

LEAST: Final = 100
"""Lowest page size of a query to one of several partitions, which share the requested page size among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagListings(Listings):
    """Lists events, tags and tags' entries (references to events) in Sekiban's tables, reading pages as needed."""

    store: DcbEvents
    groups_are_indexed: ClassVar[bool] = True

    def all_events(
        self,
        *,
        since: str | None = None,
        max_count: int | None = None,
        progress: Progress | None = None,
        page: int = PAGE,
    ) -> Iterator[Recorded]:
        """Yield all or about `max_count` events after sortable id `since`, in order, from an index that lags.

        Args:
            since: sortable id after which to begin; None begins with the first event.
            max_count: number of events after which to stop. All events with the last one's sortable id are included,
                so that continuing `since` that id loses none.
            progress: function to call with the number of events read so far.
            page: events of a request at most.
        """
        since = parse_since(since)
        must_be_whole(page, "page", 1)
        if max_count is not None:
            must_be_whole(max_count, "max_count", 1)
        partitions = self.store.site.keys.every_partition()
        limit = min(PAGE, page, (max_count or page) + 1)
        size = max(limit // len(partitions), min(LEAST, limit))
        tally = _TagTally(progress)
        events = merged(
            [self._events(name, since, size, tally) for name in partitions],
            lambda event: (event.place, event.id),
            self.store.reads_at_once,
        )
        return events if max_count is None else until_whole(events, max_count)

    def tagged(
        self, tag: str, *, since: str | None = None, progress: Progress | None = None, page: int = PAGE
    ) -> Iterator[Recorded]:
        """Yield a tag's events after the sortable id `since`, in order, without those that have expired.

        Args:
            tag: the tag.
            since: sortable id after which the events begin; None for all.
            progress: function that is called with the number of events read so far; None for none.
            page: number of entries that one request reads at most.
        """
        must_be_whole(page, "page", 1)
        tally = _TagTally(progress)
        for events in ahead(
            partial(self._hydrated, tag), self._batches(tag, since, page), self.store.reads_at_once
        ):
            tally.add(len(events))
            yield from events

    def entries(self, tag: str, *, since: str | None = None, page: int = PAGE) -> Iterator[TagEntry]:
        """Yield a tag's entries, which refer to its events, after the sortable id `since`, in order.

        Args:
            tag: the tag.
            since: sortable id after which the entries begin; None for all.
            page: number of entries that one request reads at most.

        Raises:
            CorruptData: an entry is missing between two others.
        """
        check_tag(tag, "tag")
        since = parse_since(since)
        must_be_whole(page, "page", 1)
        ask = partial(self.store.site.entries, tag, after_id(since), limit=min(page, PAGE))
        after: Key | None = None
        before: int | None = None
        while True:
            reply = self.store.driver.ask(ask(after=after, consistent=self.store.consistent))
            if _has_hole(before, reply) and not self.store.consistent:
                reply = self.store.driver.ask(ask(after=after))
            if _has_hole(before, reply):
                raise CorruptData(f"tag {tag!r}: an entry is missing between others")
            entries = [read_entry(item) for item in reply.items]
            yield from entries
            after, before = reply.last, entries[-1].index if entries else before
            if after is None:
                return

    def latest(self, tag: str) -> TagEntry | None:
        """Return a tag's newest entry, which refers to its newest event; None if the tag has no entry.

        Args:
            tag: the tag.
        """
        check_tag(tag, "tag")
        newest = self.store.site.entries(tag, forward=False, limit=1, consistent=self.store.consistent)
        items = self.store.driver.ask(newest).items
        return read_entry(items[0]) if items else None

    def count(self, *, since: str | None = None, progress: Progress | None = None) -> int:
        """Count the events after the sortable id `since` in the index of all events, which lags.

        Args:
            since: sortable id after which events count; None for all.
            progress: function that is called with the number of events counted so far; None for none.
        """
        since = parse_since(since)
        tally = _TagTally(progress)

        def count_one(name: str) -> None:
            """Add the number of events in one partition of the index to the tally."""
            for page in self.store.driver.pages(counting_page(self.store.site, name, since)):
                tally.add(page.counted or 0)

        for _ in ahead(count_one, self.store.site.keys.every_partition(), self.store.reads_at_once):
            pass
        return tally.total

    def tag_name_pages(
        self, group: str, beyond: str | None = None, *, page: int = PAGE
    ) -> Iterator[list[str]]:
        """Yield lists of the names of a group's tags, one for each page, from the tag after `beyond` on.

        A request reads `page` entries at most, so a page holds a single tag if that tag has many entries.
        """
        check_group(group)
        must_be_whole(page, "page", 1)
        if beyond is not None:
            check_tag(beyond, "beyond")
        while True:
            reply = self.store.driver.ask(group_page(self.store.site, group, beyond, min(page, PAGE)))
            yield list(dict.fromkeys(item["tagString"]["S"] for item in reply.items))
            if reply.last is None:
                return
            # The remaining entries of the last tag are skipped: the next page begins with another tag.
            beyond = reply.items[-1]["tagString"]["S"]

    def make_tag_scan(self, group: str | None = None) -> Scan:  # noqa: ARG002  an index lists those of a group
        """Make the DynamoDB scan that finds all tags."""
        return make_tag_scan(self.store.site)

    def read_tag(self, item: Item) -> TagCount | None:
        """Decode a tag and its number of events from an item that the scan of `make_tag_scan` found.

        Returns None if the tag is reserved or another tenant's. An entry without a head counts as 0 events.
        """
        return read_tag(self.store.site, item)

    def settled(self, found: Mapping[str, int]) -> list[TagCount]:
        """Make a list of tags with their numbers of events from the totals of a scan."""
        return [TagCount(tag=tag, events=events) for tag, events in found.items()]

    def _batches(self, tag: str, since: str | None, page: int) -> Iterator[list[TagEntry]]:
        """Yield batches of a tag's entries, each as many as one request can read the events of."""
        entries = self.entries(tag, since=since, page=page)
        while batch := list(islice(entries, min(page, BATCH_KEYS))):
            yield batch

    def _hydrated(self, tag: str, entries: list[TagEntry]) -> list[Recorded]:
        """Read the events of a tag's entries, in order, with their positions in the tag, without expired ones."""
        events = self.store.events([entry.event_id for entry in entries])
        return [
            event
            if entry.index is None
            else replace(event, trail=Trail.in_tags({tag: entry.index + 1}, event.place))
            for entry in entries
            if (event := events.get(entry.event_id)) is not None
        ]

    def _events(self, name: str, since: str | None, size: int, tally: _TagTally) -> Iterator[list[Recorded]]:
        """Yield pages of events from one partition of the index of all events."""
        for page in self.store.driver.pages(events_page(self.store.site, name, since, size)):
            tally.add(len(page.items))
            yield list(map(read_event, page.items))


class _TagTally:
    """A counter that reports its total after each addition, one report at a time; safe under threads."""

    def __init__(self, progress: Progress | None) -> None:
        self.total = 0
        self._progress = progress
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """Add a count to the total and report the total."""
        with self._lock:
            self.total += count
            if self._progress is not None:
                self._progress(self.total)


def _has_hole(before: int | None, page: Items) -> bool:
    """Whether an entry is missing on a page, or between the entry of index `before` and the page.

    Entries of the original library have no index and are ignored.
    """
    indices = [index for item in page.items if (index := read_entry(item).index) is not None]
    if before is not None:
        indices = [before, *indices]
    return bool(indices) and indices[-1] - indices[0] != len(indices) - 1


A = TypeVar("A")


def merged(sources: Sequence[Iterator[Sequence[A]]], key: Callable[[A], Any], at_once: int) -> Iterator[A]:
    """Merge sources, each of which yields pages in the order of `key`, into one ordered iterator.

    Up to `at_once` pages are read at a time, each on a thread. One page of each source is in memory, and the next one
    is requested when half of it has been consumed, which bounds memory however long the sources are.
    """
    if at_once == 1 or len(sources) == 1:
        yield from merge(*map(chain.from_iterable, sources), key=key)
        return
    calls = pool(min(at_once, len(sources)))
    try:
        first = [calls.submit(next, source, None) for source in sources]
        pairs = zip(sources, first, strict=True)
        yield from merge(*(_half_ahead(calls, source, page) for source, page in pairs), key=key)
    finally:
        calls.shutdown(cancel_futures=True)


def _half_ahead(
    calls: Executor, source: Iterator[Sequence[A]], under_way: Future[Sequence[A] | None]
) -> Iterator[A]:
    """Yield the elements of a source's pages, and request the next page halfway through each."""
    while (page := under_way.result()) is not None:
        half = len(page) // 2
        yield from page[:half]
        under_way = calls.submit(next, source, None)
        yield from page[half:]
