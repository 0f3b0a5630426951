"""Reads several partitions in one order, by the times of their writes, within a window of seconds.

A partition has its entries in the order in which they were indexed. That differs from the order of the writes where
several invocations index a table's shards, and says nothing of other partitions. So a reader holds each event back for
a moment, in which what was written before it may come:

    read       the partition whose last entry is the oldest, entry by entry, with its events
    place      each event at its time, but no later than its entry, no earlier than `within` before its entry, and in an
               entry or a stream never before the event that it follows there
    release    what is `within` older than the last entry of every partition, or than now where a partition has no more
    causes     an event that another names as its cause comes before it, wherever its clock has placed it: an effect is
               placed no earlier than what must come before it. An event whose cause has not come yet is placed at its
               entry, so it waits for the cause as long as any event may, and what it has caused waits with it

So an effect never comes before its cause where their entries are no more than `within` apart, whatever the clocks of
their writers say. Between streams without a cause, clocks decide. An entry's time is that of the indexer's clock.

A checkpoint says for each partition where reading must resume, and for each stream how far beyond that it was
released. So if a reader stops within a window, it neither skips nor repeats an event.
"""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING, Any, Final

from epochal.codec.bodies import MAX_DECODED
from epochal.errors import InvalidInput
from epochal.feed.events import UnopenedFeedEvent, name_of
from epochal.feed.filters import Predicate
from epochal.feed.hydration import PAGE_BYTES, WINDOW, bare_items, events_of, with_event
from epochal.feed.results import FeedItem
from epochal.feed.waiting import Pauses
from epochal.index.checkpoints import BEGINNING, Checkpoint, parse_checkpoint
from epochal.index.feed_walk import FeedWalk, PlacedEntry, step
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.bodies import body_size
from epochal.model.kinds import must_be
from epochal.model.moments import Ticks, from_unix_nanoseconds, parse_time

if TYPE_CHECKING:
    from epochal.feed.hydration import HydrateUnopened
    from epochal.feed.page_filling import PageBounds
    from epochal.layout.changes import Span
    from epochal.store.driver import Driver

LONGEST: Final = 3_600.0
"""Largest number of seconds of a window."""

MOST_HELD: Final = 20_000
"""Largest number of events held back. Beyond it the oldest are released early."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""Largest total of their stored bodies, in bytes. Beyond it the oldest are released early."""

RECENT: Final = 20_000
"""Names of released events that are remembered, so that their effects need not wait for them."""

FIRST_ITEMS: Final = 4
"""Items of the index that the first request of a partition asks for; every further one asks for twice as many."""

MOST_ITEMS: Final = 64
"""Largest number of items of such a request: few items wait to be released, however many partitions there are."""

NEVER: Final = Ticks(0)
"""Before all times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """How far a read of several partitions in order has handed out (released) one partition.

    Attributes:
        checkpoint: position in the partition before which everything was handed out.
        ahead: for each stream with events handed out beyond the checkpoint, the index after the last of them.
    """

    checkpoint: Checkpoint = BEGINNING
    ahead: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OrderedCheckpoint:
    """The position at which a read of several partitions in order continues; `str` writes it, `parse` reads it.

    Attributes:
        partitions: how far each partition was handed out, by number; a partition that is missing is read from its
            beginning.
    """

    partitions: Mapping[int, Released] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return JSON: for each partition a list of its checkpoint and, if there are any, its streams ahead."""
        fields = {
            str(number): [str(reached.checkpoint), *([dict(reached.ahead)] if reached.ahead else ())]
            for number, reached in self.partitions.items()
        }
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def parse(cls, text: str, field: str = "from") -> OrderedCheckpoint:
        """Parse the text of an ordered checkpoint; raise `InvalidInput` for `field` if it is malformed.

        Args:
            text: text of the checkpoint, as `str` makes it.
            field: name of the argument that holds the text, for error messages.
        """
        must_be(str, text, field, "text")
        try:
            fields = json.loads(text)
            return cls(
                {int(number): _parse_released(*state, field=field) for number, state in fields.items()}
            )
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInput(
                field, "must be the text of an OrderedCheckpoint, as `str` returns it"
            ) from error


