"""What readers of the feed get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from epochal.index.checkpoints import Checkpoint
from epochal.model.events import Claim, Recorded
from epochal.model.spans import Span

Gone = Literal["pruned", "expired", "shredded"]
"""Why an event has no body any more: cut off its stream, past its time to live, or its subject's key destroyed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvent:
    """One event of any layout, as readers of the feed get it.

    Attributes:
        stream: its stream's name, its aggregate's id, or the tag through which it is read.
        index: from 0, in its stream.
        data: its body; a `Claim` where large bodies were to be left where they are.
        timestamp: ISO 8601; None where the event has none.
        id: of a tagged event; elsewhere stream and index say which it is.
        tags: all of a tagged event's.
        gone: why nothing but place and type is left of it; None where it is whole.
    """

    stream: str
    index: int
    type: str
    data: bytes | Claim = b""
    meta: bytes | Claim = b""
    timestamp: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    id: str | None = None
    tags: tuple[str, ...] = ()
    gone: Gone | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedItem:
    """One event of the feed.

    Attributes:
        event: the event itself where data was asked for; None where it was not, where it has been pruned
            since, or where the page was full (`omitted`).
        omitted: data was asked for, but the page could hold no more: read the stream.
    """

    stream: str
    index: int
    type: str
    event: Recorded | None = None
    omitted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPage:
    """Items in feed order, and the checkpoint to go on from. `at_tail`: the index held no more."""

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
class PartitionTail:
    """How far a partition's chain of epochs has got: `tail` is the checkpoint after its last entry."""

    partition: int
    tail: Checkpoint
