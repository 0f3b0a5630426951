"""Reads the feed: from any checkpoint, by page, to the tail, or without end.

A checkpoint is between entries of the index, so a page ends with an entry: its limit says when to stop,
not where to cut. Whatever a filter drops, the checkpoint moves past it. Partitions of all sources are read alike;
their events come from their stores, in one shape.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict, Unpack, cast

from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent
from epochal.feed.history import History, histories_of
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
    PlacedRemoval,
    SpanPage,
    StreamsPage,
)
from epochal.feed.waiting import POLL_SECONDS, Pauses, wait_for_more
from epochal.index.checkpoints import BEGINNING, Checkpoint, FeedPosition, FeedStart, Moment
from epochal.index.entries import EntryPart
from epochal.index.feed_walk import FeedWalk, PlacedEntry, WalkPage, find_moment, poll, read_tail, read_tails
from epochal.layout.categories import Categories
from epochal.layout.changes import Removal, Span
from epochal.layout.registry import layout_of, source_of
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.kinds import (
    must_be,
    must_be_done,
    must_be_names,
    must_be_plain,
    must_be_seconds,
    must_be_whole,
)
from epochal.plugins import NATIVE
from epochal.settings import Settings
from epochal.store.driver import Driver, pool
from epochal.store.encoding import BodyCodec
from epochal.store.reading import Direction

if TYPE_CHECKING:
    from epochal.feed.ordered import OrderedCheckpoint, OrderedPage
    from epochal.feed.whole import WholeFeed

Predicate = Callable[[Span], bool]


def wanted(
    known: Callable[[], Categories], categories: Collection[str] | None, predicate: Predicate | None
) -> Predicate:
    """Build a filter of spans from categories and a predicate.

    Args:
        known: returns which streams of the partition belong to a category; called if there are categories.

    Raises:
        InvalidInput: the categories are no names; or the predicate would have to be awaited, and what it returns would
            count as true.
    """
    check_wanted(categories, predicate)
    if categories is None and predicate is None:
        return _every
    of = None if categories is None else known()

    def is_wanted(span: Span) -> bool:
        """Return whether a span is in one of the categories and satisfies the predicate."""
        in_category = categories is None or of is None or of.hold(span.stream, categories)
        return in_category and (predicate is None or must_be_done(predicate(span), "predicate"))

    return is_wanted


def _every(_: Span) -> bool:
    """Accept every span."""
    return True


def check_wanted(categories: Collection[str] | None, predicate: Predicate | None) -> None:
    """Check categories and a predicate, raising as `wanted` does.

    Also for an index that has no partition yet, of which nothing is read.
    """
    if categories is not None:
        must_be_names(categories, "categories")
    if predicate is not None:
        must_be_plain(predicate, "predicate")


# Reading a partition: spans page by page, and between pages what a request has brought beyond the last.
#
# A request brings whole items of the index, each with many entries. A reader that goes on takes them from here; one
# that leaves after a page has read little in vain, because requests begin small and grow. On the way to the tail the
# next request can be made while the reader works on the last one.

FIRST_ITEMS: Final = 4
"""Items that the first request asks for, some 30 KB each; every further one asks for twice as many."""

MOST_ITEMS: Final = 1_024
"""A request is over at 1 MB in any case."""


class _TakenEntry(NamedTuple):
    """An entry of a page, and how many spans and removals the page has up to its end."""

    placed: PlacedEntry
    spans: int
    removals: int


@dataclass(slots=True, kw_only=True)
class _Page:
    """A page while it is read: the wanted spans, up to and including the entry that reaches `limit`."""

    wanted: Predicate
    removed: Predicate | None
    limit: int
    at: Checkpoint
    forward: bool
    created: bool = False
    spans: list[Span] = field(default_factory=list)
    removals: list[PlacedRemoval] = field(default_factory=list)
    count: int = 0
    taken: list[_TakenEntry] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self.count >= self.limit

    def take(self, placed: PlacedEntry) -> None:
        """Add the wanted spans and removals of an entry; `at` is then the checkpoint to continue from."""
        entry = placed.entry()
        if self.created:
            self._take_spans(entry.created)
        elif self.removed is not None and entry.removals:
            self._take_parts(entry.parts, self.removed)
        else:
            self._take_spans(entry.spans)
        self.taken.append(_TakenEntry(placed, len(self.spans), len(self.removals)))
        self.at = placed.after

    def _take_spans(self, spans: Sequence[Span]) -> None:
        """Add the wanted spans, in backward pages event by event."""
        kept = spans if self.wanted is _every else [*filter(self.wanted, spans)]
        if not self.forward:
            kept = [Span(each.stream, each.index, (each.type,)) for each in reversed(bare_items(kept))]
        self.spans += kept
        self.count += sum(map(len, map(itemgetter(2), kept)))

    def _take_parts(self, parts: Sequence[EntryPart], removed: Predicate) -> None:
        """Add wanted spans and removals in order."""
        for part in parts if self.forward else reversed(parts):
            if isinstance(part, Span):
                self._take_spans((part,))
            elif removed(Span(part.stream, part.next, ())):
                self.removals.append((len(self.spans), part))
                self.count += 1


@dataclass(slots=True, kw_only=True)
class SpanReader:
    """Reads the spans of a partition page by page, keeping what a request has returned beyond a page.

    Attributes:
        driver: runs requests.
        table: index table.
        walk: position after all that was read.
        left: entries that were read and not taken yet.
        at_tail: whether nothing lay beyond the walk.
        items: number of items that the next request asks for.
        ahead: runs requests in advance, one at a time.
        taken: entries of the last page.
        following: the entry after that page, if it was read already; else the page's last.
        pauses: pauses between looks at the tail, while it waits.
        seen: when the last consistent look ended.
    """

    driver: Driver
    table: str
    walk: FeedWalk
    left: deque[PlacedEntry] = field(default_factory=deque)
    at_tail: bool = False
    items: int = FIRST_ITEMS
    ahead: Executor | None = None
    taken: Sequence[_TakenEntry] = ()
    following: PlacedEntry | None = None
    pauses: Pauses = field(default_factory=Pauses)
    seen: float = -inf
    _coming: Future[WalkPage] | None = None

    @classmethod
    def begin(
        cls, driver: Driver, table: str, partition: int, start: Checkpoint, *, forward: bool = True
    ) -> SpanReader:
        """Build a reader at a checkpoint of a partition."""
        return cls(driver=driver, table=table, walk=FeedWalk(partition=partition, at=start, forward=forward))

    def spans(
        self,
        *,
        limit: int,
        wanted: Predicate,
        seconds: float,
        wait: float,
        removed: Predicate | None = None,
        created: bool = False,
    ) -> SpanPage:
        """Return the next page of spans: until `limit` is reached, the tail, or the end of the time allowed.

        Args:
            limit: number of events at which the page ends.
            wanted: filter of spans.
            seconds: time allowed for the page.
            wait: seconds to wait at the tail for something to come.
            removed: filter of removals, called with a span without events; None to leave removals out.
            created: whether to return only the first event of each stream.
        """
        if limit < 1:
            raise InvalidInput("limit", "must be at least 1")
        now, forward = self.driver.clock(), self.walk.forward
        ends, patience = now + seconds, now + wait
        page = _Page(
            wanted=wanted, removed=removed, limit=limit, at=self.walk.at, forward=forward, created=created
        )
        # Who goes on waiting has just seen that there is nothing.
        looked = self.at_tail and now < min(patience, self.seen + POLL_SECONDS)
        while True:
            if not (self.left or looked):
                self._read_on()
            looked = False
            while self.left and not page.full:
                page.take(self.left.popleft())
            if not self.left:
                page.at = self.walk.at
            at_tail, now = self.at_tail and not self.left, self.driver.clock()
            if at_tail and not page.count and now < patience and forward:
                looked = self._wait(patience)
                patience = now if looked and not self.left else patience
            elif at_tail or page.full or now >= ends:
                self.taken = page.taken
                self.following = self.left[0] if self.left else self.last
                return SpanPage(
                    spans=tuple(page.spans), next=page.at, at_tail=at_tail, removals=tuple(page.removals)
                )

    @property
    def first(self) -> PlacedEntry | None:
        """First entry of the last page."""
        return self.taken[0].placed if self.taken else None

    @property
    def last(self) -> PlacedEntry | None:
        """Last entry of the last page."""
        return self.taken[-1].placed if self.taken else None

    def give_back(self, page: SpanPage, kept: int) -> SpanPage:
        """Return the first entries of the last page, of which there are `kept`; the others come with the next page."""
        if kept == len(self.taken):
            return page
        self.left.extendleft(entry.placed for entry in reversed(self.taken[kept:]))
        self.taken, self.following = self.taken[:kept], self.left[0]
        end = self.taken[-1]
        return SpanPage(
            spans=page.spans[: end.spans],
            next=end.placed.after,
            at_tail=False,
            removals=page.removals[: end.removals],
        )

    def entries(
        self, *, limit: int, wanted: Predicate, seconds: float, wait: float, removed: Predicate | None = None
    ) -> Iterator[SpanPage]:
        """Iterate over pages of one entry each, with the checkpoint after it.

        An entry without wanted events joins the next.
        """
        if limit < 1:
            raise InvalidInput("limit", "must be at least 1")
        ends, count = self.driver.clock() + seconds, 0
        while True:
            found = self.spans(
                limit=1, wanted=wanted, seconds=ends - self.driver.clock(), wait=wait, removed=removed
            )
            yield found
            count += sum(len(span.types) for span in found.spans) + len(found.removals)
            if found.at_tail or count >= limit or self.driver.clock() >= ends:
                return
            wait = 0.0

    def _read_on(self) -> None:
        """Take the result of the request that was made in advance, or make one."""
        self._take(self._request() if self._coming is None else self._coming.result())

    def _wait(self, patience: float) -> bool:
        """Wait at the tail, sharing looks with other readers there; return whether nothing has come."""
        self._take(
            wait_for_more(
                self.driver,
                (self.table, self.walk.partition, self.walk.at),
                self.pauses,
                patience,
                self._look,
            )
        )
        return self.at_tail

    def _look(self, consistent: bool) -> WalkPage:
        """Look once for what comes at the tail."""
        page = self._request(consistent=consistent)
        self.walk = page.walk
        return page

    def _take(self, page: WalkPage) -> None:
        """Keep the entries of a request, and make the next one in advance if allowed."""
        self.walk, self.at_tail = page.walk, page.at_tail
        if page.placed:
            self.pauses = Pauses()
        elif page.at_tail:
            self.seen, self.pauses.weight = self.driver.clock(), page.weight
        self.left.extend(page.placed)
        self.items = min(2 * self.items, MOST_ITEMS)
        # What comes after the tail is not there yet: it is asked for when it is wanted.
        ahead = None if self.at_tail else self.ahead
        self._coming = None if ahead is None else ahead.submit(self._request)

    def _request(self, *, consistent: bool = True) -> WalkPage:
        """Read the next entries of the index."""
        return self.driver.run(poll(self.table, self.walk, self.items, consistent=consistent))


def is_forward(direction: Direction) -> bool:
    """Return whether a direction is forward; raise `InvalidInput` unless it is forward or backward."""
    if direction not in ("forward", "backward"):
        raise InvalidInput("direction", "must be forward or backward")
    return direction == "forward"


class PageOptions(TypedDict, total=False):
    """Which items pages have, and how much of each.

    Attributes:
        limit: a page ends with the entry that reaches so many; 1,000 unless told.
        categories: only streams of these, types of aggregates or groups of tags; None for all.
        predicate: only spans that satisfy it.
        data: read the events too.
        once: an event with tags only through the stream that it was appended to, or else the first of its tags, and not
            through each; the limit counts the others too. It needs the data of all events, since only they know.
        strict: an event that cannot be read is raised, instead of being shown with its `fault`.
        removals: also items that say which events are gone (`FeedItem.removal`). A predicate is asked of their streams
            with a span without events.
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
    wanted: Predicate
    hydrate: HydrateUnopened | None
    once: bool
    strict: bool
    removals: bool
    seconds: float = 10.0
    wait: float = 0.0

    def page(self, reader: SpanReader) -> FeedPage:
        """Read the next page of items."""
        found = reader.spans(
            limit=self.limit,
            wanted=self.wanted,
            seconds=self.seconds,
            wait=self.wait,
            removed=self.wanted if self.removals else None,
        )
        items: Sequence[FeedItem | None]
        if self.hydrate is None:
            items = bare_items(found.spans)
        else:
            ends = [entry.spans for entry in reader.taken]
            items, kept = hydrated_entries(
                found.spans, ends, self.hydrate, once=self.once, strict=self.strict
            )
            found = reader.give_back(found, kept)
        shown = with_removals(items, found.spans, found.removals)
        return FeedPage(items=tuple(shown), next=found.next, at_tail=found.at_tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedReader:
    """Reads the partitions of an index, and the events of their streams.

    Attributes:
        driver: runs requests on the index table.
        table: index table.
        histories: where events are read from if data is requested, one for each layout.
    """

    driver: Driver
    table: str
    histories: tuple[History, ...] = ()

    def on(self, driver: Driver) -> FeedReader:
        """Return the same reader with all requests through another driver."""
        return replace(self, driver=driver, histories=tuple(each.on(driver) for each in self.histories))

    def partitions(self) -> tuple[PartitionTail, ...]:
        """List every recorded partition with its tail; none before an indexer has registered its source."""
        found = self.driver.run(read_tails(self.table))
        return tuple(PartitionTail(partition=partition, tail=tail) for partition, tail in found)

    @property
    def declared(self) -> frozenset[str]:
        """Categories that contain `-`, as declared to the stores."""
        known = (getattr(each, "categories", None) for each in self.histories)
        return frozenset[str]().union(*(getattr(each, "declared", ()) for each in known))

    def categories(self, partition: int) -> Categories:
        """Return how streams of a partition belong to categories, by its store or else its layout."""
        layout = layout_of(partition)
        for each in self.histories:
            if each.name == layout.name and (known := getattr(each, "categories", None)) is not None:
                return cast("Categories", known)
        return layout.port.categories

    def place(self, partition: int, start: FeedStart) -> Checkpoint:
        """Return the checkpoint of a starting point: a moment, `beginning`, `tail`, or a checkpoint itself.

        A moment is searched for in the index: requests grow with the logarithm of its events.

        Raises:
            InvalidInput: it is no place, or the partition is not on record and has no tail.
        """
        if isinstance(start, Moment):
            return self.driver.run(find_moment(self.table, partition, start.ticks))
        if start == "beginning":
            return BEGINNING
        if start == "tail":
            tail = self.driver.run(read_tail(self.table, partition))
            if tail is None:
                raise InvalidInput("partition", f"{partition} is not on record: deploy its indexer first")
            return tail
        must_be(
            Checkpoint, start, "start", "a Checkpoint, as parse_checkpoint makes, at(…), beginning or tail"
        )
        return start

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
        """Read a page of the items from `start` on: at least `limit` if there are as many.

        It includes all of the entry that reaches the limit. A page with data ends before its limit with the entry that
        brings it to 64 MB of large bodies.

        Args:
            start: starting point; by default the beginning, or backward the tail.
            direction: `backward` returns what is before `start`, newest first; `next` is then where to continue
                backward.
            seconds: a page that is not full after so long ends, with the checkpoint reached.
            wait: seconds to wait for something to come if there is nothing.
            options: as in `PageOptions`.

        Raises:
            InvalidInput: a limit below 1, data without the store, `once` without data.
            CorruptData, MissingBody, DeniedBody: where `strict`.
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
        """Read a page as `page` does, ending earlier if `room` is full; bodies in the bucket stay claims."""
        asked = wanted(partial(self.categories, partition), categories, None)
        entries = list(
            self._span_reader(partition, start, direction).entries(
                limit=limit, wanted=asked, seconds=seconds, wait=wait, removed=asked if removals else None
            )
        )
        hydrate = self.hydrate_unopened if data else None
        items, taken = fill(room, [(partition, each) for each in entries], hydrate, self.driver.clock)
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
        """Return the newest items of all partitions, newest first: at least `limit` if there are as many.

        It includes all of the index entry that reaches the limit. Between partitions, entries are in the order of their
        times, so what one run of the indexer has brought comes partition by partition.

        Args:
            before: a position, such as a page's `next`: only its partitions, and what is before it.
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
        """List streams by the time of their creation: at least `limit` if there are as many.

        It reads through the index from `start` on: a million events take seconds, and no table is scanned.

        A stream is created with its first event or, if that had been pruned before, with the first that was indexed.
        Deleted streams are listed. Streams of tags are listed if their category is requested.

        Args:
            start: a position, such as a page's `next`, or a starting point; by default the beginning, or backward the
                tail.
            direction: `backward` returns the newest first.
            prefix: beginning of the names.
            seconds: a page that is not full after so long ends, with the position reached.

        Raises:
            InvalidInput: a limit below 1, what is no place.
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
        """List streams in the order of their names, as Python compares text, up to `limit`.

        Streams of one name in several layouts come together. The index is not ordered by name: each page reads all of
        it, holds no more than the page, and continues `after` a name. So request large pages.

        Raises:
            InvalidInput: a limit below 1; or the time is over before all of the index was read.
        """
        return self._whole.streams_by_name(
            limit, after=after, categories=categories, prefix=prefix, seconds=seconds
        )

    def wait_for(
        self, stream: str, version: int, *, source: str = NATIVE, seconds: float = 10.0
    ) -> FeedPosition | None:
        """Wait until a stream's events below `version` are in the feed; return a position after them or None.

        The version is that in an append's answer. Readers and reactions compare the position with theirs (`covers`).
        None means that it took too long.

        Recent appends are found with a few requests. Other events are looked for back through the index, once nothing
        has come for a while, or the time is over.

        Args:
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

        None is left out: those that can no longer be read come as `gone`, those that cannot with their `fault`. Without
        `fetch`, bodies in the bucket stay claims.
        """
        return self.hydrate(partition, fetch=fetch)(stream, first, end)

    def items(self, partition: int, spans: Sequence[Span]) -> tuple[FeedItem, ...]:
        """Return the items of a partition's spans with their events, as a page with data has them."""
        return tuple(hydrated(spans, self.hydrate(partition)))

    def end_of(self, partition: int, stream: str, since: int) -> int:
        """Return the index after the last event that a stream's store holds now, at least `since`.

        The feed may not have come so far yet.

        Raises:
            InvalidInput: the reader was not given the store of the partition's layout.
        """
        return self._history(partition).end_of(stream, since)

    def removal_of(self, partition: int, stream: str) -> Removal | None:
        """Return what has been removed from a stream so far, as one removal before the events that are left.

        None if nothing has, or if the layout does not record it.
        """
        told = getattr(self._history(partition), "removal_of", None)
        return None if told is None else cast("Removal | None", told(stream))

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
        """Read a page of spans from `start` on: at least `limit` events if there are as many.

        It includes all of the entry that reaches the limit. The arguments are those of `page`.
        """
        must_be_seconds(seconds, "seconds")
        must_be_seconds(wait, "wait")
        asked = wanted(partial(self.categories, partition), categories, predicate)
        return self._span_reader(partition, start).spans(
            limit=limit, wanted=asked, seconds=seconds, wait=wait, removed=asked if removals else None
        )

    def read(
        self, partition: int, *, start: FeedStart = BEGINNING, **options: Unpack[PageOptions]
    ) -> Iterator[FeedPage]:
        """Iterate over pages from `start` to the tail; the index is read one request ahead.

        Keep a page's `next` once its items are handled, and resume from there.
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
        """Iterate over pages from `start` on without end; at the tail, wait `wait` seconds for each page.

        A page comes when there is something, or empty after that time.
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
        """Iterate over pages of several partitions, with their events, in the order of their writes.

        `feed.ordered` describes the order. Each event comes at most `within` seconds after it and what must come before
        it have been read. Keep a page's `next`, and resume from there.

        Args:
            within: seconds that an event is held back at most, so that what was written before it may come first.
            partitions: partitions to read; by default, all that are recorded.
            follow: continue at the tail without end, as `follow` does; otherwise the last page ends with what is older
                than `within` there.
            limit: number of items in a page at most.
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
        """Build a reader of spans at a starting point."""
        forward = is_forward(direction)
        if start is None:
            start = BEGINNING if forward else "tail"
        place = self.place(partition, start)
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
        """Check the options of pages, and fill in defaults."""
        must_be_whole(partition, "partition")
        must_be_whole(limit, "limit", 1)
        if once and not data:
            raise InvalidInput("once", "needs the data of all events, since only they know their tags")
        return _Request(
            limit=limit,
            wanted=wanted(partial(self.categories, partition), categories, predicate),
            hydrate=self.hydrate_unopened(partition, fetch=True) if data else None,
            once=once,
            strict=strict,
            removals=removals,
        )

    def hydrate(self, partition: int, *, fetch: bool = True) -> Hydrate:
        """Return what reads a partition's events; raise `InvalidInput` if their store was not given."""
        return self._history(partition).events(fetch=fetch)

    def hydrate_unopened(self, partition: int, *, fetch: bool = False) -> HydrateUnopened:
        """Return what reads a partition's events, and leaves those that may be large unopened if the layout can.

        Without `fetch`, bodies in the bucket stay claims.
        """
        history = self._history(partition)
        unopened = getattr(history, "unopened", history.events)
        return cast("HydrateUnopened", unopened(fetch=fetch))

    def _history(self, partition: int) -> History:
        """Return the history of a partition's layout; raise `InvalidInput` if it was not given."""
        source = source_of(partition)
        for each in self.histories:
            if each.name == source:
                return each
        raise InvalidInput("data", f"needs a reader that was given the store of {source}")


# The feed of a deployment: a reader with the history of each layout whose tables the settings name.
#
# Nothing here needs what indexes: the function that serves the feed starts up without it.


def reader_of(settings: Settings, driver: Driver, codec: BodyCodec) -> FeedReader:
    """Build the feed reader of a deployment; `codec` decodes the bodies of streams."""
    return FeedReader(
        driver=driver, table=settings.index_table, histories=histories_of(settings, driver, codec)
    )