def _parse_released(checkpoint: str, ahead: Mapping[str, Any] | None = None, *, field: str) -> Released:
    """Parse how far one partition was released; raise `ValueError` if an index is malformed."""
    indices = dict(ahead or {})
    if not all(type(index) is int and index > 0 for index in indices.values()):
        raise ValueError("an index must be an integer above 0")
    return Released(checkpoint=parse_checkpoint(checkpoint, field), ahead=indices)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedPage:
    """One page of a read of several partitions in the order of writes, with the checkpoint to continue from.

    Attributes:
        items: items of the page, in the order of their writes.
        next: checkpoint to continue from.
        at_tail: whether the read has reached the end of the index; events younger than the window are still held back.
        early: number of items handed out before their time in the window was over, because too many were held back.
    """

    items: tuple[FeedItem, ...]
    next: OrderedCheckpoint
    at_tail: bool
    early: int = 0


@dataclass(slots=True, kw_only=True)
class _Entry:
    """An entry of the index with events that are held back.

    Attributes:
        after: checkpoint after the entry.
        streams: queues of held events by stream of its partition.
        waiting: number of its events that are held back.
        released: next index of each stream of which its events were released.
    """

    after: Checkpoint
    streams: dict[str, deque[_Held]]
    waiting: int = 0
    released: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True, eq=False)
class _Held:
    """An event that is held back.

    Attributes:
        item: the event's item.
        time: its time in the order.
        tie: text that orders events of equal times: the event's place if it has tags, unless an event before it in its
            entry or stream has a later one.
        place: its rank among events of the same time: partition, checkpoint after its entry, and position there.
        entry: entry that contains it.
        queue: held events of its stream, itself included, in order.
        names: names by which other events may name it as their cause.
        bytes: bytes of its bodies as they are held.
        unopened: the event itself, if it may be large: it is opened once it is released, and until then its item has
            it without its bodies.
        released: whether it was released.
        following: whether it is being released together with what comes before it.
    """

    item: FeedItem
    time: int
    tie: str
    place: tuple[int, Checkpoint, int]
    entry: _Entry
    queue: deque[_Held] = field(repr=False)
    names: tuple[str, ...] = ()
    bytes: int = 0
    unopened: UnopenedFeedEvent | None = field(default=None, repr=False)
    released: bool = False
    following: bool = False

    @property
    def cause(self) -> str | None:
        """Name of the event that caused it; None if it has none."""
        return None if self.item.event is None else self.item.event.causation_id

    def decode(self, largest: int = MAX_DECODED) -> bool:
        """Decompress the event unless done; return False if its data or metadata exceed `largest` bytes."""
        if self.unopened is not None:
            event = self.unopened.decode(largest)
            if event is None:
                return False
            self.item, self.unopened = with_event(self.item, event), None
        return True


@dataclass(slots=True, kw_only=True)
class _Partition:
    """A partition as far as it was read.

    Attributes:
        number: number of the partition.
        hydrate: reads its events.
        predicate: filter of spans.
        walk: position in the index.
        reached: time of its last entry: everything else it contains counts as later.
        left: entries that were read and not taken yet.
        tail: time of the last request, if it reached the tail of the partition; else None.
        at_tail: whether all of them were taken.
        items: number of items that the next request asks for.
        entries: entries taken, from the first on that has events held back.
        done: checkpoint before these.
        ahead: next index of each stream of which events that were not read yet had been released before this reader
            began.
        streams: held events by stream.
    """

    number: int
    hydrate: HydrateUnopened
    predicate: Predicate
    walk: FeedWalk
    ahead: dict[str, int]
    reached: Ticks = NEVER
    left: deque[PlacedEntry] = field(default_factory=deque)
    tail: Ticks | None = None
    at_tail: bool = False
    items: int = FIRST_ITEMS
    entries: deque[_Entry] = field(default_factory=deque)
    done: Checkpoint
    streams: dict[str, deque[_Held]] = field(default_factory=dict)

    def update_progress(self) -> Released:
        """Return how far the partition was released, dropping entries that are completely released."""
        while self.entries and not self.entries[0].waiting:
            self.done = self.entries.popleft().after
        ahead: dict[str, int] = {}
        for entry in self.entries:
            ahead.update(entry.released)
        ahead.update(self.ahead)
        return Released(checkpoint=self.done, ahead=ahead)


def begin_partition(
    number: int, hydrate: HydrateUnopened, predicate: Predicate, start: OrderedCheckpoint
) -> _Partition:
    """Build a partition's state before any read, at the place where `start` continues it."""
    reached = start.partitions.get(number, Released())
    return _Partition(
        number=number,
        hydrate=hydrate,
        predicate=predicate,
        walk=FeedWalk(partition=number, at=reached.checkpoint),
        ahead=dict(reached.ahead),
        done=reached.checkpoint,
    )


