"""The latest items of a partition of the feed."""

from __future__ import annotations

from collections.abc import Collection

from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedItem, PartitionTail
from epochal.index.checkpoints import BEGINNING, Checkpoint


def latest(
    feed: FeedReader,
    partition: PartitionTail,
    count: int,
    *,
    categories: Collection[str] | None = None,
    data: bool = False,
) -> tuple[FeedItem, ...]:
    """Return up to the last `count` items of a partition, oldest first, of `categories` only if given.

    It searches backward for as long as a page may take, so there may be fewer.
    """
    page = feed.newest(count, before={partition.partition: partition.tail}, categories=categories, data=data)
    return page.items[:count][::-1]


def before(checkpoint: Checkpoint, entries: int) -> Checkpoint:
    """Return the checkpoint so many entries back in the epoch; at its beginning, that of the one before."""
    if checkpoint.offset:
        return Checkpoint.of(checkpoint.epoch, max(0, checkpoint.offset - entries))
    return Checkpoint.of(checkpoint.epoch - 1, 0) if checkpoint.epoch else BEGINNING
