"""Events of all layouts in the common shape of the feed, read from their stores.

An event that cannot be read comes with its fault, and the events beside it are read. A layout's history is in the
module that its plug-in names (`plugins`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from itertools import islice, repeat
from typing import Any, Final, Literal, NamedTuple, Protocol, Self, TypeVar, cast

from epochal.codec.bodies import MAX_DECODED
from epochal.errors import CorruptData, DeniedBody, InvalidInput, MissingBody
from epochal.index.checkpoints import Checkpoint, FeedPosition
from epochal.layout.changes import Removal, RemovalKind, Span
from epochal.layout.registry import layouts_in
from epochal.layout.source import End
from epochal.layout.streams import Head
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import Body, body_size, content_of
from epochal.model.events import Recorded, fast_constructor
from epochal.model.plain_json import holds_seal, json_of
from epochal.model.stream_names import TAG_STREAMS
from epochal.plugins import Layout, layouts
from epochal.settings import Settings
from epochal.store.driver import Driver, pool
from epochal.store.encoding import BodyCodec
from epochal.store.reading import Reader, UnopenedEvent, Unreadable
from epochal.store.streams import Streams, streams_of

# What readers of the feed get.

Gone = Literal["pruned", "expired"]
"""Reasons why an event of the feed is gone: its stream was pruned (`tips`), or the event expired (`dcb`).

An event whose bodies are sealed is read like any other: `Subjects.unseal` returns `Shredded` once its subject is
forgotten.
"""


PlacedRemoval = tuple[int, Removal]
"""A removal, after the number of spans that come before it."""

Fault = CorruptData | MissingBody | DeniedBody
"""The error because of which an existing event cannot be read. Its place in the feed stays, and others are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvent:
    """An event of any layout in the common form of the feed.

    Attributes:
        stream: name of its stream, id of its aggregate, or one of its tags.
        index: index within that stream, from 0: an aggregate's event number less 1, or an event's place in the tag.
        type: type of the event; empty if the event is pruned or its item cannot be read, because only the feed knows
            it.
        data: body: bytes, or a claim on the bucket. That of an aggregate's event is UTF-8 JSON.
        meta: metadata: bytes, or a claim on the bucket; empty for none. Aggregates have none.
        timestamp: time as stored: ISO 8601, or the number that other libraries store for an aggregate's event.
        tags: all tags of the event, in their order.
        id: id of the event. For an event with tags, a UUID, which is the same in the streams of all its tags; for
            another event, the id that its writer gave it, if any.
        home: named stream that an event with tags was appended to; empty if it has tags alone.
        user: user who caused the event, if Sekiban's tables have one; elsewhere, a user is a member of `meta`.
        gone: reason why the event no longer exists; its place in the feed stays.
        fault: error because of which the event cannot be read; the other attributes have what is known.
    """

    stream: str
    index: int
    type: str
    data: Body = b""
    meta: Body = b""
    timestamp: str = ""
    correlation_id: str | None = None
    causation_id: str | None = None
    tags: tuple[str, ...] = ()
    id: str | None = None
    home: str = ""
    user: str | None = None
    gone: Gone | None = None
    fault: Fault | None = None

    @property
    def content(self) -> bytes:
        """Return `data` as bytes; raise `InvalidInput` if it is a claim."""
        return content_of(self.data)

    def json(self) -> Any:
        """Parse the event's data as plain JSON, as `json.loads` does.

        Raises:
            InvalidInput: the event is gone; its data are in the bucket, sealed, or of a version above 1: its codec
                reads that.
            CorruptData: they are not JSON.
            MissingBody, DeniedBody: `fault`, where the event cannot be read.
        """
        where = f"{self.stream} (index {self.index}), {self.type}"
        if self.gone is not None:
            raise InvalidInput("gone", f"must be looked at before data: {where} is {self.gone}")
        if self.fault is not None:
            raise self.fault
        return json_of(self.data, where)

    @property
    def is_sealed(self) -> bool:
        """Whether the event's body or metadata contain anything sealed for a subject, at any depth."""
        return holds_seal(self.data) or holds_seal(self.meta)

    @property
    def first(self) -> bool:
        """Whether the event, which may come through several streams, comes through this one first.

        The first is its home, or the stream of a tagged event's first tag. Also true of an event whose tags are gone or
        unreadable: its `id` shows repetitions.
        """
        if self.home:
            return self.stream == self.home
        return not self.tags or self.tags[0] == self.stream.removeprefix(TAG_STREAMS)


