"""Puts the newest items of several partitions in the order of their events.

The index has the time at which an entry was written, and one run of an indexer writes an entry for each partition, with
the events of many appends. So partitions are merged by the times of the events, which are read for that:

    time     an event's timestamp, but no later than its entry. An event whose timestamp is unreadable, more than a day
             older than its entry (an import, for instance) or a minute newer has the time of the event before it there
    order    within a partition that of the feed, whatever the times; between partitions that of the times
    page     the entries that hold the newest `limit` items. A checkpoint is between entries, so each comes whole: what
             completes an entry may be older than the first items of the next page
    cost     the events of these entries are read, and of one more entry of each partition, at most `MOST_READ`; the
             other events have the time of their entry

The events of one partition are in the order of the feed already, and none of this is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Final, NamedTuple, TypeVar

from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent, UnopenedFeedEvent
from epochal.feed.hydration import WINDOW, HydrateUnopened, bare_items, events_of
from epochal.feed.results import SpanPage
from epochal.layout.changes import Span
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.bodies import Claim, body_size
from epochal.model.moments import PER_SECOND, Ticks, format_ticks, parse_time

T = TypeVar("T")

MOST_READ: Final = 5_000
"""Events that are read for their times in one page at most: a second or two, and fewer than as many read units."""

KEPT_BYTES: Final = 16 * 1024 * 1024
"""Bytes of bodies, of events read for their times, that are kept for the page. Others are read again."""

OLDEST: Final = 86_400 * PER_SECOND
"""Ticks before its entry at which an event may have been appended: DynamoDB Streams keeps a change for a day."""

LATEST: Final = 60 * PER_SECOND
"""Ticks after its entry, by which clocks of writers and indexers may differ."""


_LAST_PLACE: Final = "~"
"""Text after every place, which consists of digits."""


class PartitionEntry(NamedTuple):
    """The wanted part of a partition's entry, and when the entry was written; 0 if that is unknown."""

    partition: int
    ticks: int
    page: SpanPage

    @property
    def time(self) -> str:
        """The time as text; empty if it is unknown."""
        return format_ticks(Ticks(self.ticks)) if self.ticks else ""

    @property
    def events(self) -> int:
        """Number of events in the wanted part."""
        return sum(len(span.types) for span in self.page.spans)


Time = tuple[int, str]
"""The time of an item, in ticks, and the place of its event if it has tags: that orders the events of one append."""


class TimedEntry(NamedTuple):
    """An entry, and the times of its items, which are newest first."""

    entry: PartitionEntry
    times: Sequence[Time]


TimesOf = Callable[[PartitionEntry], Sequence[Time]]
"""Returns the times of an entry's items, newest first: none is later than the one before it."""


def times_of_entry(entry: PartitionEntry) -> Sequence[Time]:
    """Return the time of the entry for each of its items."""
    return ((entry.ticks, ""),) * entry.events


class BackwardEntries:
    """The entries of a partition, newest first; each is read once, however often they are iterated."""

    def __init__(self, entries: Iterator[PartitionEntry]) -> None:
        self._read, self._rest = list[PartitionEntry](), entries

    def __iter__(self) -> Iterator[PartitionEntry]:
        """Iterate over the entries from the newest on."""
        place = 0
        while place < len(self._read) or self._read_next():
            yield self._read[place]
            place += 1

    def _read_next(self) -> bool:
        """Read one more entry; return whether there was one."""
        entry = next(self._rest, None)
        if entry is None:
            return False
        self._read.append(entry)
        return True


@dataclass(slots=True, kw_only=True)
class _Head:
    """The next entry of a partition, and how many of its items have been taken."""

    entry: PartitionEntry
    times: Sequence[Time] | None = None
    taken: int = 0

    @property
    def bound(self) -> Time:
        """Time of the next item; while that is unknown, an upper bound of it."""
        return self.times[self.taken] if self.times else (self.entry.ticks, _LAST_PLACE)


def select(partitions: Iterable[Iterable[PartitionEntry]], limit: int, times_of: TimesOf) -> list[TimedEntry]:
    """Return the entries that hold the newest `limit` items, in the order of their first items."""
    rest = [iter(entries) for entries in partitions]
    heads = [_next_head(entries) for entries in rest]
    selected, count = list[TimedEntry](), 0
    while count < limit:
        number = max(range(len(heads)), key=lambda number: _bound(heads[number]), default=0)
        head = heads[number] if heads else None
        if head is None:
            break
        if head.times is None:
            head.times = times_of(head.entry)
            continue
        if head.taken == 0:
            selected.append(TimedEntry(head.entry, head.times))
        if head.times:
            head.taken, count = head.taken + 1, count + 1
        if head.taken == len(head.times):
            heads[number] = _next_head(rest[number])
    return selected


def _next_head(entries: Iterator[PartitionEntry]) -> _Head | None:
    """Return the next entry of a partition, of which nothing has been taken; None if there is none."""
    entry = next(entries, None)
    return None if entry is None else _Head(entry=entry)


def _bound(head: _Head | None) -> Time:
    """Return an upper bound of the time of a partition's next item; the earliest time without an item."""
    return (-1, "") if head is None else head.bound


