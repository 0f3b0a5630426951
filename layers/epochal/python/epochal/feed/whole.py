"""Reads all partitions of the feed at once: newest items, one order, and lists of streams.

A reader of one partition does not need it: `FeedReader` imports this module when one of these is asked for.
"""

from __future__ import annotations

import heapq
import time
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final

from epochal.errors import InvalidInput
from epochal.feed.events import UnopenedFeedEvent
from epochal.feed.filters import Predicate, check_filter, span_filter
from epochal.feed.hydration import PAGE_BYTES, WINDOW, HydrateUnopened, bare_items, events_of, with_event
from epochal.feed.newest import (
    BackwardEntries,
    EventTimes,
    PartitionEntry,
    TimedEntry,
    in_order,
    select,
    times_of_entry,
)
from epochal.feed.ordered import (
    LONGEST,
    OrderedCheckpoint,
    OrderedPage,
    OrderedReader,
    Released,
    begin_partition,
)
from epochal.feed.page_filling import PageBounds, fill
from epochal.feed.results import FeedItem, ListedStream, NamedStreams, NewestPage, StreamsPage
from epochal.feed.span_reader import SpanReader, is_forward
from epochal.feed.waiting import POLL_SECONDS
from epochal.index.checkpoints import BEGINNING, Checkpoint, FeedPosition, FeedStart
from epochal.index.series import read_series
from epochal.layout.changes import Span
from epochal.layout.registry import base_of, partition_of, source_of
from epochal.lazy_dataclasses import dataclass
from epochal.model.bodies import body_size
from epochal.model.kinds import must_be, must_be_numbers, must_be_seconds, must_be_whole
from epochal.model.moments import PER_SECOND
from epochal.model.stream_names import TAG_STREAMS
from epochal.plugins import NATIVE
from epochal.store.reading import Direction

if TYPE_CHECKING:
    from epochal.feed.reader import FeedReader

LOOK_BACK_SECONDS: Final = 2.0
"""Seconds to wait for an append before searching for it further back, and the least seconds for that search. Most
appends are indexed within half a second."""


def _name_filter(categories: Collection[str] | None, prefix: str) -> Predicate:
    """Return a filter of spans by the beginning of the stream's name; tags only if `categories` are given.

    Streams of tags pass only if categories are requested.
    """

    def is_named(span: Span) -> bool:
        """Return whether a span's stream has such a name."""
        tagged = categories is None and span.stream.startswith(TAG_STREAMS)
        return span.stream.startswith(prefix) and not tagged

    return is_named


def _position_after(start: Mapping[int, Checkpoint], entries: Sequence[PartitionEntry]) -> FeedPosition:
    """Return the position after entries of partitions."""
    return FeedPosition({**start, **{entry.partition: entry.page.next for entry in entries}})


def _reaches(stream: str, version: int, span: Span) -> bool:
    """Return whether a span is of a stream and reaches a version."""
    return span.stream == stream and span.next >= version


@dataclass(frozen=True, slots=True, kw_only=True)
class _Newest:
    """The entries that hold the newest items before a position.

    Attributes:
        start: the position.
        entries: the entries in the order of their first items.
        times: reader of the times of their events.
    """

    start: Mapping[int, Checkpoint]
    entries: Sequence[TimedEntry]
    times: EventTimes

    def spans_of(self, partition: int) -> list[Span]:
        """Return the spans of a partition's entries."""
        return [
            span for entry, _ in self.entries if entry.partition == partition for span in entry.page.spans
        ]

    def bare_items(self) -> list[FeedItem]:
        """Return the items of all entries without their events."""
        return [item for entry, _ in self.entries for item in bare_items(entry.page.spans)]

    def page(self, items: Iterable[FeedItem], taken: int | None = None) -> NewestPage:
        """Build the page of the items of the first `taken` entries, or of all, in the order of their times."""
        entries = self.entries[:taken]
        position = _position_after(self.start, [entry for entry, _ in entries])
        return NewestPage(items=in_order(entries, items), next=position)


