"""The latest items of a partition of the feed, within one page of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from epochal.feed.hydration import bare_items
from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedItem, PartitionTail
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.model.spans import Span

ALL: Final = 2**31
"""A page ends at the tail: read on from an entry, it would read the newest item of the index again."""


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
    `categories` are left out of what is found. Events are read of the last items alone.
    """
    if not at.tail:
        return ()
    start = before(at.tail, count)
    spans = feed.spans(at.partition, start=start, limit=ALL, categories=categories).spans
    last = _last(spans, count)
    return feed.items(at.partition, last) if data else tuple(bare_items(last))


def before(at: Checkpoint, entries: int) -> Checkpoint:
    """So many entries back within the epoch; from its beginning, the beginning of the one before."""
    if at.offset:
        return Checkpoint.of(at.epoch, max(0, at.offset - entries))
    return Checkpoint.of(at.epoch - 1, 0) if at.epoch else BEGINNING


def _last(spans: Sequence[Span], count: int) -> list[Span]:
    """The last so many events of spans."""
    kept: list[Span] = []
    for span in reversed(spans):
        if count <= 0:
            break
        kept.append(span.since(span.next - count))
        count -= len(kept[-1].types)
    return kept[::-1]
