"""Reads the events of named streams, of any layout, from their store.

An event that is pruned, and that no archive has, comes as `pruned`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Self, cast

from epochal.codec.bodies import ONE_BLOCK
from epochal.errors import CorruptData, DeniedBody, MissingBody
from epochal.feed.batch_reading import Range
from epochal.feed.events import (
    FeedEvent,
    UnopenedFeedEvent,
    UnopenedTagEvent,
    pruned_events,
    readable_event,
    tagged_feed_event,
    unreadable_event,
    unreadable_events,
)
from epochal.feed.history import History
from epochal.feed.hydration import Hydrate, HydrateUnopened, read_in_halves
from epochal.layout.changes import Removal, RemovalKind
from epochal.layout.source import End
from epochal.layout.streams import BatchedReads, Head
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import OutlinedEvent, Recorded
from epochal.model.stream_names import TAG_STREAMS
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.reading import Found, Reader, UnopenedEvent
from epochal.store.streams import Streams, streams_of


@dataclass(frozen=True, slots=True)
class StreamHistory(History):
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
        return cast("Hydrate", _hydrate(self.store.reader(fetch=fetch)))

    def unopened(self, *, fetch: bool = False) -> HydrateUnopened:
        """Return a function that reads events of streams and leaves those that may be large unopened.

        Without `fetch`, bodies in the bucket stay claims.
        """
        return _hydrate(self.store.reader(fetch=fetch).leaving_unopened())

    def end_of(self, stream: str, since: int) -> int:
        """Return the next index of a stream, at least `since`."""
        head = self._head(stream)
        return max(since, 0 if head is None else head.version)

    def removal_of(self, stream: str) -> Removal | None:
        """Return what has been removed from a stream, as one removal; None if nothing has."""
        head = self._head(stream)
        if head is None:
            return None
        emptied = 0 < head.low_water == head.version and not head.token().unfolds
        kind: RemovalKind = "deleted" if head.deleted else "emptied" if emptied else "pruned"
        removal = End(stream, head.version, head.low_water, left=kind).removal
        return None if removal is None else removal._replace(next=removal.end)

    def _head(self, stream: str) -> Head | None:
        """Load the head of a stream."""
        head: Head | None = self.store.driver.run(self.store.layout.load(self.store.table, stream))
        return head


def _hydrate(reader: Reader) -> HydrateUnopened:
    """Return a function that reads streams' events with `reader`, in batches if the layout can."""
    layout = reader.layout
    return _BatchHydration(reader, layout) if isinstance(layout, BatchedReads) else _Hydration(reader)


@dataclass(frozen=True, slots=True)
class _Hydration:
    """A function that reads a range of a stream's events.

    Pruned events come as gone, unreadable ones with their faults. An item that cannot be read makes all later events of
    the range unreadable.

    Attributes:
        reader: reads the streams.
    """

    reader: Reader

    def __call__(self, stream: str, first: int, end: int) -> Iterator[FeedEvent | UnopenedFeedEvent]:
        """Read the events `first` to `end - 1` of a stream as they are consumed."""
        if first == end:
            return iter(())
        # The check of stream names, which is for callers, is skipped: other libraries allow further names.
        return _feed_events(stream, first, end, partial(self.reader.found, stream, first, limit=end - first))


@dataclass(frozen=True, slots=True)
class _BatchHydration(_Hydration):
    """A function that reads a range of a stream's events, or ranges of several streams in a batch (`BatchHydrate`).

    Attributes:
        layout: the reader's layout.
    """

    layout: BatchedReads

    def is_batched(self, stream: str, first: int) -> bool:  # noqa: ARG002  of all streams alike
        """Whether a batch is likely to find the events of a stream from an index on."""
        return self.layout.is_batched(first)

    def read_batch(self, ranges: Sequence[Range]) -> dict[Range, Iterable[FeedEvent | UnopenedFeedEvent]]:
        """Read ranges of streams with one request; return events by range, without those it cannot complete.

        Events that need no more work are returned as a list.
        """
        by_stream = {stream: (first, end) for stream, first, end in ranges}
        found = self.reader.found_in_batch(self.layout, by_stream)
        batch: dict[Range, Iterable[FeedEvent | UnopenedFeedEvent]] = {}
        for range_ in ranges:
            events = found.get(range_[0])
            if isinstance(events, list):
                batch[range_] = list(map(readable_event, events))
            elif events is not None:
                batch[range_] = _feed_events(*range_, partial(iter, events))
        return batch


def _feed_events(
    stream: str, first: int, end: int, read: Callable[[], Iterator[Found]]
) -> Iterator[FeedEvent | UnopenedFeedEvent]:
    """Yield a range of a stream's events in the form of the feed, with pruned and unreadable ones marked.

    `read` begins to read them.
    """
    next_index = first
    try:
        for event in read():
            if event.index >= end:
                break
            yield from pruned_events(stream, next_index, event.index)
            if isinstance(event, Recorded):
                yield readable_event(event)
            elif isinstance(event, UnopenedEvent):
                yield UnopenedFeedEvent(event)
            else:
                yield unreadable_event(stream, event)
            next_index = event.index + 1
    except CorruptData as fault:
        # An item that cannot be read hides the events after it, but no other stream.
        yield from unreadable_events(stream, next_index, end, fault)
    else:
        yield from pruned_events(stream, next_index, end)


