"""Reads the feed: from any checkpoint, by page, to the tail, or without end.

A checkpoint is between entries of the index, so a page ends with an entry: its limit says when to stop, not where to
cut. The checkpoint also moves past what a filter drops. Partitions of all sources are read in the same way; their
events come from their stores, in one form. A deployment's reader has the history of each layout whose tables the
settings name.

This module imports nothing of the indexer: the function that serves the feed starts up without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypedDict, Unpack

from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent
from epochal.feed.filters import Predicate, span_filter
from epochal.feed.histories import histories_of
from epochal.feed.history import History
from epochal.feed.hydration import (
    Hydrate,
    HydrateUnopened,
    bare_items,
    hydrated,
    hydrated_entries,
    with_removals,
)
from epochal.feed.page_filling import PageBounds, fill
from epochal.feed.results import (
    FeedItem,
    FeedPage,
    NamedStreams,
    NewestPage,
    PartitionTail,
    SpanPage,
    StreamsPage,
)
from epochal.feed.span_reader import SpanReader, is_forward
from epochal.index.checkpoints import BEGINNING, Checkpoint, FeedPosition, FeedStart, read_start
from epochal.index.feed_walk import read_tail, read_tails
from epochal.index.moments import find_moment
from epochal.layout.categories import Categories
from epochal.layout.changes import Removal, Span
from epochal.layout.registry import layout_of, source_of
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.kinds import must_be_seconds, must_be_whole
from epochal.model.moments import Moment
from epochal.plugins import NATIVE
from epochal.settings import Settings
from epochal.store.driver import Driver, pool
from epochal.store.encoding import BodyCodec
from epochal.store.reading import Direction

if TYPE_CHECKING:
    from epochal.feed.ordered import OrderedCheckpoint, OrderedPage
    from epochal.feed.whole import WholeFeed


class PageOptions(TypedDict, total=False):
    """Options of a read of the feed: which items its pages have, and with what contents.

    Attributes:
        limit: number of items after which a page ends, once it has all of its last index entry; 1,000 by default.
        categories: categories of streams, types of aggregates, or groups of tags to which the page is limited; None for
            all.
        predicate: function that returns whether a span is included; None includes all.
        data: whether to read the events themselves, and not only their streams, indexes and types.
        once: whether to return an event with tags once, through the stream that it was appended to, or else through its
            first tag, instead of through every tag. The limit counts the repetitions too. It needs `data`, since only
            the events know their tags.
        strict: whether to raise an error for an event that cannot be read, instead of showing it with its `fault`.
        removals: whether to include items that say which events were pruned or deleted (`FeedItem.removal`). A
            predicate is called for the streams of these items with a span without events.
    """

    limit: int
    categories: Collection[str] | None
    predicate: Predicate | None
    data: bool
    once: bool
    strict: bool
    removals: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The options of pages, with defaults filled in."""

    limit: int
    predicate: Predicate
    hydrate: HydrateUnopened | None
    once: bool
    strict: bool
    removals: bool
    seconds: float = 10.0
    wait: float = 0.0

    def page(self, reader: SpanReader) -> FeedPage:
        """Read and return the next page of items, with their events if requested."""
        span_page = reader.spans(
            limit=self.limit,
            predicate=self.predicate,
            seconds=self.seconds,
            wait=self.wait,
            removed=self.predicate if self.removals else None,
        )
        items: Sequence[FeedItem | None]
        if self.hydrate is None:
            items = bare_items(span_page.spans)
        else:
            ends = [entry.spans for entry in reader.taken]
            items, count = hydrated_entries(
                span_page.spans, ends, self.hydrate, once=self.once, strict=self.strict
            )
            span_page = reader.give_back(span_page, count)
        merged = with_removals(items, span_page.spans, span_page.removals)
        return FeedPage(items=tuple(merged), next=span_page.next, at_tail=span_page.at_tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedReader:
    """Reads the partitions of an index, and the events of their streams.

    Attributes:
        driver: the driver that sends requests to the index table.
        table: name of the index table.
        histories: readers of the events themselves, one for each layout, for pages with data.
    """

    driver: Driver
    table: str
    histories: tuple[History, ...] = ()

    def on(self, driver: Driver) -> FeedReader:
        """Return a copy of the reader that sends all its requests through another driver.

        Args:
            driver: driver that runs the requests of the copy.
        """
        return replace(self, driver=driver, histories=tuple(history.on(driver) for history in self.histories))

    def partitions(self) -> tuple[PartitionTail, ...]:
        """List all partitions, each with its end (tail); none before an indexer has registered its source."""
        tails = self.driver.run(read_tails(self.table))
        return tuple(PartitionTail(partition=partition, tail=tail) for partition, tail in tails)

    @property
    def declared(self) -> frozenset[str]:
        """Stream categories whose names contain `-`, as they were declared to the stores."""
        rules = (history.categories for history in self.histories)
        return frozenset[str]().union(*(rule.declared for rule in rules if rule is not None))

    def categories(self, partition: int) -> Categories:
        """Return the rule that finds the category of each stream of a partition.

        Args:
            partition: number of the partition.
        """
        layout = layout_of(partition)
        for history in self.histories:
            if history.name == layout.name and (rule := history.categories) is not None:
                return rule
        return layout.port.categories

    def find_checkpoint(self, partition: int, start: FeedStart) -> Checkpoint:
        """Return the checkpoint of a starting point: a moment, `beginning`, `tail`, or a checkpoint itself.

        A moment is searched for in the index: requests grow with the logarithm of its events.

        Args:
            partition: number of the partition.
            start: starting point: a checkpoint, `beginning`, `tail`, or a moment.

        Raises:
            InvalidInput: `start` is not a starting point, or the partition is not on record and has no tail.
        """
        place = read_start(start)
        if isinstance(place, Moment):
            return self.driver.run(find_moment(self.table, partition, place.ticks))
        if place == "beginning":
            return BEGINNING
        if place == "tail":
            tail = self.driver.run(read_tail(self.table, partition))
            if tail is None:
                raise InvalidInput("partition", f"{partition} is not in the index: deploy its indexer first")
            return tail
        return place

    def page(
        self,
        partition: int,
        *,
        start: FeedStart | None = None,
        direction: Direction = "forward",
        seconds: float = 10.0,
        wait: float = 0.0,
        **options: Unpack[PageOptions],
    ) -> FeedPage:
        """Read a page from `start`: `limit` items and the rest of their entry; fewer if time or room runs out.

        It includes all of the entry that reaches the limit. A page with data ends before its limit with the entry that
        brings it to 64 MB of large bodies.

        Args:
            partition: number of the partition.
            start: starting point; by default the beginning, or backward the tail.
            direction: `backward` returns what is before `start`, newest first; `next` is then where to continue
                backward.
            seconds: a page that is not full after so long ends, with the checkpoint reached.
            wait: seconds to wait for new items if there are none.
            options: as in `PageOptions`.

        Raises:
            InvalidInput: a limit below 1, data without the store, `once` without data.
            CorruptData, MissingBody, DeniedBody: with `strict`, an event cannot be read.
            BeyondTheEnd: `start` is no checkpoint of this index.
        """
        must_be_seconds(seconds, "seconds")
        must_be_seconds(wait, "wait")
        request = replace(self._request(partition, **options), seconds=seconds, wait=wait)
        return request.page(self._span_reader(partition, start, direction))

    def page_within(
        self,
        room: PageBounds,
        partition: int,
        *,
        start: FeedStart | None = None,
        direction: Direction = "forward",
        limit: int = 1000,
        categories: Collection[str] | None = None,
        data: bool = False,
        removals: bool = False,
        seconds: float = 10.0,
        wait: float = 0.0,
    ) -> FeedPage:
        """Read a page as `page` does, but end it at the limits in `room`; bodies in the bucket stay claims.

        Args:
            room: bounds of the page's size.
            partition, start, direction, limit, categories, data, removals, seconds, wait: as for `page`.
        """
        predicate = span_filter(partial(self.categories, partition), categories, None)
        entries = list(
            self._span_reader(partition, start, direction).entries(
                limit=limit,
                predicate=predicate,
                seconds=seconds,
                wait=wait,
                removed=predicate if removals else None,
            )
        )
        hydrate = self.hydrate_unopened if data else None
        items, taken = fill(room, [(partition, entry) for entry in entries], hydrate, self.driver.clock)
        reached = entries[taken - 1]
        return FeedPage(items=items, next=reached.next, at_tail=reached.at_tail)

    def newest(
        self,
        limit: int = 100,
        *,
        before: Mapping[int, Checkpoint] | None = None,
        categories: Collection[str] | None = None,
        predicate: Predicate | None = None,
        data: bool = False,
        seconds: float = 10.0,
    ) -> NewestPage:
        """Return all partitions' newest items, newest first: `limit` or more, unless time or items run out.

        The first `limit` items are the newest of all. The others complete the index entries of these, since a position
        is between entries: they may be older than the first items of the next page.

        A page with data ends before its limit with the entry that brings it to 64 MB of large bodies.

        A partition's items are in the order of the feed. Between partitions the timestamps of events decide, but an
        event counts as no later than its entry; one that is gone, or dated more than a day before its entry or a minute
        after it, counts as the event before it in the entry. If more than one partition has events, those of the page
        and of one more entry of each partition are read for their timestamps, even without `data`: up to 5,000 events,
        about a read unit for each stream. Beyond that, and for a reader without the stores, all events of an entry have
        the time of the entry.

        Args:
            limit: number of items after which the page ends, 1 or more.
            before: a position, such as a page's `next`: only its partitions, and what is before it.
            categories: categories of streams, types of aggregates or groups of tags; None for all.
            predicate: function that says whether a span may belong to the page; None for all spans.
            data: whether items have their events.
            seconds: a page that is not full after so long ends, with the position reached.

        Raises:
            InvalidInput: a limit below 1, data without the store.
            BeyondTheEnd: `before` is of another index.
        """
        return self._whole.newest(
            limit, before=before, categories=categories, predicate=predicate, data=data, seconds=seconds
        )

    def streams(
        self,
        limit: int = 100,
        *,
        start: Mapping[int, FeedStart] | FeedStart | None = None,
        direction: Direction = "forward",
        categories: Collection[str] | None = None,
        prefix: str = "",
        seconds: float = 10.0,
    ) -> StreamsPage:
        """Return a page of streams by time of creation: `limit` or more, unless time or streams run out.

        It reads through the index from `start` on: a million events take seconds, and no table is scanned.

        A stream is created with its first event or, if that had been pruned before, with the first that was indexed.
        Deleted streams are listed. Streams of tags are listed if their category is requested.

        Args:
            limit: number of streams after which the page ends, 1 or more.
            start: a position, such as a page's `next`, or a starting point; by default the beginning, or backward the
                tail.
            direction: `backward` returns the newest first.
            categories: categories of streams, types of aggregates or groups of tags; None for all but those of tags.
            prefix: beginning of the names.
            seconds: a page that is not full after so long ends, with the position reached.

        Raises:
            InvalidInput: a limit below 1, or `start` is not a starting point.
            BeyondTheEnd: `start` is of another index.
        """
        return self._whole.streams(
            limit, start=start, direction=direction, categories=categories, prefix=prefix, seconds=seconds
        )

    def streams_by_name(
        self,
        limit: int = 100,
        *,
        after: str = "",
        categories: Collection[str] | None = None,
        prefix: str = "",
        seconds: float = 3_600.0,
    ) -> NamedStreams:
        """List streams by name, as Python compares text: those of up to `limit` names after `after`.

        Streams of one name in several layouts come together. The index is not ordered by name: each page reads all of
        it, holds no more than the page, and continues `after` a name. So request large pages.

        Args:
            limit: number of streams of the page at most, 1 or more.
            after: name after which the page begins; empty for the first page.
            categories: categories of streams, types of aggregates or groups of tags; None for all but those of tags.
            prefix: beginning of the names.
            seconds: time for reading all of the index.

        Raises:
            InvalidInput: a limit below 1; or the time is over before all of the index was read.
        """
        return self._whole.streams_by_name(
            limit, after=after, categories=categories, prefix=prefix, seconds=seconds
        )

    def wait_for(
        self, stream: str, version: int, *, source: str = NATIVE, seconds: float = 10.0
    ) -> FeedPosition | None:
        """Wait until a stream's events below `version` are in the feed; return a position after them, or None.

        The version is that in an append's answer. Readers and reactions compare the position with theirs (`covers`).
        None means that it took too long.

        Recent appends are found with a few requests. Other events are looked for back through the index, once nothing
        has come for a while, or the time is over.

        Args:
            stream: name of the stream.
            version: index after the last event to wait for, such as the version that an append returns.
            source: layout in which the stream is stored.
            seconds: time to wait for what has not been indexed. Looking back may take two more.

        Raises:
            InvalidInput: no partition of that layout is on record, in all that time.
        """
        return self._whole.wait_for(stream, version, source=source, seconds=seconds)

    @property
    def _whole(self) -> WholeFeed:
        """Reads all partitions at once."""
        from epochal.feed.whole import WholeFeed  # noqa: PLC0415  few need it

        return WholeFeed(self)

    def events(
        self, partition: int, stream: str, first: int, end: int, *, fetch: bool = True
    ) -> Iterator[FeedEvent]:
        """Iterate over events `first` to `end - 1` of a stream, read from its store as they are consumed.

        No event is left out: an event that no longer exists has `gone` set, and an unreadable one has `fault` set.
        Without `fetch`, bodies in the bucket stay claims.

        Args:
            partition: number of the partition.
            stream: name of the stream.
            first: index of the first event.
            end: index after the last event.
            fetch: False leaves bodies that lie in the bucket as claims.
        """
        return self.hydrate(partition, fetch=fetch)(stream, first, end)

    def items(self, partition: int, spans: Sequence[Span]) -> tuple[FeedItem, ...]:
        """Return the items of a partition's spans with their events, as a page with data has them.

        Args:
            partition: number of the partition.
            spans: spans of that partition, as `spans` returns them.
        """
        return tuple(hydrated(spans, self.hydrate(partition)))

    def end_of(self, partition: int, stream: str, since: int) -> int:
        """Return the index after a stream's last event by its store, not by the feed; at least `since`.

        The feed may not have reached it yet.

        Args:
            partition: number of the partition.
            stream: name of the stream.
            since: lowest result.

        Raises:
            InvalidInput: the reader was not given the store of the partition's layout.
        """
        return self._history(partition).end_of(stream, since)

    def removal_of(self, partition: int, stream: str) -> Removal | None:
        """Return all that was pruned or deleted of a stream as one removal; None if nothing, or not recorded.

        None if nothing has, or if the layout does not record it.

        Args:
            partition: number of the partition.
            stream: name of the stream.
        """
        return self._history(partition).removal_of(stream)

    def spans(
        self,
        partition: int,
        *,
        start: FeedStart = BEGINNING,
        limit: int = 1000,
        categories: Collection[str] | None = None,
        predicate: Predicate | None = None,
        removals: bool = False,
        seconds: float = 10.0,
        wait: float = 0.0,
    ) -> SpanPage:
        """Read a page of spans (runs of a stream's events) from `start`: `limit` events or more, if in time.

        It includes all of the entry that reaches the limit. The arguments are those of `page`.

        Args:
            partition: number of the partition.
            start: starting point: a checkpoint, `beginning`, `tail`, or a moment.
            limit: number of events after which the page ends, 1 or more.
            categories: categories of streams, types of aggregates or groups of tags; None for all.
            predicate: function that says whether a span is returned; None for all spans.
            removals: whether removals of events are returned, too.
            seconds: time after which a page that is not full ends.
            wait: seconds to wait for new spans if there are none.
        """
        must_be_seconds(seconds, "seconds")
        must_be_seconds(wait, "wait")
        predicate = span_filter(partial(self.categories, partition), categories, predicate)
        return self._span_reader(partition, start).spans(
            limit=limit,
            predicate=predicate,
            seconds=seconds,
            wait=wait,
            removed=predicate if removals else None,
        )

    def read(
        self, partition: int, *, start: FeedStart = BEGINNING, **options: Unpack[PageOptions]
    ) -> Iterator[FeedPage]:
        """Iterate over pages from `start` to the tail; the index is read one request ahead.

        Keep a page's `next` once its items are handled, and resume from there.

        Args:
            partition: number of the partition.
            start: starting point: a checkpoint, `beginning`, `tail`, or a moment.
            options: as in `PageOptions`.
        """
        request = self._request(partition, **options)
        reader = self._span_reader(partition, start)
        with pool(1) as reader.ahead:
            at_tail = False
            while not at_tail:
                page = request.page(reader)
                at_tail = page.at_tail
                yield page

    def follow(
        self,
        partition: int,
        *,
        start: FeedStart = BEGINNING,
        wait: float = 20.0,
        **options: Unpack[PageOptions],
    ) -> Iterator[FeedPage]:
        """Iterate over pages from `start` on without end; at the tail, wait up to `wait` seconds for each.

        A page comes when there is something, or empty after that time.

        Args:
            partition: number of the partition.
            start: starting point: a checkpoint, `beginning`, `tail`, or a moment.
            wait: seconds to wait for each page at the tail.
            options: as in `PageOptions`.
        """
        must_be_seconds(wait, "wait")
        request = self._request(partition, **options)
        patient, reader = replace(request, wait=wait), self._span_reader(partition, start)
        while True:
            yield patient.page(reader)

    def ordered(
        self,
        *,
        within: float,
        start: OrderedCheckpoint | FeedStart = BEGINNING,
        partitions: Collection[int] | None = None,
        follow: bool = False,
        wait: float = 20.0,
        limit: int = 1000,
        categories: Collection[str] | None = None,
        predicate: Predicate | None = None,
        once: bool = False,
        strict: bool = False,
        now: Callable[[], int] = time.time_ns,
    ) -> Iterator[OrderedPage]:
        """Yield pages of several partitions in order of the events' writes, to the tail, or on with `follow`.

        `feed.ordered` describes the order. Each event comes at most `within` seconds after it and what must come before
        it have been read. Keep a page's `next`, and resume from there.

        Args:
            within: seconds that an event is held back at most, so that what was written before it may come first.
            start: ordered checkpoint of an earlier page, or a starting point of all partitions.
            partitions: partitions to read; by default, all that are recorded.
            follow: continue at the tail without end, as `follow` does; otherwise the last page ends with what is older
                than `within` there.
            wait: seconds to wait for each page at the tail, where `follow`.
            limit: number of items in a page at most.
            categories, predicate, once, strict: as in `PageOptions`.
            now: returns nanoseconds since 1970. It must not be ahead of the indexers' clocks by much of `within`.

        Raises:
            InvalidInput: a window that is negative or longer than an hour, or the reader has no store.
        """
        must_be_whole(limit, "limit", 1)
        must_be_seconds(wait, "wait")
        reader = self._whole.in_order(
            within, start, partitions, categories, predicate, once=once, strict=strict, now=now
        )
        at_tail = False
        while follow or not at_tail:
            page = reader.page(limit, 10.0, wait if follow else 0.0)
            at_tail = page.at_tail
            yield page

    def _span_reader(
        self, partition: int, start: FeedStart | None, direction: Direction = "forward"
    ) -> SpanReader:
        """Build a reader of spans at `start`; by default at the beginning, or for backward at the tail."""
        forward = is_forward(direction)
        if start is None:
            start = BEGINNING if forward else "tail"
        place = self.find_checkpoint(partition, start)
        return SpanReader.begin(self.driver, self.table, partition, place, forward=forward)

    def _request(
        self,
        partition: int,
        *,
        limit: int = 1000,
        categories: Collection[str] | None = None,
        predicate: Predicate | None = None,
        data: bool = False,
        once: bool = False,
        strict: bool = False,
        removals: bool = False,
    ) -> _Request:
        """Check the options of pages, and return them as a request, with defaults filled in."""
        must_be_whole(partition, "partition")
        must_be_whole(limit, "limit", 1)
        if once and not data:
            raise InvalidInput("once", "needs data=True, because only the data show an event's tags")
        return _Request(
            limit=limit,
            predicate=span_filter(partial(self.categories, partition), categories, predicate),
            hydrate=self.hydrate_unopened(partition, fetch=True) if data else None,
            once=once,
            strict=strict,
            removals=removals,
        )

    def hydrate(self, partition: int, *, fetch: bool = True) -> Hydrate:
        """Return a function that reads a partition's events; raise `InvalidInput` if the store was not given.

        Args:
            partition: number of the partition.
            fetch: False leaves bodies that lie in the bucket as claims.
        """
        return self._history(partition).events(fetch=fetch)

    def hydrate_unopened(self, partition: int, *, fetch: bool = False) -> HydrateUnopened:
        """Return a function that reads a partition's events, leaving large bodies compressed until their use.

        It is the function of `hydrate`, but an event whose body may be large comes unopened: its body is decompressed
        when it is used. A layout that cannot do so returns all events as `hydrate` does.

        Args:
            partition: number of the partition.
            fetch: False leaves bodies that lie in the bucket as claims.
        """
        return self._history(partition).unopened(fetch=fetch)

    def _history(self, partition: int) -> History:
        """Return the history of a partition's layout; raise `InvalidInput` if it was not given."""
        source = source_of(partition)
        for history in self.histories:
            if history.name == source:
                return history
        raise InvalidInput("data", f"needs a reader that was opened with the store of layout {source}")


def reader_of(settings: Settings, driver: Driver, codec: BodyCodec) -> FeedReader:
    """Build the feed reader of a deployment; `codec` decodes the bodies of streams."""
    return FeedReader(
        driver=driver, table=settings.index_table, histories=histories_of(settings, driver, codec)
    )