def name_of(event: FeedEvent) -> str:
    """Return the text by which other events name this event as their cause: its id, or `stream@index`."""
    return event.id or f"{event.stream}@{event.index}"


@dataclass(frozen=True, slots=True)
class UnopenedFeedEvent:
    """A possibly large event of a named stream, whose data and metadata are not decompressed yet.

    Attributes:
        event: the unopened event of the store.
    """

    event: UnopenedEvent

    @property
    def stream(self) -> str:
        """Name of the event's stream."""
        return self.event.stream

    @property
    def index(self) -> int:
        """Index of the event in its stream."""
        return self.event.index

    @property
    def stored_bytes(self) -> int:
        """Bytes of the event's bodies as they are stored."""
        return self.event.stored_bytes

    def open(self, largest: int = MAX_DECODED) -> FeedEvent | None:
        """Decompress and return the event, or its fault; None if data or metadata exceed `largest` bytes."""
        opened = self.event.open(largest)
        return None if opened is None else feed_event_of(self.stream, opened)

    def opened(self) -> FeedEvent:
        """Decompress and return the event, whatever its size, or its fault."""
        opened = self.event.open()
        assert opened is not None  # noqa: S101  # nothing is larger than what is read at all
        return feed_event_of(self.stream, opened)

    def outline(self) -> FeedEvent:
        """Return the event without its bodies, or its fault."""
        try:
            return readable_event(self.event.outline())
        except CorruptData as fault:
            return FeedEvent(stream=self.stream, index=self.index, type="", fault=fault)