class _Filled:
    """Tracks how full a page is."""

    def __init__(self, room: PageBounds, clock: Callable[[], float]) -> None:
        self.full = False
        self._room, self._clock, self._used, self._measured = room, clock, 0, 0
        self._large: list[FeedItem] = []

    def take(self, held: _Held) -> bool:
        """Return whether the page takes an item, and count its bytes; one too large for a page takes no room.

        The first one always fits. An event is opened no further than there is room.
        """
        room = min(self._room.largest, self._room.max_bytes - self._used if self._used else inf)
        if self._measured > 2 * self._room.max_bytes or room <= 0:
            self.full = True
            return False
        if not held.decode(int(room)):
            self._measured += int(room)
            self.full = room < self._room.largest
            if not self.full:
                self._large.append(held.item)
            return not self.full
        item = held.item
        size = self._room.size_of(item)
        self._measured += size
        if size > self._room.largest:
            self._large.append(item)
            return True
        late = self._clock() > self._room.until
        self.full = self._used > 0 and (late or self._used + size > self._room.max_bytes)
        self._used += size
        return not self.full

    def show(self, item: FeedItem) -> FeedItem:
        """Return an item as the page shows it: without its event if that is too large."""
        large = any(item is large_item for large_item in self._large)
        return item._replace(event=None, omitted=True) if large else item


