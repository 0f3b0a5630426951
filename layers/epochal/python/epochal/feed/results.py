"""What readers of the feed return: pages of items, spans or streams, and the positions from which they continue."""

from __future__ import annotations

from typing import NamedTuple

from epochal.feed.events import Fault, FeedEvent, Gone
from epochal.index.checkpoints import Checkpoint, FeedPosition
from epochal.layout.changes import Removal, Span
from epochal.lazy_dataclasses import dataclass

PlacedRemoval = tuple[int, Removal]
"""A pair: how many spans of the page come before the removal, and the removal (events that were pruned or deleted)."""


# A named tuple, because catching up makes one for every event there ever was: a frozen dataclass takes twice as long.
class FeedItem(NamedTuple):
    """One item of a feed page: an event, or a notice that events of a stream were pruned or deleted.

    Attributes:
        stream: name of the stream.
        index: index of the event in its stream; if the item is a removal, index of the first event that is not gone.
        type: type of the event, or `$pruned`, `$emptied` or `$deleted` if the item is a removal.
        event: the event itself; None if data was not requested, if the event is gone or cannot be read, or if the page
            was full (`omitted`).
        omitted: whether the event was left out because the page had no room for it; it can be read from its stream.
        gone: reason why the event no longer exists, if data was requested.
        fault: error because of which the event cannot be read, if data was requested.
        removal: which events were pruned or deleted, if the item reports that and not an event. Then `type` is
            `$pruned`, `$emptied` or `$deleted`, and `index` is that of the first event that is not gone.
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
        """Make the feed item that reports a removal: that events of a stream were pruned or deleted.

        Args:
            removal: the removal.
        """
        return cls(removal.stream, removal.end, f"${removal.kind}", removal=removal)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPage:
    """One page of a partition's feed, in feed order or newest first, and the checkpoint to continue from.

    `at_tail` says that the index held no more, or backward nothing older.

    Attributes:
        items: items of the page.
        next: checkpoint to continue from.
        at_tail: whether the page reaches the end of the index or, if read backward, its beginning.
    """

    items: tuple[FeedItem, ...]
    next: Checkpoint
    at_tail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanPage:
    """One page of spans (runs of events of one stream) in feed order, and the checkpoint to continue from.

    Attributes:
        spans: spans (runs of events of one stream) in feed order.
        next: checkpoint to continue from.
        at_tail: whether the page reaches the end of the index.
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
        """Whether the page reaches the beginning of the feed, so that nothing older is left."""
        return not any(self.next.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedStream:
    """A stream in a listing, with the type of its first event, its partition of the feed, and when its first event was
    indexed.

    Attributes:
        stream: name of the stream.
        category: category of the stream.
        type: type of the stream's first event.
        partition: number of the feed partition that the stream belongs to.
        created: time at which the stream's first event was indexed: ISO 8601.
    """

    stream: str
    category: str
    type: str
    partition: int
    created: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPage:
    """One page of streams by the time of their creation, and the position from which the next page continues.

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
    """One page of streams in the order of their names, and the name after which the next page continues (None at the
    end).

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
    """A partition of the feed, and the checkpoint at its end, after the last entry of its index.

    Attributes:
        partition: number of the partition.
        tail: checkpoint at the partition's end, after its last index entry.
    """

    partition: int
    tail: Checkpoint
