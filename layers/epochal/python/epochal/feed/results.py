"""What readers of the feed get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from epochal.errors import CorruptData, DeniedBody, InvalidInput, MissingBody
from epochal.index.checkpoints import Checkpoint, FeedPosition
from epochal.model.events import TAG_STREAMS, Body, content_of, json_of
from epochal.model.spans import Span

Gone = Literal["pruned", "expired"]
"""Why an event of the feed can no longer be read: its stream was pruned (`tips`), or its time was over (`dcb`). One
whose bodies are sealed is read like any other: `Subjects.unseal` tells those who have the keys what is shredded."""


Fault = CorruptData | MissingBody | DeniedBody
"""Why an event that is there cannot be read: the error itself. Its place in the feed stays, and others go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvent:
    """An event of any layout, as the feed has it.

    Attributes:
        stream: its stream's name, its aggregate's id, or one of its tags.
        index: within that stream, from 0: an aggregate's event number less 1, an event's place in the tag.
        type: of an event that is pruned, or whose item cannot be read, it is only known to the feed, and empty here.
        data: the body: bytes, or a claim on the bucket. That of an aggregate's event is UTF-8 JSON.
        meta: metadata, likewise; empty for none. Aggregates keep none.
        timestamp: as stored: ISO 8601, or the number that other libraries store for an aggregate's event.
        tags: all tags of the event, in their order.
        id: of an event with tags, a UUID: the same in the feed's streams of all its tags.
        home: the named stream that an event with tags was appended to; empty where it has tags alone.
        user: who caused it, where Sekiban's tables say so; elsewhere a user is a member of `meta`.
        gone: why there is no event any more; its place in the feed stays.
        fault: why the event cannot be read; what is known of it is given.
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
        """`data` where it is here; raises `InvalidInput` where it is a claim."""
        return content_of(self.data)

    def json(self) -> Any:
        """The value of data in plain JSON, as `json.loads` reads it.

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
    def first(self) -> bool:
        """Whether this stream is the one through which the event comes once: its home, or a tagged event's first tag.
        Also true of one whose tags are gone, or cannot be read, with it: its `id` tells repetitions.
        """
        if self.home:
            return self.stream == self.home
        return not self.tags or self.tags[0] == self.stream.removeprefix(TAG_STREAMS)


def name_of(event: FeedEvent) -> str:
    """The text by which other events name this event as their cause."""
    return event.id or f"{event.stream}@{event.index}"


# A named tuple, because catching up makes one for every event there ever was: a frozen dataclass takes twice as long.
class FeedItem(NamedTuple):
    """One event of the feed.

    Attributes:
        event: the event itself where data was asked for; None where it was not, where it is gone or cannot be read,
            or where the page was full (`omitted`).
        omitted: data was asked for, but the page could hold no more: read the stream.
        gone: data was asked for, but the event can no longer be read.
        fault: data was asked for, but the event cannot be read.
    """

    stream: str
    index: int  # type: ignore[assignment]  # tuple's own method of that name is none of ours
    type: str
    event: FeedEvent | None = None
    omitted: bool = False
    gone: Gone | None = None
    fault: Fault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPage:
    """Items in feed order, or newest first, and the checkpoint to go on from. `at_tail`: the index held no more,
    backward nothing older.
    """

    items: tuple[FeedItem, ...]
    next: Checkpoint
    at_tail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanPage:
    """Spans in feed order, and the checkpoint to go on from. `at_tail`: the index held no more."""

    spans: tuple[Span, ...]
    next: Checkpoint
    at_tail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestPage:
    """The newest items of the feed, newest first, and the position before which the next page goes on."""

    items: tuple[FeedItem, ...]
    next: FeedPosition

    @property
    def at_beginning(self) -> bool:
        """Whether nothing is left."""
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
    """Streams, and the position from which the next page goes on. `at_end`: there were no more."""

    streams: tuple[ListedStream, ...]
    next: FeedPosition
    at_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTail:
    """How far a partition's chain of epochs has got: `tail` is the checkpoint after its last entry."""

    partition: int
    tail: Checkpoint
