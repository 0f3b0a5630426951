"""Reading the feed: from any checkpoint, by page, to the tail, or on and on.

A checkpoint stands between entries of the index, so a page ends with an entry: its limit says when to stop,
not where to cut. Whatever a filter drops, the checkpoint moves past it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from epochal.errors import InvalidInput
from epochal.feed.hydrating import bare_items, hydrated
from epochal.feed.results import FeedPage, PartitionTail, SpanPage
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.names import BASES
from epochal.index.walking import Stretch, Walk, step, tails
from epochal.model.names import category_of
from epochal.model.spans import Span
from epochal.store.driver import Driver
from epochal.store.streams import Streams

Predicate = Callable[[Span], bool]

POLL_SECONDS = 0.25
"""Between looks at the tail while waiting: half a read unit each."""


@dataclass(slots=True, kw_only=True)
class _Page:
    """A page in the making: what is `wanted`, up to and with the entry that reaches `limit`."""

    wanted: Predicate
    limit: int
    at: Checkpoint
    spans: list[Span] = field(default_factory=list)
    count: int = 0

    @property
    def full(self) -> bool:
        return self.count >= self.limit

    def take(self, stretch: Stretch) -> None:
        """Take in entries until full; `at` is then the checkpoint after the last one taken."""
        for entry, after in stretch.entries:
            kept = [span for span in entry.spans if self.wanted(span)]
            self.spans += kept
            self.count += sum(len(span.types) for span in kept)
            self.at = after
            if self.full:
                return
        self.at = stretch.walk.at


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedReader:
    """Reads the partitions of an index.

    Attributes:
        driver: runs requests on the index table.
        table: the index table.
        streams: where events are read from when data is asked for.
    """

    driver: Driver
    table: str
    streams: Streams | None = None

    def partitions(self) -> tuple[PartitionTail, ...]:
        """Every partition on record with its tail; none before an indexer has registered its source."""
        found = self.driver.run(tails(self.table, BASES))
        return tuple(PartitionTail(partition=partition, tail=tail) for partition, tail in found)

    def page(
        self,
        partition: int,
        *,
        start: Checkpoint = BEGINNING,
        limit: int = 1000,
        categories: Collection[str] | None = None,
        predicate: Predicate | None = None,
        data: bool = False,
        max_bytes: int | None = None,
        seconds: float = 10.0,
        wait: float = 0.0,
    ) -> FeedPage:
        """Items from `start` on: at least `limit` where there are as many, and all of the entry that reaches
        it.

        Args:
            categories: only streams of these; None for all.
            predicate: only spans that satisfy it.
            data: read the events too.
            max_bytes: of events; those beyond come as items without data, marked `omitted`.
            seconds: a page that is not full after so long ends, with the checkpoint reached.
            wait: seconds to wait for something to come where there is nothing.
        """
        source = self._source() if data else None
        page = self.spans(
            partition,
            start=start,
            limit=limit,
            predicate=_filter(categories, predicate),
            seconds=seconds,
            wait=wait,
        )
        spans = list(page.spans)
        items = bare_items(spans) if source is None else hydrated(spans, source, max_bytes)
        return FeedPage(items=tuple(items), next=page.next, at_tail=page.at_tail)

    def spans(
        self,
        partition: int,
        *,
        start: Checkpoint = BEGINNING,
        limit: int = 1000,
        predicate: Predicate = lambda _span: True,
        seconds: float = 10.0,
        wait: float = 0.0,
    ) -> SpanPage:
        """Spans from `start` on: at least `limit` events where there are as many, and all of the entry that
        reaches it. The arguments are those of `page`.
        """
        if limit < 1:
            raise InvalidInput("limit", "must be at least 1")
        ends, patience = self.driver.clock() + seconds, self.driver.clock() + wait
        walk = Walk(partition=partition, at=start)
        page = _Page(wanted=predicate, limit=limit, at=start)
        while True:
            stretch = self.driver.run(step(self.table, walk, limit - page.count))
            walk = stretch.walk
            page.take(stretch)
            now = self.driver.clock()
            if stretch.at_tail and not page.spans and now < patience:
                self.driver.sleep(min(POLL_SECONDS, patience - now))
            elif stretch.at_tail or page.full or now >= ends:
                at_tail = stretch.at_tail and page.at == walk.at
                return SpanPage(spans=tuple(page.spans), next=page.at, at_tail=at_tail)

    def read(
        self,
        partition: int,
        *,
        start: Checkpoint = BEGINNING,
        limit: int = 1000,
        categories: Collection[str] | None = None,
        predicate: Predicate | None = None,
        data: bool = False,
    ) -> Iterator[FeedPage]:
        """Pages from `start` to the tail. Keep a page's `next` once its items are handled, and resume from
        there.
        """
        at_tail = False
        while not at_tail:
            page = self.page(
                partition, start=start, limit=limit, categories=categories, predicate=predicate, data=data
            )
            start, at_tail = page.next, page.at_tail
            yield page

    def follow(
        self,
        partition: int,
        *,
        start: Checkpoint = BEGINNING,
        limit: int = 1000,
        categories: Collection[str] | None = None,
        predicate: Predicate | None = None,
        data: bool = False,
        wait: float = 20.0,
    ) -> Iterator[FeedPage]:
        """Pages from `start` on, for ever. At the tail a page comes when there is something, or empty after
        `wait`.
        """
        while True:
            page = self.page(
                partition,
                start=start,
                limit=limit,
                categories=categories,
                predicate=predicate,
                data=data,
                wait=wait,
            )
            start = page.next
            yield page

    def _source(self) -> Streams:
        if self.streams is None:
            raise InvalidInput("data", "needs a reader that was given the streams")
        return self.streams


def _filter(categories: Collection[str] | None, predicate: Predicate | None) -> Predicate:
    def wanted(span: Span) -> bool:
        in_category = categories is None or category_of(span.stream) in categories
        return in_category and (predicate is None or predicate(span))

    return wanted
