"""The latest items of a partition of the feed, within one page of it."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedItem, PartitionTail
from epochal.index.checkpoints import BEGINNING, Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """A partition's latest items, oldest first. `start` is the checkpoint before the oldest that was read."""

    partition: int
    tail: Checkpoint
    start: Checkpoint
    items: tuple[FeedItem, ...]


def latest(feed: FeedReader, at: PartitionTail, count: int, *, data: bool = False) -> Recent:
    """At least the last `count` items of the newest epoch, or all of the one before where that has just begun.

    An entry of the index has one event or more, so to go back `count` entries is to go back far enough.
    """
    start, items = before(at.tail, count), list[FeedItem]()
    following, at_tail = start, False
    while not at_tail:
        page = feed.page(at.partition, start=following, limit=max(count, 1), data=data)
        items += page.items
        following, at_tail = page.next, page.at_tail or page.next >= at.tail
    return Recent(partition=at.partition, tail=at.tail, start=start, items=tuple(items[-count:]))


def before(at: Checkpoint, entries: int) -> Checkpoint:
    """So many entries back within the epoch; from its beginning, the beginning of the one before."""
    if at.offset:
        return Checkpoint.of(at.epoch, max(0, at.offset - entries))
    return Checkpoint.of(at.epoch - 1, 0) if at.epoch else BEGINNING
