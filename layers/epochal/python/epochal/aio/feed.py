"""The feed, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from epochal.aio.bridge import each, run
from epochal.index.checkpoints import BEGINNING, Checkpoint

if TYPE_CHECKING:
    from epochal.feed.categories import Predicate
    from epochal.feed.reader import FeedReader, PageOptions
    from epochal.feed.results import FeedEvent, FeedItem, FeedPage, PartitionTail, SpanPage
    from epochal.model.spans import Span


@dataclass(frozen=True, slots=True)
class AsyncFeed:
    """The feed for asynchronous programs: each method is that of `FeedReader`, awaited, and raises what it does.

    Attributes:
        reader: of an `AsyncPlace`, or in memory.
    """

    reader: FeedReader

    async def partitions(self) -> tuple[PartitionTail, ...]:
        """`FeedReader.partitions`."""
        return await run(self.reader.partitions)

    async def page(
        self,
        partition: int,
        *,
        start: Checkpoint = BEGINNING,
        seconds: float = 10.0,
        wait: float = 0.0,
        **options: Unpack[PageOptions],
    ) -> FeedPage:
        """`FeedReader.page`."""
        return await run(self.reader.page, partition, start=start, seconds=seconds, wait=wait, **options)

    async def spans(
        self,
        partition: int,
        *,
        start: Checkpoint = BEGINNING,
        limit: int = 1000,
        categories: Collection[str] | None = None,
        predicate: Predicate | None = None,
        seconds: float = 10.0,
        wait: float = 0.0,
    ) -> SpanPage:
        """`FeedReader.spans`."""
        return await run(
            self.reader.spans,
            partition,
            start=start,
            limit=limit,
            categories=categories,
            predicate=predicate,
            seconds=seconds,
            wait=wait,
        )

    async def events(self, partition: int, stream: str, first: int, end: int) -> AsyncIterator[FeedEvent]:
        """`FeedReader.events`."""
        async for event in each(self.reader.events, partition, stream, first, end):
            yield event

    async def items(self, partition: int, spans: Sequence[Span]) -> tuple[FeedItem, ...]:
        """`FeedReader.items`."""
        return await run(self.reader.items, partition, spans)

    async def end_of(self, partition: int, stream: str, since: int) -> int:
        """`FeedReader.end_of`."""
        return await run(self.reader.end_of, partition, stream, since)

    async def read(
        self, partition: int, *, start: Checkpoint = BEGINNING, **options: Unpack[PageOptions]
    ) -> AsyncIterator[FeedPage]:
        """`FeedReader.read`: pages to the tail."""
        async for page in each(self.reader.read, partition, start=start, **options):
            yield page

    async def follow(
        self,
        partition: int,
        *,
        start: Checkpoint = BEGINNING,
        wait: float = 20.0,
        **options: Unpack[PageOptions],
    ) -> AsyncIterator[FeedPage]:
        """`FeedReader.follow`: pages for ever. One that is waited for may be cancelled at any time."""
        async for page in each(self.reader.follow, partition, start=start, wait=wait, **options):
            yield page
