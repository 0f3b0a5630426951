"""What readers of the feed get."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.index.checkpoints import Checkpoint
from epochal.model.events import Recorded


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
class PartitionTail:
    """How far a partition's chain of epochs has got: `tail` is the checkpoint after its last entry."""

    partition: int
    tail: Checkpoint