def in_order(entries: Sequence[TimedEntry], items: Iterable[T]) -> tuple[T, ...]:
    """Return the items of entries newest first: a partition's in the given order, partitions by times.

    Args:
        entries: the entries, those of a partition in their order.
        items: the items of all entries, one entry after another.
    """
    rest, rows = iter(items), dict[int, list[tuple[Time, T]]]()
    for entry, times in entries:
        rows.setdefault(entry.partition, []).extend((time, next(rest)) for time in times)
    ordered, taken = list[T](), dict.fromkeys(rows, 0)
    open_rows = {number for number, row in rows.items() if row}
    while open_rows:
        number = max(open_rows, key=lambda number: (rows[number][taken[number]][0], -number))
        ordered.append(rows[number][taken[number]][1])
        taken[number] += 1
        if taken[number] == len(rows[number]):
            open_rows.remove(number)
    return tuple(ordered)


@dataclass(slots=True, kw_only=True)
class EventTimes:
    """Reads the times of events, and keeps small events for a page with data.

    Attributes:
        hydrate: returns a function that reads a partition's events, without bodies in the bucket.
        keep: whether to keep events for `hydrate_kept`.
        clock: returns seconds.
        until: clock reading after which no event is read for its time.
        read: number of events that were read.
    """

    hydrate: Callable[[int], HydrateUnopened]
    keep: bool
    clock: Callable[[], float]
    until: float
    read: int = 0
    _times: dict[tuple[int, str, int], Time | None] = field(default_factory=dict)
    _kept: dict[tuple[int, str, int], FeedEvent] = field(default_factory=dict)
    _kept_bytes: int = 0

    def read_ahead(self, entries: Iterable[PartitionEntry]) -> None:
        """Read the times of entries' events together, stopping before more than `MOST_READ` have been read."""
        spans: dict[int, list[Span]] = {}
        count = self.read
        for entry in entries:
            count += entry.events
            if count > MOST_READ:
                break
            spans.setdefault(entry.partition, []).extend(entry.page.spans)
        for partition, of_partition in spans.items():
            self._read(partition, of_partition)

    def of(self, entry: PartitionEntry) -> Sequence[Time]:
        """Return the times of an entry's items, latest first; read their events if these are not known yet.

        All are the time of the entry if too many events have been read already.
        """
        places = [
            (entry.partition, item.stream, item.index) for item in reversed(bare_items(entry.page.spans))
        ]
        if any(place not in self._times for place in places):
            if self.read + entry.events > MOST_READ:
                return times_of_entry(entry)
            self._read(entry.partition, entry.page.spans)
        return _increasing(entry.ticks, [self._times.get(place) for place in places])[::-1]

    def hydrate_kept(self, partition: int, read: HydrateUnopened) -> HydrateUnopened:
        """Return a function that returns the kept events of a range, or reads the range if one was not kept."""

        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent | UnopenedFeedEvent]:
            """Return a range of a stream's events."""
            kept_events = [self._kept.get((partition, stream, index)) for index in range(first, end)]
            events = [event for event in kept_events if event is not None]
            return iter(events) if len(events) == len(kept_events) else read(stream, first, end)

        return hydrate

    def _read(self, partition: int, spans: Sequence[Span]) -> None:
        """Read the events of spans for their times, while there is time."""
        with closing(events_of(spans, self.hydrate(partition), lambda: WINDOW)) as events:
            for item in bare_items(spans):
                if self.clock() > self.until:
                    break
                event = next(events)
                outline = event.outline() if isinstance(event, UnopenedFeedEvent) else event
                self.read += 1
                self._times[partition, item.stream, item.index] = _time_of(outline)
                if isinstance(event, FeedEvent):
                    self._keep((partition, item.stream, item.index), event)

    def _keep(self, place: tuple[int, str, int], event: FeedEvent) -> None:
        """Keep an event for the page if that is wanted, no body is a claim, and there is room."""
        if not self.keep or isinstance(event.data, Claim) or isinstance(event.meta, Claim):
            return
        size = body_size(event.data) + body_size(event.meta)
        if self._kept_bytes + size <= KEPT_BYTES:
            self._kept[place] = event
            self._kept_bytes += size


def _time_of(event: FeedEvent) -> Time | None:
    """Return the time of an event; None for one that is gone, or whose timestamp is no time."""
    try:
        return None if event.gone else (parse_time(event.timestamp), event.place)
    except InvalidInput:
        return None


def _increasing(entry: int, times: Sequence[Time | None]) -> list[Time]:
    """Return the times of an entry's items, oldest first, each raised to at least the one before it.

    Args:
        entry: time of the entry; 0 if it is unknown.
        times: times of the events; None if unknown.
    """
    trusted = [None if time is None else _trusted(entry, *time) for time in times]
    reached = next((time for time in trusted if time is not None), (entry, ""))
    increasing = list[Time]()
    for time in trusted:
        reached = reached if time is None else max(reached, time)
        increasing.append(reached)
    return increasing


def _trusted(entry: int, time: int, place: str) -> Time | None:
    """Return an event's time, but no later than its entry; None if it is not that of an append."""
    if not entry:
        return time, place
    return (min(time, entry), place) if entry - OLDEST <= time <= entry + LATEST else None