@dataclass(frozen=True, slots=True)
class WholeFeed:
    """Reads all partitions of a reader at once. Methods are documented on `FeedReader`."""

    reader: FeedReader

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
        """Return the newest items of all partitions, as `FeedReader.newest` does."""
        search = self._back(limit, before, categories, predicate, seconds, data=data)
        return search.page(*self._items_with_events(search)) if data else search.page(search.bare_items())

    def latest(
        self, limit: int, before: Mapping[int, Checkpoint], *, seconds: float = 10.0
    ) -> tuple[tuple[PartitionEntry, FeedItem], ...]:
        """Return up to `limit` newest items before a position, newest first, each with its entry."""
        search = self._back(limit, before, None, None, seconds, data=False)
        items = ((entry, item) for entry, _ in search.entries for item in bare_items(entry.page.spans))
        return in_order(search.entries, items)[:limit]

    def newest_within(
        self,
        room: PageBounds,
        *,
        limit: int = 100,
        before: Mapping[int, Checkpoint] | None = None,
        categories: Collection[str] | None = None,
        data: bool = False,
        seconds: float = 10.0,
    ) -> NewestPage:
        """Return the newest items as `newest` does, ending earlier if `room` is full.

        Bodies in the bucket stay claims.
        """
        search = self._back(limit, before, categories, None, seconds, data=data)
        hydrate = partial(self._hydrate, search, fetch=False) if data else None
        pages = [(entry.partition, entry.page) for entry, _ in search.entries]
        items, taken = fill(room, pages, hydrate, self.reader.driver.clock)
        return search.page(items, taken)

    def _back(
        self,
        limit: int,
        before: Mapping[int, Checkpoint] | None,
        categories: Collection[str] | None,
        predicate: Predicate | None,
        seconds: float,
        *,
        data: bool,
    ) -> _Newest:
        """Return the entries that hold the newest `limit` items before a position."""
        must_be_whole(limit, "limit", 1)
        must_be_seconds(seconds, "seconds")
        if before is None:
            before = {place.partition: place.tail for place in self.reader.partitions()}
        must_be(Mapping, before, "before", "a position")
        check_filter(categories, predicate)
        ends = self.reader.driver.clock() + seconds
        partitions = {
            partition: BackwardEntries(
                self._entries(
                    partition,
                    self._span_reader(partition, checkpoint, "backward"),
                    span_filter(partial(self.reader.categories, partition), categories, predicate),
                    ends,
                    created=False,
                )
            )
            for partition, checkpoint in before.items()
        }
        times = EventTimes(
            hydrate=self.reader.hydrate_unopened, keep=data, clock=self.reader.driver.clock, until=ends
        )
        selected = select(partitions.values(), limit, times_of_entry)
        if sum(map(bool, before.values())) > 1 and self._can_read_events(before):
            times.read_ahead(entry for entry, _ in selected)
            selected = select(partitions.values(), limit, times.of)
        return _Newest(start=before, entries=selected, times=times)

    def _can_read_events(self, partitions: Iterable[int]) -> bool:
        """Return whether the reader was given the stores of all these partitions."""
        return {*map(source_of, partitions)} <= {history.name for history in self.reader.histories}

    def _items_with_events(self, search: _Newest) -> tuple[list[FeedItem], int]:
        """Return items with events, and of how many entries: up to where large events reach `PAGE_BYTES`."""
        items, size, taken = list[FeedItem](), 0, 0
        with ExitStack() as stack:
            events = {
                partition: stack.enter_context(
                    closing(
                        events_of(
                            search.spans_of(partition),
                            self._hydrate(search, partition, fetch=True),
                            lambda: WINDOW,
                        )
                    )
                )
                for partition in search.start
            }
            for entry, _ in search.entries:
                for item in bare_items(entry.page.spans):
                    event = next(events[entry.partition])
                    if isinstance(event, UnopenedFeedEvent):
                        event = event.decode_whole()
                        size += body_size(event.data) + body_size(event.meta)
                    items.append(with_event(item, event))
                taken += 1
                if size >= PAGE_BYTES:
                    break
        return items, taken

    def _hydrate(self, search: _Newest, partition: int, *, fetch: bool) -> HydrateUnopened:
        """Return a function that reads a partition's events, except those kept for this page."""
        return search.times.hydrate_kept(partition, self.reader.hydrate_unopened(partition, fetch=fetch))

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
        """Return a page of streams by time of creation: `limit` or more, unless time or streams run out."""
        forward = is_forward(direction)
        must_be_whole(limit, "limit", 1)
        must_be(str, prefix, "prefix", "text")
        must_be_seconds(seconds, "seconds")
        if not isinstance(start, Mapping):
            if start is None:
                start = BEGINNING if forward else "tail"
            start = dict.fromkeys((place.partition for place in self.reader.partitions()), start)
        checkpoints = {
            partition: self.reader.find_checkpoint(partition, place) for partition, place in start.items()
        }
        reached, ends, at_end = FeedPosition(checkpoints), self.reader.driver.clock() + seconds, set[int]()
        streams: list[ListedStream] = []

        name_filter = _name_filter(categories, prefix)
        for entry in self._merged(checkpoints, direction, categories, name_filter, ends, created=True):
            reached[entry.partition] = entry.page.next
            at_end |= {entry.partition} if entry.page.at_tail else set()
            streams += self._listed(entry)
            if len(streams) >= limit:
                break
        return StreamsPage(streams=tuple(streams), next=reached, at_end=at_end == set(checkpoints))

    def streams_by_name(
        self,
        limit: int = 100,
        *,
        after: str = "",
        categories: Collection[str] | None = None,
        prefix: str = "",
        seconds: float = 3_600.0,
    ) -> NamedStreams:
        """Return up to `limit` names after `after` with their streams; raise `InvalidInput` if time runs out."""
        must_be_whole(limit, "limit", 1)
        must_be(str, after, "after", "text")
        must_be(str, prefix, "prefix", "text")
        must_be_seconds(seconds, "seconds")
        is_named, names = _name_filter(categories, prefix), list[str]()
        by_name: dict[str, list[ListedStream]] = {}

        def comes(span: Span) -> bool:
            """Return whether a stream belongs to this page by its name."""
            full = len(names) > limit and span.stream > names[-1]
            return span.stream > after and not full and is_named(span)

        begin = dict.fromkeys((stream.partition for stream in self.reader.partitions()), BEGINNING)
        ends, at_end = self.reader.driver.clock() + seconds, set[int]()
        for entry in self._merged(begin, "forward", categories, comes, ends, created=True):
            at_end |= {entry.partition} if entry.page.at_tail else set()
            for stream in self._listed(entry):
                if stream.stream not in by_name:
                    insort(names, stream.stream)
                by_name.setdefault(stream.stream, []).append(stream)
            while len(names) > limit + 1:  # one more says that there are more
                del by_name[names.pop()]
        if at_end != begin.keys():
            raise InvalidInput(
                "seconds", "were too few to read the whole index: allow more, or call `streams`"
            )
        streams = tuple(
            stream
            for name in names[:limit]
            for stream in sorted(by_name[name], key=lambda listed: listed.partition)
        )
        return NamedStreams(streams=streams, next=names[limit - 1] if len(names) > limit else None)

    def wait_for(
        self, stream: str, version: int, *, source: str = NATIVE, seconds: float = 10.0
    ) -> FeedPosition | None:
        """Wait until a stream's events below `version` are in the feed; return the position, or None if late."""
        must_be(str, stream, "stream", "text")
        must_be_whole(version, "version", 1)
        must_be(str, source, "source", "text")
        must_be_seconds(seconds, "seconds")
        ends = self.reader.driver.clock() + seconds
        while (
            count := self.reader.driver.run(read_series(self.reader.table)).partitions.get(source)
        ) is None:
            if self.reader.driver.clock() >= ends:
                raise InvalidInput("source", f"{source} is not in the index: deploy its indexer first")
            self.reader.driver.sleep(POLL_SECONDS)
        partition = partition_of(stream, count, base_of(source))
        tail, reached = self.reader.find_checkpoint(partition, "tail"), False
        on, back = self._span_reader(partition, tail), self._span_reader(partition, tail, "backward")
        for reader, longest in ((back, 0.0), (on, LOOK_BACK_SECONDS), (back, inf), (on, inf)):
            if reached and reader is back:
                continue  # what is before the stream's last event is no news
            remaining = min(longest, ends - self.reader.driver.clock())
            if longest == inf and reader is back:
                remaining = max(remaining, LOOK_BACK_SECONDS)
            page = reader.spans(
                limit=1,
                predicate=partial(_reaches, stream, 0 if reader is back else version),
                seconds=remaining,
                wait=remaining,
            )
            reached = reached or bool(page.spans)
            if page.spans and page.spans[0].next >= version:
                return FeedPosition({partition: page.next if reader is on else Checkpoint(page.next + 1)})
        return None

    def ordered_within(
        self,
        room: PageBounds,
        *,
        within: float,
        start: OrderedCheckpoint | FeedStart = BEGINNING,
        partitions: Collection[int] | None = None,
        limit: int = 1000,
        categories: Collection[str] | None = None,
        seconds: float = 10.0,
        wait: float = 0.0,
    ) -> OrderedPage:
        """Return the next page in the order of writes, ending earlier if `room` is full.

        Bodies in the bucket stay claims. What is within the window is read anew for each page.
        """
        must_be_whole(limit, "limit", 1)
        reader = self.in_order(within, start, partitions, categories, None, room=room)
        return reader.page(limit, seconds, wait)

    def in_order(
        self,
        within: float,
        start: OrderedCheckpoint | FeedStart,
        partitions: Collection[int] | None,
        categories: Collection[str] | None,
        predicate: Predicate | None,
        *,
        once: bool = False,
        strict: bool = False,
        room: PageBounds | None = None,
        now: Callable[[], int] = time.time_ns,
    ) -> OrderedReader:
        """Build the reader that reads several partitions in the order of their writes."""
        must_be_seconds(within, "within")
        if not 0 <= within <= LONGEST:
            raise InvalidInput("within", f"must be 0 to {LONGEST:,.0f} seconds")
        check_filter(categories, predicate)
        if partitions is None:
            partitions = [partition.partition for partition in self.reader.partitions()]
        numbers = must_be_numbers(partitions, "partitions")
        if not isinstance(start, OrderedCheckpoint):
            start = OrderedCheckpoint(
                {
                    number: Released(checkpoint=self.reader.find_checkpoint(number, start))
                    for number in numbers
                }
            )
        return OrderedReader(
            driver=self.reader.driver,
            table=self.reader.table,
            window=int(within * PER_SECOND),
            partitions=[
                begin_partition(
                    number,
                    self.reader.hydrate_unopened(number, fetch=room is None),
                    span_filter(partial(self.reader.categories, number), categories, predicate),
                    start,
                )
                for number in numbers
            ],
            now=now,
            once=once,
            strict=strict,
            room=room,
        )

    def _listed(self, entry: PartitionEntry) -> Iterator[ListedStream]:
        """Iterate over the streams that an entry's page shows as created."""
        category = self.reader.categories(entry.partition).of
        for stream, _, (kind,) in entry.page.spans:
            yield ListedStream(
                stream=stream,
                category=category(stream),
                type=kind,
                partition=entry.partition,
                created=entry.time,
            )

    def _merged(
        self,
        start: Mapping[int, Checkpoint],
        direction: Direction,
        categories: Collection[str] | None,
        predicate: Predicate | None,
        ends: float,
        *,
        created: bool = False,
    ) -> Iterator[PartitionEntry]:
        """Iterate over the wanted entries of several partitions, merged in the order of their times."""
        check_filter(categories, predicate)
        sign = 1 if direction == "forward" else -1
        readers = (
            self._entries(
                partition,
                self._span_reader(partition, checkpoint, direction),
                span_filter(partial(self.reader.categories, partition), categories, predicate),
                ends,
                created=created,
            )
            for partition, checkpoint in start.items()
        )
        return heapq.merge(*readers, key=lambda entry: sign * entry.ticks)

    def _entries(
        self, partition: int, reader: SpanReader, predicate: Predicate, ends: float, *, created: bool
    ) -> Iterator[PartitionEntry]:
        """Yield a partition's entries with wanted spans, then the end that was reached, until time is over."""
        ticks, ended = 0, False
        while not ended:
            remaining = ends - self.reader.driver.clock()
            page = reader.spans(limit=1, predicate=predicate, seconds=remaining, wait=0.0, created=created)
            with suppress(InvalidInput):  # another program's entry, with no time that can be read
                ticks = ticks if reader.last is None else reader.last.ticks
            yield PartitionEntry(partition, ticks, page)
            ended = page.at_tail or not page.spans

    def _span_reader(self, partition: int, start: Checkpoint, direction: Direction = "forward") -> SpanReader:
        """Build a reader of a partition's spans."""
        driver, table = self.reader.driver, self.reader.table
        return SpanReader.begin(driver, table, partition, start, forward=direction == "forward")