# A named tuple, because catching up makes one for every event there ever was: a frozen dataclass takes twice as long.
class FeedItem(NamedTuple):
    """One item of a feed page: an event, or a removal of events.

    Attributes:
        event: the event itself; None if data was not requested, if the event is gone or cannot be read, or if the page
            was full (`omitted`).
        omitted: whether the event was left out because the page had no room for it: it can be read from its stream.
        gone: reason why the event no longer exists, if data was requested.
        fault: error because of which the event cannot be read, if data was requested.
        removal: the removal, if the item is one and no event. Its `type` is then `$pruned`, `$emptied` or `$deleted`,
            and its `index` that of the first event that is not gone.
    """

    stream: str
    index: int  # type: ignore[assignment]  # tuple's own method of that name is none of ours
    type: str
    event: FeedEvent | None = None
    omitted: bool = False
    gone: Gone | None = None
    fault: Fault | None = None
    removal: Removal | None = None

    @classmethod
    def of(cls, removal: Removal) -> FeedItem:
        """Build the item of a removal."""
        return cls(removal.stream, removal.end, f"${removal.kind}", removal=removal)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPage:
    """Items in feed order, or newest first, and the checkpoint to continue from.

    `at_tail` says that the index held no more, or backward nothing older.
    """

    items: tuple[FeedItem, ...]
    next: Checkpoint
    at_tail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanPage:
    """Spans in feed order, and the checkpoint to continue from.

    Attributes:
        spans: runs of events.
        next: checkpoint after them.
        at_tail: whether the index held no more.
        removals: removals, if they were requested, each with the number of spans before it.
    """

    spans: tuple[Span, ...]
    next: Checkpoint
    at_tail: bool
    removals: tuple[PlacedRemoval, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestPage:
    """The newest items of the feed, newest first, and the position before which the next page continues."""

    items: tuple[FeedItem, ...]
    next: FeedPosition

    @property
    def at_beginning(self) -> bool:
        """Whether nothing older is left."""
        return not any(self.next.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedStream:
    """A stream, with the type of its first event, its partition of the feed, and when that event was indexed."""

    stream: str
    category: str
    type: str
    partition: int
    created: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPage:
    """Streams, and the position from which the next page continues.

    `at_end` says that there were no more.
    """

    streams: tuple[ListedStream, ...]
    next: FeedPosition
    at_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStreams:
    """Streams in the order of their names, and the name after which the next page continues; None at the end."""

    streams: tuple[ListedStream, ...]
    next: str | None

    @property
    def at_end(self) -> bool:
        """Whether there were no more."""
        return self.next is None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTail:
    """A partition, and the checkpoint after its last entry."""

    partition: int
    tail: Checkpoint


# The sources of these events: the history of each layout.


class History(Protocol):
    """Reads the events of a layout's streams from its store.

    One whose store knows more about categories than the layout's port also has `categories`.
    """

    @property
    def name(self) -> str:
        """Name of the layout, as registered."""

    def on(self, driver: Driver) -> History:
        """Return the same history with all requests through another driver."""

    def events(self, *, fetch: bool = True) -> Hydrate:
        """Return a function that reads events; without `fetch`, bodies in the bucket stay claims."""

    def end_of(self, stream: str, since: int) -> int:
        """Return the index after the last event of a stream, at least `since`, which the caller knows."""


def histories_of(settings: Settings, driver: Driver, codec: BodyCodec) -> tuple[History, ...]:
    """Return the histories of a deployment's layouts; `codec` decodes the bodies of streams."""
    return tuple(_deployed(each, settings, driver, codec) for each in layouts_in(settings))


def _deployed(layout: Layout, settings: Settings, driver: Driver, codec: BodyCodec) -> History:
    """Return the history of one layout of a deployment."""
    plugin = layout.plugin
    if plugin.open_streams is not None:
        return DeployedHistory(layout.name, plugin.open_streams, settings, driver, codec)
    assert plugin.open_history is not None  # noqa: S101  a layout has one or the other
    history: History = plugin.open_history(settings, driver, codec)
    return history


def history_of(store: object) -> History:
    """Return the history of a store's layout; raise `InvalidInput` if it is not a store of any layout."""
    if isinstance(store, Streams):
        return StreamHistory(store)
    for layout in layouts():
        own = layout.plugin.history_of
        if own is not None and (history := own(store)) is not None:
            opened: History = history
            return opened
    raise InvalidInput("store", f"must be a store of a layout's events, not {type(store).__name__}")


def unreadable_events(stream: str, first: int, end: int, fault: CorruptData) -> Iterator[FeedEvent]:
    """Return unreadable events in place of a range of a stream's events."""
    return (FeedEvent(stream=stream, index=index, type="", fault=fault) for index in range(first, end))


def read_in_halves(
    stream: str, first: int, end: int, read: Callable[[int, int], Iterable[FeedEvent]]
) -> Iterator[FeedEvent]:
    """Read a range of a stream's events at once; if one is broken, read either half separately."""
    try:
        found = list(read(first, end))
    except CorruptData as fault:
        if end - first == 1:
            yield from unreadable_events(stream, first, end, fault)
            return
        middle = (first + end) // 2
        yield from read_in_halves(stream, first, middle, read)
        yield from read_in_halves(stream, middle, end, read)
    else:
        yield from found


# Events for the spans of a feed page, window by window, several streams of a window at once.

PARALLEL: Final = 8
"""Number of streams that are read concurrently."""

WINDOW: Final = 256
"""Default number of events that are read together: 100 MB if each is as large as an item can be."""

PAGE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of bodies after which a page of the library ends as soon as it can, whatever its limit: compression stores
megabytes of spaces in a few bytes."""

Hydrate = Callable[[str, int, int], Iterator[FeedEvent]]
"""Function that reads the events of a stream lazily, from an index up to and without another. None is left out: events
that are gone, or cannot be read, are marked as such.
"""

HydrateUnopened = Callable[[str, int, int], Iterator[FeedEvent | UnopenedFeedEvent]]
"""A `Hydrate` function that returns events which may be large unopened."""

_Event = TypeVar("_Event", FeedEvent, FeedEvent | UnopenedFeedEvent)


def bare_items(spans: Iterable[Span]) -> list[FeedItem]:
    """Convert spans into feed items without their events."""
    items: list[FeedItem] = []
    for stream, first, types in spans:
        index = first
        for kind in types:
            items.append(_tuple(FeedItem, (stream, index, kind, None, False, None, None, None)))
            index += 1
    return items


_tuple: Final = tuple.__new__
"""Makes a named tuple in half of the time: catching up makes one for every event."""


def with_removals(
    items: Iterable[FeedItem | None], spans: Iterable[Span], removals: Iterable[PlacedRemoval]
) -> list[FeedItem]:
    """Insert removals between the items of spans; items that are None are left out."""
    found, left, events = list[FeedItem](), deque(removals), iter(items)
    if not left:
        return [each for each in events if each is not None]
    for place, span in enumerate(spans):
        while left and left[0][0] == place:
            found.append(FeedItem.of(left.popleft()[1]))
        found += [each for each in islice(events, len(span.types)) if each is not None]
    return [*found, *(FeedItem.of(removal) for _, removal in left)]


def hydrated(spans: Sequence[Span], hydrate: Hydrate) -> list[FeedItem]:
    """Return the items of spans with their events, read from the store."""
    events = events_of(spans, hydrate, lambda: WINDOW)
    return [with_event(item, event) for item, event in zip(bare_items(spans), events, strict=True)]


def hydrated_entries(
    spans: Sequence[Span], ends: Iterable[int], hydrate: HydrateUnopened, *, once: bool, strict: bool
) -> tuple[list[FeedItem | None], int]:
    """Return the items of entries with their events, until `PAGE_BYTES` of large events are opened.

    Args:
        spans: spans of all entries.
        ends: for each entry, how many spans it and the entries before it have.
        once: whether the item of a tagged event is None unless it comes through its first tag.
        strict: whether an event that cannot be read is raised.

    Returns:
        The items, and of how many entries they are.
    """
    items: list[FeedItem | None] = []
    size = taken = first = 0
    with closing(events_of(spans, hydrate, lambda: WINDOW)) as events:
        for end in ends:
            for item in bare_items(spans[first:end]):
                event = next(events)
                if isinstance(event, UnopenedFeedEvent):
                    event = event.opened()
                    size += body_size(event.data) + body_size(event.meta)
                shown = with_event(item, event) if event.first or not once else None
                if strict and shown is not None and shown.fault is not None:
                    raise shown.fault
                items.append(shown)
            first, taken = end, taken + 1
            if size >= PAGE_BYTES:
                break
    return items, taken


def events_of(
    spans: Iterable[Span], hydrate: Callable[[str, int, int], Iterator[_Event]], window: Callable[[], int]
) -> Generator[_Event, None, None]:
    """Iterate over the events of spans in order, read in windows; `window` returns the size of the next."""
    with pool(PARALLEL) as reading:
        for part in _windows(spans, window):
            reads = reading.map(lambda each: list(hydrate(*each)), _wanted(part))
            found = {(event.stream, event.index): event for events in reads for event in events}
            for stream, first, types in part:
                for index in range(first, first + len(types)):
                    yield found[stream, index]


def with_event(item: FeedItem, event: FeedEvent) -> FeedItem:
    """Return an item with its event, or with the reason why the event is gone or cannot be read."""
    if event.fault is not None:
        return FeedItem(stream=item.stream, index=item.index, type=item.type, fault=event.fault)
    if event.gone:
        return FeedItem(stream=item.stream, index=item.index, type=item.type, gone=event.gone)
    return FeedItem(stream=item.stream, index=item.index, type=item.type, event=event)


def _windows(spans: Iterable[Span], window: Callable[[], int]) -> Iterator[list[Span]]:
    """Divide spans into windows of so many events."""
    part: list[Span] = []
    room = window()
    for span in spans:
        rest = span
        while rest.types:
            part.append(Span(rest.stream, rest.index, rest.types[:room]))
            rest = rest.since(part[-1].next)
            room -= len(part[-1].types)
            if room == 0:
                yield part
                part, room = [], window()
    if part:
        yield part


def _wanted(window: Iterable[Span]) -> list[tuple[str, int, int]]:
    """Return the range of events to read of each stream in a window."""
    wanted: dict[str, tuple[int, int]] = {}
    for span in window:
        first, end = wanted.get(span.stream, (span.index, span.next))
        wanted[span.stream] = (min(first, span.index), max(end, span.next))
    return [(stream, first, end) for stream, (first, end) in wanted.items()]


def opened_events(events: Iterable[FeedEvent | UnopenedFeedEvent]) -> Iterator[FeedEvent]:
    """Iterate over events, each opened when it is consumed."""
    return (event.opened() if isinstance(event, UnopenedFeedEvent) else event for event in events)


# Pages that end where their room ends.
#
# Events, where they are asked for, are read in windows: few at first, then as many as would have room if each were as
# large as the largest so far. So little more is read than is shown, however large events are.
#
# A checkpoint is between entries of the index, so a page ends before the entry that has no room, and the next page
# begins with it: part of an entry, and of a window, is read in vain. A page's first entry is taken even if it has no
# room for all of its events: the others come `omitted`, as an event does that no page has room for. An entry without
# its events always has room (`index.entries`).

FEWEST: Final = PARALLEL
"""Minimum number of events of a window: one for each stream that is read concurrently."""

MOST: Final = 128
"""Maximum number of events of a window: 50 MB if each is as large as an item can be, after only small ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBounds:
    """The limits of a page.

    Attributes:
        max_bytes: bytes of all items; the first item may be larger.
        largest: bytes of an item beyond which its event is omitted.
        size_of: returns the bytes of an item with its event, in the form that the page will have.
        until: clock reading after which no further window is begun.
    """

    max_bytes: int
    largest: int
    size_of: Callable[[FeedItem], int]
    until: float


def fill(
    room: PageBounds,
    entries: Sequence[tuple[int, SpanPage]],
    hydrate: Callable[[int], HydrateUnopened] | None,
    clock: Callable[[], float],
) -> tuple[tuple[FeedItem, ...], int]:
    """Fill a page with as many entries as have room, at least one; return the items and how many entries.

    Without `hydrate`, the items have no events.
    """
    filling = _Filling(room=room, clock=clock, data=hydrate is not None)
    items, taken = list[FeedItem](), 0
    with ExitStack() as stack:
        events = {
            number: stack.enter_context(
                closing(
                    _events(
                        [entry for of, entry in entries if of == number],
                        None if hydrate is None else hydrate(number),
                        filling.window,
                    )
                )
            )
            for number, _ in entries
        }
        for number, entry in entries:
            found = filling.items(entry, events[number])
            if not filling.full or not taken:
                items += found
                taken += 1
            if filling.full:
                break
    return tuple(items), taken


def _events(
    entries: Sequence[SpanPage], hydrate: HydrateUnopened | None, window: Callable[[], int]
) -> Generator[FeedEvent | UnopenedFeedEvent | None, None, None]:
    """Iterate over the event of each item in order; None for each if events are not requested."""
    if hydrate is None:
        yield from repeat(None)
    else:
        yield from events_of((span for entry in entries for span in entry.spans), hydrate, window)


@dataclass(slots=True, kw_only=True)
class _Filling:
    """A page while it is filled.

    Attributes:
        room: limits of the page.
        clock: returns seconds.
        data: whether events were requested, so that an item may lack one.
        used: bytes of the items so far.
        opened: bytes of all events that were opened, those without room included.
        largest: bytes of the largest of them; None before the first.
        full: whether an item had no room, or time was over.
    """

    room: PageBounds
    clock: Callable[[], float]
    data: bool
    used: int = 0
    opened: int = 0
    largest: int | None = None
    full: bool = False

    def window(self) -> int:
        """Return how many events to read next, so that they fit even if all are as large as the largest."""
        if self.largest is None:
            return FEWEST
        return min(MOST, max(FEWEST, (self.room.max_bytes - self.used) // self.largest))

    def items(
        self, entry: SpanPage, events: Iterator[FeedEvent | UnopenedFeedEvent | None]
    ) -> list[FeedItem]:
        """Return an entry's items with their events; no event is read once the page is full."""
        items = [self._item(item, events) for item in bare_items(entry.spans)]
        self.used += sum(self.room.size_of(FeedItem.of(removal)) for _, removal in entry.removals)
        return with_removals(items, entry.spans, entry.removals)

    def _item(self, item: FeedItem, events: Iterator[FeedEvent | UnopenedFeedEvent | None]) -> FeedItem:
        """Return one item with its event, or with its event omitted if it has no room."""
        left_out = item._replace(omitted=self.data)
        if self.full:
            return left_out
        event = next(events)
        if isinstance(event, UnopenedFeedEvent):
            event = self._open(event)
            if event is None:
                return left_out
        shown = item if event is None else with_event(item, event)
        size = self.room.size_of(shown)
        self.opened += size
        self.largest = max(self.largest or 1, size)
        return shown if self._fits(size) else left_out

    def _open(self, event: UnopenedFeedEvent) -> FeedEvent | None:
        """Open an event that may be large; return None if the page has no room for it.

        The event is decompressed only as far as there is room: megabytes of spaces are stored in a few bytes.
        """
        largest, rest = self.room.largest, 2 * self.room.max_bytes - self.opened
        room = min(largest, rest, self.room.max_bytes - self.used if self.used else largest)
        opened = event.open(room) if room > 0 else None
        if opened is None:
            self.opened += max(room, 0)
            self.full = room < largest
        return opened

    def _fits(self, size: int) -> bool:
        """Count an item's bytes if it fits, and return whether it does; mark the page as full otherwise."""
        if size > self.room.largest:
            return False
        late = self.clock() > self.room.until
        self.full = self.used > 0 and (late or self.used + size > self.room.max_bytes)
        self.used += size
        return not self.full


# Events of named streams of any layout, from the stream; what is pruned, and in no archive, comes as `pruned`.


@dataclass(frozen=True, slots=True)
class StreamHistory:
    """Reads the events of named streams from their store.

    Attributes:
        store: the store of streams.
    """

    store: Streams

    @property
    def name(self) -> str:
        """Name of the layout in which the streams are stored."""
        return self.store.layout.name

    def on(self, driver: Driver) -> StreamHistory:
        """Return the same history through another driver."""
        return StreamHistory(self.store.on(driver))

    def events(self, *, fetch: bool = True) -> Hydrate:
        """Return a function that reads the events of streams."""
        # A reader leaves events unopened only if it is told to.
        return cast("Hydrate", self._read(self.store.reader(fetch=fetch)))

    def unopened(self, *, fetch: bool = False) -> HydrateUnopened:
        """Return a function that reads events of streams and leaves those that may be large unopened.

        Without `fetch`, bodies in the bucket stay claims.
        """
        return self._read(self.store.reader(fetch=fetch).leaving_unopened())

    def _read(self, reader: Reader) -> HydrateUnopened:
        """Return a function that reads the events of streams with a reader, unreadable ones with their faults."""

        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent | UnopenedFeedEvent]:
            """Yield a range of a stream's events; pruned and unreadable ones are marked as such.

            An item that cannot be read makes all later events of the range unreadable.
            """
            if first == end:
                return
            at = first
            try:
                # The check of stream names, which is for callers, is skipped: other libraries allow further names.
                for found in reader.found(stream, first, limit=end - first):
                    if found.index >= end:
                        break
                    yield from pruned_events(stream, at, found.index)
                    if isinstance(found, Recorded):
                        yield readable_event(found)
                    elif isinstance(found, UnopenedEvent):
                        yield UnopenedFeedEvent(found)
                    else:
                        yield unreadable_event(stream, found)
                    at = found.index + 1
            except CorruptData as fault:
                # An item that cannot be read hides the events after it, but no other stream.
                yield from unreadable_events(stream, at, end, fault)
            else:
                yield from pruned_events(stream, at, end)

        return hydrate

    def end_of(self, stream: str, since: int) -> int:
        """Return the next index of a stream, at least `since`."""
        head = self._head(stream)
        return max(since, 0 if head is None else head.version)

    def removal_of(self, stream: str) -> Removal | None:
        """Return what has been removed from a stream, as one removal; None if nothing has."""
        head = self._head(stream)
        if head is None:
            return None
        emptied = 0 < head.low_water == head.version and not getattr(head, "unfolds", ())
        left: RemovalKind = "deleted" if head.deleted else "emptied" if emptied else "pruned"
        removal = End(stream, head.version, head.low_water, left=left).removal
        return None if removal is None else removal._replace(next=removal.end)

    def _head(self, stream: str) -> Head | None:
        """Load the head of a stream."""
        head: Head | None = self.store.driver.run(self.store.layout.load(self.store.table, stream))
        return head


@dataclass(frozen=True)
class DeployedHistory:
    """Reads the events of a deployment's named streams; their store is opened at the first read.

    A function starts without it.

    Attributes:
        name: layout in which the streams are stored.
        of: function that opens their store.
        settings, driver, codec: its arguments.
    """

    name: str
    of: Callable[[Settings, Driver, BodyCodec], Streams]
    settings: Settings
    driver: Driver
    codec: BodyCodec

    def on(self, driver: Driver) -> Self:
        """Return the same history through another driver."""
        return replace(self, driver=driver)

    def events(self, *, fetch: bool = True) -> Hydrate:
        """Return a function that reads events of streams, and of tags if the layout has them."""
        named = self.opened.events(fetch=fetch)

        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
            """Read a range of events of a named stream, or of a tag's stream."""
            if stream.startswith(TAG_STREAMS):
                return events_of_tag(
                    self.settings, self.driver, self.codec, (stream, first, end), fetch=fetch
                )
            return named(stream, first, end)

        return hydrate

    def unopened(self, *, fetch: bool = False) -> HydrateUnopened:
        """Return a function that reads events, and leaves those of named streams that may be large unopened."""
        named, opened = self.opened.unopened(fetch=fetch), self.events(fetch=fetch)

        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent | UnopenedFeedEvent]:
            """Read a range of a stream's events; those of a tag's stream are always opened."""
            read: HydrateUnopened = opened if stream.startswith(TAG_STREAMS) else named
            return read(stream, first, end)

        return hydrate

    def end_of(self, stream: str, since: int) -> int:
        """Return the next index of a stream, at least `since`."""
        return self.opened.end_of(stream, since)

    def removal_of(self, stream: str) -> Removal | None:
        """Return what has been removed from a stream, as one removal; None if nothing has."""
        return self.opened.removal_of(stream)

    @cached_property
    def opened(self) -> StreamHistory:
        """History of the store, which is opened at the first use."""
        return StreamHistory(self.of(self.settings, self.driver, self.codec))


def feed_event_of(stream: str, found: Recorded | Unreadable) -> FeedEvent:
    """Convert a stored event, or one that cannot be read, into its form in the feed."""
    return readable_event(found) if isinstance(found, Recorded) else unreadable_event(stream, found)


def readable_event(event: Recorded) -> FeedEvent:
    """Convert a stored event into its form in the feed."""
    return _fed(
        event.stream, event.index, event.type, event.data, event.meta, event.timestamp, event.correlation_id,
        event.causation_id, event.tags, event.id or None, event.stream if event.tags else "", None, None, None,
    )  # fmt: skip


_fed: Final = fast_constructor(FeedEvent)


def unreadable_event(stream: str, found: Unreadable) -> FeedEvent:
    """Build the feed's event for one that cannot be read."""
    return FeedEvent(
        stream=stream, index=found.index, type=found.type, timestamp=found.timestamp, fault=found.fault
    )


def pruned_events(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
    """Iterate over pruned events in place of a range."""
    return (FeedEvent(stream=stream, index=index, type="", gone="pruned") for index in range(first, end))


def tagged_feed_event(stream: str, index: int, event: Recorded, user: str | None = None) -> FeedEvent:
    """Convert a tagged event into the feed's form, as event `index` of one of its tags' streams."""
    return FeedEvent(
        stream=stream,
        index=index,
        type=event.type,
        data=event.data,
        meta=event.meta,
        timestamp=event.timestamp,
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        tags=event.tags,
        id=event.id,
        home=event.stream,
        user=user,
    )


def events_of_tag(
    settings: Settings, driver: Driver, codec: BodyCodec, span: tuple[str, int, int], *, fetch: bool
) -> Iterator[FeedEvent]:
    """Iterate over a range of the events in a tag's stream, reading them from the store of tagged events."""
    store, (stream, first, end) = streams_of(settings, driver, codec).tagged, span

    def read(start: int, until: int) -> Iterator[FeedEvent]:
        """Read a range of the tag's events."""
        found = store.between(stream.removeprefix(TAG_STREAMS), start, until, fetch=False)
        return (shown(index, event) for index, event in enumerate(found, start))

    def shown(index: int, event: Recorded) -> FeedEvent:
        """Return an event with its body; if that cannot be read, with the fault and all that is known."""
        try:
            return tagged_feed_event(stream, index, store.whole((event,))[0] if fetch else event)
        except (CorruptData, MissingBody, DeniedBody) as fault:
            return replace(tagged_feed_event(stream, index, event), fault=fault)

    return read_in_halves(stream, first, end, read)