@dataclass(slots=True, kw_only=True)
class OrderedReader:
    """Reads several partitions in one order.

    Attributes:
        driver: runs requests.
        table: index table.
        window: ticks that an event may be held back.
        partitions: partitions that are read.
        now: returns nanoseconds since 1970.
        once: whether tagged events come only through their first tag.
        strict: whether an event that cannot be read is raised.
        room: limits of a page; None for none.
        pauses: pauses between looks at the tail.
    """

    driver: Driver
    table: str
    window: int
    partitions: Collection[_Partition]
    now: Callable[[], int]
    once: bool = False
    strict: bool = False
    room: PageBounds | None = None
    pauses: Pauses = field(default_factory=Pauses)
    _filled: _Filled | None = None
    _heap: list[tuple[int, str, tuple[int, Checkpoint, int], _Held]] = field(default_factory=list)
    _named: dict[str, _Held] = field(default_factory=dict)
    _recent: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _held: int = 0
    _bytes: int = 0
    _released: int = 0

    def page(self, limit: int, seconds: float, wait: float) -> OrderedPage:
        """Return the next ordered page: up to `limit`, to the tail, or for `seconds`; wait at an empty tail.

        If there is nothing at the tail, it waits for up to `wait` seconds.
        """
        ends, patience = self.driver.clock() + seconds, self.driver.clock() + wait
        items: list[FeedItem] = []
        early = 0
        self._released = 0
        self._filled = None if self.room is None else _Filled(self.room, self.driver.clock)
        for partition in self.partitions:
            partition.at_tail = False
        while True:
            items += self._release(limit - len(items))
            early_items = self._release_early(limit - len(items))
            items, early = items + early_items, early + len(early_items)
            behind = min(
                (partition for partition in self.partitions if not partition.at_tail),
                key=_reached_by,
                default=None,
            )
            over = self.driver.clock() >= (ends if items else max(ends, patience))
            done = behind is None and (items or self.driver.clock() >= patience)
            full = self._full() or len(items) >= limit
            if over or done or full:
                at_tail = behind is None and not full
                if self._filled is not None:
                    items = [self._filled.show(item) for item in items]
                return OrderedPage(items=tuple(items), next=self._next(), at_tail=at_tail, early=early)
            if behind is None:
                if self._heap:  # the time that passes releases it
                    self.pauses = Pauses()
                self.driver.sleep(min(self.pauses.longer(), patience - self.driver.clock()))
                for partition in self.partitions:
                    partition.at_tail = False
            else:
                self._read(behind)

    def _full(self) -> bool:
        """Return whether the page has no more room."""
        return self._released >= PAGE_BYTES if self._filled is None else self._filled.full

    def _next(self) -> OrderedCheckpoint:
        """Return the checkpoint after what was released."""
        return OrderedCheckpoint(
            {partition.number: partition.update_progress() for partition in self.partitions}
        )

    def _read(self, partition: _Partition) -> None:
        """Take one more entry of a partition, or request more if none is left."""
        if not partition.left:
            request_time = from_unix_nanoseconds(self.now())
            page = self.driver.run(step(self.table, partition.walk, partition.items))
            partition.walk, partition.items = page.walk, min(2 * partition.items, MOST_ITEMS)
            partition.left.extend(page.placed)
            if page.placed:
                self.pauses = Pauses()
            partition.tail = request_time if page.at_tail else None
            if not (partition.left or partition.entries):
                partition.done = page.walk.at
        else:
            self._hold_back(partition, partition.left.popleft())
        if not partition.left and partition.tail is not None:
            partition.reached, partition.at_tail = max(partition.reached, partition.tail), True

    def _hold_back(self, partition: _Partition, placed: PlacedEntry) -> None:
        """Read the events of an entry, and hold them back at their times."""
        # An entry dated in the future counts as written now: otherwise other events would be released too soon.
        partition.reached = max(partition.reached, min(_time_of(placed), from_unix_nanoseconds(self.now())))
        entry = _Entry(after=placed.after, streams=partition.streams)
        spans = []
        for span in placed.entry().spans:
            ahead = partition.ahead.get(span.stream, 0)
            if ahead > span.index:
                entry.released[span.stream] = min(ahead, span.next)
            if 0 < ahead <= span.next:
                del partition.ahead[span.stream]
            if ahead < span.next and partition.predicate(span):
                spans.append(span.since(ahead))
        bound = (partition.reached - self.window, "")
        for position, (item, unopened) in enumerate(self._items(partition, spans)):
            queue = partition.streams.setdefault(item.stream, deque())
            place = (partition.number, placed.after, position)
            held = _Held(
                item=item,
                time=0,
                tie="",
                place=place,
                entry=entry,
                queue=queue,
                names=_cause_names(item),
                bytes=_bytes_of(item) if unopened is None else unopened.stored_bytes,
                unopened=unopened,
            )
            bound = max(bound, (self._time(held, partition.reached), _place_of(item)), *_ranks(queue))
            held.time, held.tie = bound
            queue.append(held)
            entry.waiting += 1
            for name in held.names:
                self._named.setdefault(name, held)
            self._held, self._bytes = self._held + 1, self._bytes + held.bytes
            heappush(self._heap, (held.time, held.tie, held.place, held))
        partition.entries.append(entry)

    def _items(
        self, partition: _Partition, spans: Iterable[Span]
    ) -> list[tuple[FeedItem, UnopenedFeedEvent | None]]:
        """Return an entry's items; one that may be large has no bodies yet, and comes with its unopened event."""
        events = events_of(spans, partition.hydrate, lambda: WINDOW)
        items = list[tuple[FeedItem, UnopenedFeedEvent | None]]()
        for item, event in zip(bare_items(spans), events, strict=True):
            unopened = event if isinstance(event, UnopenedFeedEvent) else None
            outline = event.outline() if isinstance(event, UnopenedFeedEvent) else event
            if outline.first or not self.once:
                items.append((self._require_readable(with_event(item, outline)), unopened))
        return _by_place(items)

    def _item_with_bodies(self, held: _Held) -> FeedItem:
        """Return the item of an event that is released, with its bodies unless the page has no room for them."""
        if self.room is None:
            held.decode()
            self._released += _bytes_of(held.item)
        return self._require_readable(held.item)

    def _require_readable(self, item: FeedItem) -> FeedItem:
        """Return an item, or raise its fault where that is to be raised."""
        if self.strict and item.fault is not None:
            raise item.fault
        return item

    def _time(self, held: _Held, entry: Ticks) -> int:
        """Return an event's time in the order: between the times of its cause and of its entry.

        If its cause has not come yet, it is the time of the entry.
        """
        event = held.item.event
        cause = None if held.cause is None else self._named.get(held.cause)
        unmet = held.cause is not None and cause is None and held.cause not in self._recent
        if event is None or unmet:
            return entry
        try:
            written = min(entry, parse_time(event.timestamp))
        except InvalidInput:
            written = entry
        return written if cause is None else max(written, cause.time)

    def _release(self, most: int) -> list[FeedItem]:
        """Release and return at most `most` events that are so old that nothing older can come."""
        bound = min((partition.reached for partition in self.partitions), default=NEVER) - self.window
        released: list[FeedItem] = []
        while self._heap and self._heap[0][0] <= bound and len(released) < most and not self._full():
            held = heappop(self._heap)[-1]
            released += self._with_causes(held, most - len(released), held.time)
        return released

    def _release_early(self, most: int) -> list[FeedItem]:
        """Release and return the oldest events early, at most `most`, while too many are held back."""
        released: list[FeedItem] = []
        while (
            (self._held > MOST_HELD or self._bytes > MOST_BYTES) and len(released) < most and not self._full()
        ):
            released += self._with_causes(heappop(self._heap)[-1], most - len(released), inf)
        return released

    def _with_causes(self, goal: _Held, most: int, latest: float) -> list[FeedItem]:
        """Release an event after its stream's earlier ones and causes of these; return all that was released.

        Nothing if it has been released as one of those. It is postponed if these are more than `most`, or one of them
        is later than `latest`.
        """
        released: list[FeedItem] = []
        path = [goal]
        while path and len(released) < most:
            held = path[-1]
            held.following = not held.released
            before = None if held.released else self._before(held)
            if before is not None and before.time > latest:
                goal.time = before.time
                break
            if before is not None:
                path.append(before)
                continue
            if not held.released and self._filled is not None and not self._filled.take(held):
                break
            path.pop()
            if not held.released:
                released.append(self._item_with_bodies(held))
                self._let_go(held)
        for held in path:
            held.following = False
        if path:
            heappush(self._heap, (goal.time, goal.tie, goal.place, goal))
        return released

    def _before(self, held: _Held) -> _Held | None:
        """Return the event to release before this one: the first held of its stream, or its cause; else None.

        A circle of causes counts as none.
        """
        if held.queue[0] is not held:
            return held.queue[0]
        cause = None if held.cause is None else self._named.get(held.cause)
        if cause is None or cause.released:
            return None
        for earlier in cause.queue:
            if earlier.following:
                return None
            if earlier is cause:
                break
        return cause

    def _let_go(self, held: _Held) -> None:
        """Mark an event as released, and remember its names, so that its effects need not wait."""
        held.released = True
        held.queue.popleft()
        if not held.queue:
            del held.entry.streams[held.item.stream]
        held.entry.waiting -= 1
        held.entry.released[held.item.stream] = held.item.index + 1
        self._held, self._bytes = self._held - 1, self._bytes - held.bytes
        for name in held.names:
            if self._named.get(name) is held:
                del self._named[name]
            self._recent[name] = None
        # One that came as a cause stays in the heap until its time: without its bodies.
        held.item, held.unopened = held.item._replace(event=None), None
        while len(self._recent) > RECENT:
            self._recent.popitem(last=False)


