"""Events of all layouts in the common form of the feed, also those that are gone or cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from epochal.codec.bodies import MAX_DECODED
from epochal.errors import CorruptData, DeniedBody, InvalidInput, MissingBody
from epochal.lazy_dataclasses import dataclass
from epochal.model.bodies import Body, content_of
from epochal.model.events import OutlinedEvent, Recorded, fast_constructor
from epochal.model.plain_json import holds_seal, json_of
from epochal.model.stream_names import TAG_STREAMS
from epochal.store.reading import UnopenedEvent, Unreadable

Gone = Literal["pruned", "expired"]
"""Why an event of the feed no longer exists: `pruned` with the earlier events of its stream, or `expired` (`dcb`
layout).

An event whose bodies are sealed is read like any other: `Subjects.unseal` returns `Shredded` once its subject is
forgotten.
"""

Fault = CorruptData | MissingBody | DeniedBody
"""The error that makes a stored event unreadable. The event keeps its place in the feed; other events are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvent:
    """An event of any layout in the common form of the feed.

    Attributes:
        stream: name of the event's stream, id of its aggregate, or one of its tags, whichever it was read through.
        index: index of the event in `stream`, from 0: for an aggregate its event number less 1, for a tag the event's
            place among the tag's events.
        type: type of the event; empty if the event is pruned or its item cannot be read: then only the `FeedItem` or
            span has it.
        data: body: bytes, or a `Claim` that names its object in the bucket. The body of an aggregate's event is UTF-8
            JSON.
        meta: metadata: bytes, or a `Claim` that names their object in the bucket; empty for none. Aggregates have none.
        timestamp: time as stored: ISO 8601, or the number that other libraries store for an aggregate's event.
        correlation_id: id of the conversation that the event belongs to; None for none.
        causation_id: id of the event or command that caused the event; None for none.
        tags: all tags of the event, in the order in which they are stored.
        id: id of the event. For an event with tags, a UUID, which is the same in the streams of all its tags; for
            another event, the id that its writer gave it, if any.
        home: named stream that an event with tags was appended to; empty if it has tags alone.
        user: user who caused the event, if Sekiban's tables have one; elsewhere, a user is a member of `meta`.
        gone: reason why the event no longer exists; its place in the feed stays.
        fault: error because of which the event cannot be read; the other attributes have what is known.
        place: text by which events with tags sort in their order, also within one append; empty for events without
            tags.
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
    place: str = ""

    @property
    def content(self) -> bytes:
        """Return the body as bytes; raise `InvalidInput` if it was left in the bucket (`data` is a `Claim`)."""
        return content_of(self.data)

    def json(self) -> Any:
        """Return the event's data parsed as JSON; raise if it is gone, unreadable, sealed, or in the bucket.

        It is parsed as `json.loads` does.

        Raises:
            InvalidInput: the event is gone; its data are in the bucket, sealed, or of a version above 1: its codec
                reads that.
            CorruptData: they are not JSON.
            MissingBody, DeniedBody: `fault`, where the event cannot be read.
        """
        where = f"{self.stream} (index {self.index}), {self.type}"
        if self.gone is not None:
            raise InvalidInput("gone", f"must be checked before the data are read: {where} is {self.gone}")
        if self.fault is not None:
            raise self.fault
        return json_of(self.data, where)

    @property
    def is_sealed(self) -> bool:
        """Whether the body or metadata contain anything encrypted under the key of a person (`Subjects`)."""
        return holds_seal(self.data) or holds_seal(self.meta)

    @property
    def first(self) -> bool:
        """Whether the event came through the first of its streams; a tagged event comes once for each tag.

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

    def decode(self, largest: int = MAX_DECODED) -> FeedEvent | None:
        """Decompress and return the event, or its fault; None if data or metadata exceed `largest` bytes."""
        opened = self.event.decode(largest)
        return None if opened is None else feed_event_of(self.stream, opened)

    def decode_whole(self) -> FeedEvent:
        """Decompress and return the event, whatever its size, or its fault."""
        opened = self.event.decode()
        assert opened is not None  # noqa: S101  # nothing is larger than what is read at all
        return feed_event_of(self.stream, opened)

    def outline(self) -> FeedEvent:
        """Return the event without its bodies, or its fault."""
        try:
            return readable_event(self.event.outline())
        except CorruptData as fault:
            return FeedEvent(stream=self.stream, index=self.index, type="", fault=fault)


@dataclass(frozen=True, slots=True)
class UnopenedTagEvent(UnopenedFeedEvent):
    """A possibly large event of a tag's stream, whose data and metadata are not decompressed yet.

    Attributes:
        event: the event without its bodies.
        tag_stream: name of the tag's stream.
        place: index of the event in that stream.
        show: function that converts a recorded event and its index into a feed event.
    """

    event: OutlinedEvent  # type: ignore[assignment]  # of tags, not of streams
    tag_stream: str
    place: int
    show: Callable[[int, Recorded], FeedEvent]

    @property
    def stream(self) -> str:
        """Name of the tag's stream."""
        return self.tag_stream

    @property
    def index(self) -> int:
        """Index of the event in the tag's stream."""
        return self.place

    @property
    def stored_bytes(self) -> int:
        """Bytes of the event's bodies as they are stored."""
        return self.event.stored_bytes

    def decode(self, largest: int = MAX_DECODED) -> FeedEvent | None:
        """Decompress and return the event, or its fault; None if data or metadata exceed `largest` bytes."""
        try:
            event = self.event.decode(largest)
        except CorruptData as fault:
            return FeedEvent(stream=self.stream, index=self.index, type=self.event.type, fault=fault)
        return None if isinstance(event, OutlinedEvent) else self.show(self.index, event)

    def decode_whole(self) -> FeedEvent:
        """Decompress and return the event, whatever its size, or its fault."""
        opened = self.decode()
        assert opened is not None  # noqa: S101  # nothing is larger than what is read at all
        return opened

    def outline(self) -> FeedEvent:
        """Return the event without its bodies."""
        return tagged_feed_event(self.stream, self.index, self.event)


def unreadable_events(stream: str, first: int, end: int, fault: CorruptData) -> Iterator[FeedEvent]:
    """Return unreadable events in place of a range of a stream's events."""
    return (FeedEvent(stream=stream, index=index, type="", fault=fault) for index in range(first, end))


def feed_event_of(stream: str, event: Recorded | Unreadable) -> FeedEvent:
    """Convert a stored event, or one that cannot be read, into its form in the feed."""
    return readable_event(event) if isinstance(event, Recorded) else unreadable_event(stream, event)


def readable_event(event: Recorded) -> FeedEvent:
    """Convert a stored event into its form in the feed."""
    return _fed(
        event.stream, event.index, event.type, event.data, event.meta, event.timestamp, event.correlation_id,
        event.causation_id, event.tags, event.id or None, event.stream if event.tags else "", None, None, None,
        event.place,
    )  # fmt: skip


_fed: Final = fast_constructor(FeedEvent)


def unreadable_event(stream: str, event: Unreadable) -> FeedEvent:
    """Build the feed's event for one that cannot be read."""
    return FeedEvent(
        stream=stream, index=event.index, type=event.type, timestamp=event.timestamp, fault=event.fault
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
        place=event.place,
    )