@dataclass(frozen=True)
class DeployedHistory(History):
    """Reads the events of a deployment's named streams; their store is opened at the first read.

    A function starts without it.

    Attributes:
        layout: name of the layout in which the streams are stored.
        of: function that opens their store.
        settings, driver, codec: its arguments.
    """

    layout: str
    of: Callable[[Settings, Driver, BodyCodec], Streams]
    settings: Settings
    driver: Driver
    codec: BodyCodec

    @property
    def name(self) -> str:
        """Name of the layout in which the streams are stored."""
        return self.layout

    def on(self, driver: Driver) -> Self:
        """Return the same history through another driver."""
        return replace(self, driver=driver)

    def events(self, *, fetch: bool = True) -> Hydrate:
        """Return a function that reads events of streams, and of tags if the layout has them."""

        def of_tag(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
            """Read a range of events of a tag's stream."""
            return events_of_tag(self.settings, self.driver, self.codec, (stream, first, end), fetch=fetch)

        return cast("Hydrate", _with_tags(self.opened.events(fetch=fetch), of_tag))

    def unopened(self, *, fetch: bool = False) -> HydrateUnopened:
        """Return a function that reads events, and leaves those of named streams that may be large unopened."""

        def of_tag(stream: str, first: int, end: int) -> Iterator[FeedEvent | UnopenedFeedEvent]:
            """Read a range of events of a tag's stream."""
            span = stream, first, end
            return unopened_events_of_tag(self.settings, self.driver, self.codec, span, fetch=fetch)

        return _with_tags(self.opened.unopened(fetch=fetch), of_tag)

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


def _with_tags(named: HydrateUnopened, of_tag: HydrateUnopened) -> HydrateUnopened:
    """Return a function that reads streams of tags with one function, and all others with another."""
    if isinstance(named, _BatchHydration):
        return _BatchHydrationWithTags(named.reader, named.layout, of_tag)

    def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent | UnopenedFeedEvent]:
        """Read a range of events of a named stream, or of a tag's stream."""
        return (of_tag if stream.startswith(TAG_STREAMS) else named)(stream, first, end)

    return hydrate


@dataclass(frozen=True, slots=True)
class _BatchHydrationWithTags(_BatchHydration):
    """A `_BatchHydration` that reads the streams of tags with another function, one at a time.

    Attributes:
        of_tag: reads a range of a tag's stream.
    """

    of_tag: HydrateUnopened

    def __call__(self, stream: str, first: int, end: int) -> Iterator[FeedEvent | UnopenedFeedEvent]:
        """Read the events `first` to `end - 1` of a named stream, or of a tag's stream."""
        if stream.startswith(TAG_STREAMS):
            return self.of_tag(stream, first, end)
        return _BatchHydration.__call__(self, stream, first, end)

    def is_batched(self, stream: str, first: int) -> bool:
        """Whether a batch is likely to find the events of a stream from an index on: never those of a tag."""
        return not stream.startswith(TAG_STREAMS) and _BatchHydration.is_batched(self, stream, first)


def events_of_tag(
    settings: Settings, driver: Driver, codec: BodyCodec, span: tuple[str, int, int], *, fetch: bool
) -> Iterator[FeedEvent]:
    """Iterate over a range of the events in a tag's stream, reading them from the store of tagged events."""
    for event in unopened_events_of_tag(settings, driver, codec, span, fetch=fetch):
        yield event.decode_whole() if isinstance(event, UnopenedFeedEvent) else event


def unopened_events_of_tag(
    settings: Settings, driver: Driver, codec: BodyCodec, span: tuple[str, int, int], *, fetch: bool
) -> Iterator[FeedEvent | UnopenedFeedEvent]:
    """Iterate over a range of the events in a tag's stream, leaving those that may be large unopened."""
    store, (stream, first, end) = streams_of(settings, driver, codec).tagged.with_body_limit(ONE_BLOCK), span

    def read(start: int, until: int) -> Iterator[FeedEvent | UnopenedFeedEvent]:
        """Read a range of the tag's events."""
        events = store.between(stream.removeprefix(TAG_STREAMS), start, until, fetch=False)
        for index, event in enumerate(events, start):
            if isinstance(event, OutlinedEvent):
                yield UnopenedTagEvent(event, stream, index, show)
            else:
                yield show(index, event)

    def show(index: int, event: Recorded) -> FeedEvent:
        """Return an event with its body; if that cannot be read, with the fault and all that is known."""
        try:
            return tagged_feed_event(stream, index, store.whole((event,))[0] if fetch else event)
        except (CorruptData, MissingBody, DeniedBody) as fault:
            return replace(tagged_feed_event(stream, index, event), fault=fault)

    return read_in_halves(stream, first, end, read)
