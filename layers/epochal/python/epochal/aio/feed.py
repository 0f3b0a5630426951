"""The feed, awaited."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.aio.methods import iterates, reads
from epochal.feed.reader import FeedReader


@dataclass(frozen=True, slots=True)
class AsyncFeed:
    """The feed for asynchronous programs: each method is that of `FeedReader`, awaited, and raises what it does.

    Attributes:
        reader: of an `AsyncPlace`, or in memory.
    """

    reader: FeedReader

    partitions = reads(FeedReader.partitions, of="reader")
    page = reads(FeedReader.page, of="reader")
    spans = reads(FeedReader.spans, of="reader")
    events = iterates(FeedReader.events, of="reader")
    items = reads(FeedReader.items, of="reader")
    end_of = reads(FeedReader.end_of, of="reader")
    read = iterates(FeedReader.read, of="reader")
    follow = iterates(FeedReader.follow, of="reader")
    """A page that is waited for may be cancelled at any time."""
