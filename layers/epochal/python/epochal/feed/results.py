"""What readers of the feed return: pages of items, spans or streams, and the positions from which they continue."""

from __future__ import annotations

from typing import NamedTuple

from epochal.feed.events import Fault, FeedEvent, Gone
from epochal.index.checkpoints import Checkpoint, FeedPosition
from epochal.layout.changes import Removal, Span
from epochal.lazy_dataclasses import dataclass

PlacedRemoval = tuple[int, Removal]
"""A removal, after the number of spans that come before it."""


# A named tuple, because catching up makes one for every event there ever was: a frozen dataclass takes twice as long.
class FeedItem(NamedTuple):
    """One item of a feed page: an event, or a removal of events.

    Attributes:
        stream: name of the stream.
        index: index of the event in its stream.
        type: type of the event.
        event: the event itself; None if data was not requested, if the event is gone or cannot be read, or if the page
            was full (`omitted`).
        omitted: whether the event was left out because the page had no room for it; it can be read from its stream.
        gone: reason why the event no longer exists, if data was requested.
        fault: error because of which the event cannot be read, if data was requested.
        removal: the removal, if the item is a removal and not an event. Its `type` is then `$pruned`, `$emptied` or
            `$deleted`, and its `index` that of the first event that is not gone.
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
        """Build the item of a removal.

        Args:
            removal: the removal.
        """
        return cls(removal.stream, removal.end, f"${removal.kind}", removal=removal)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPage:
    """Items in feed order, or newest first, and the checkpoint to continue from.

    `at_tail` says that the index held no more, or backward nothing older.

    Attributes:
        items: items of the page.
        next: checkpoint to continue from.
        at_tail: whether the index held nothing more or, backward, nothing older.
    """

    items: tuple[FeedItem, ...]
    next: Checkpoint
    at_tail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanPage:
    """Spans in feed order, and the checkpoint to continue from.

    Attributes:
        spans: spans (runs of events of one stream) in feed order.
        next: checkpoint to continue from.
        at_tail: whether the index held nothing more.
        removals: notices that events were pruned or deleted, if they were requested, each with the number of this
            page's spans that come before it.
    """

    spans: tuple[Span, ...]
    next: Checkpoint
    at_tail: bool
    removals: tuple[PlacedRemoval, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestPage:
    """The newest items of the feed, newest first, and the position before which the next page continues.

    Attributes:
        items: items of the page, newest first.
        next: position before which the next page begins.
    """

    items: tuple[FeedItem, ...]
    next: FeedPosition

    @property
    def at_beginning(self) -> bool:
        """Whether nothing older is left."""
        return not any(self.next.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedStream:
    """A stream, with the type of its first event, its partition of the feed, and when that event was indexed.

    Attributes:
        stream: name of the stream.
        category: category of the stream.
        type: type of its first event.
        partition: number of its partition.
        created: time at which its first event was indexed: ISO 8601.
    """

    stream: str
    category: str
    type: str
    partition: int
    created: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPage:
    """Streams, and the position from which the next page continues.

    `at_end` says that there were no more.

    Attributes:
        streams: streams of the page.
        next: position from which the next page continues.
        at_end: whether there were no more streams.
    """

    streams: tuple[ListedStream, ...]
    next: FeedPosition
    at_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStreams:
    """Streams in the order of their names, and the name after which the next page continues; None at the end.

    Attributes:
        streams: streams of the page.
        next: name after which the next page begins; None at the end.
    """

    streams: tuple[ListedStream, ...]
    next: str | None

    @property
    def at_end(self) -> bool:
        """Whether there are no more streams."""
        return self.next is None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTail:
    """A partition, and the checkpoint after its last entry.

    Attributes:
        partition: number of the partition.
        tail: checkpoint after the partition's last entry.
    """

    partition: int
    tail: Checkpoint
