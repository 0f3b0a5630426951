"""The latest items of a partition of the feed, within one page of it."""

from __future__ import annotations

from collections.abc import Collection

from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedItem, PartitionTail
from epochal.index.checkpoints import BEGINNING, Checkpoint


def latest(
    feed: FeedReader,
    at: PartitionTail,
    count: int,
    *,
    categories: Collection[str] | None = None,
    data: bool = False,
) -> tuple[FeedItem, ...]:
    """The last `count` items of the newest epoch, or of the one before where that has just begun, oldest first.

    An entry of the index has one event or more, so to go back `count` entries is to go back far enough. Those of other
    `categories` are left out of what is found.
    """
    following, items = before(at.tail, count), list[FeedItem]()
    at_tail = False
    while not at_tail:
        page = feed.page(at.partition, start=following, limit=max(count, 1), categories=categories, data=data)
        items += page.items
        following, at_tail = page.next, page.at_tail or page.next >= at.tail
    return tuple(items[-count:])


def before(at: Checkpoint, entries: int) -> Checkpoint:
    """So many entries back within the epoch; from its beginning, the beginning of the one before."""
    if at.offset:
        return Checkpoint.of(at.epoch, max(0, at.offset - entries))
    return Checkpoint.of(at.epoch - 1, 0) if at.epoch else BEGINNING