def _cause_names(item: FeedItem) -> tuple[str, ...]:
    """Return the names by which other events may name an item's event as their cause."""
    place = f"{item.stream}@{item.index}"
    return (place,) if item.event is None else tuple({name_of(item.event), place})


def _by_place(
    items: list[tuple[FeedItem, UnopenedFeedEvent | None]],
) -> list[tuple[FeedItem, UnopenedFeedEvent | None]]:
    """Return an entry's items, with neighbouring tagged events of the same time sorted by place.

    The index may have them tag by tag.
    """
    ordered = list[tuple[FeedItem, UnopenedFeedEvent | None]]()
    for _, run in groupby(items, key=lambda pair: _time_of_tagged(pair[0])):
        ordered += sorted(run, key=lambda pair: _place_of(pair[0]))
    return ordered


def _time_of_tagged(item: FeedItem) -> str:
    """Return the timestamp of an item's event; empty if it has no tags."""
    return item.event.timestamp if item.event is not None and item.event.place else ""


def _place_of(item: FeedItem) -> str:
    """Return the place of an item's event; empty if it has no tags."""
    return "" if item.event is None else item.event.place


def _ranks(queue: deque[_Held]) -> Iterator[tuple[int, str]]:
    """Yield the rank of a queue's last event, if there is one."""
    if queue:
        yield queue[-1].time, queue[-1].tie


def _bytes_of(item: FeedItem) -> int:
    """Return the bytes of the bodies of an item's event."""
    return 0 if item.event is None else body_size(item.event.data) + body_size(item.event.meta)


def _reached_by(partition: _Partition) -> Ticks:
    """Return the time of a partition's last entry."""
    return partition.reached


def _time_of(placed: PlacedEntry) -> Ticks:
    """Return when an entry was written; before all times if that cannot be read."""
    try:
        return placed.ticks
    except InvalidInput:
        return NEVER
