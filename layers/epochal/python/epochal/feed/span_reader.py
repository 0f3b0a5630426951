"""Reading a partition: spans page by page, and between pages what a request has brought beyond the last.

A request brings whole items of the index, each with many entries. A reader that goes on takes them from here; one that
leaves after a page has read little in vain, because requests begin small and grow. On the way to the tail the next
request can be made while the reader works on the last one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Final

from epochal.errors import InvalidInput
from epochal.feed.categories import Predicate
from epochal.feed.results import SpanPage
from epochal.index.checkpoints import Checkpoint
from epochal.index.feed_walk import PlacedEntry, Walk, WalkPage, step
from epochal.model.spans import Span
from epochal.store.driver import Driver

POLL_SECONDS: Final = 0.25
"""Between looks at the tail while waiting: half a read unit each."""

FIRST_ITEMS: Final = 4
"""Items that the first request asks for, some 30 KB each; every further one asks for twice as many."""

MOST_ITEMS: Final = 1_024
"""A request is over at 1 MB in any case."""


@dataclass(slots=True, kw_only=True)
class _Page:
    """A page in the making: what is `wanted`, up to and with the entry that reaches `limit`."""

    wanted: Predicate
    limit: int
    at: Checkpoint
    spans: list[Span] = field(default_factory=list)
    count: int = 0
    first: PlacedEntry | None = None
    last: PlacedEntry | None = None

    @property
    def full(self) -> bool:
        return self.count >= self.limit

    def take(self, placed: PlacedEntry) -> None:
        """Take in an entry; `at` is then the checkpoint after it."""
        self.first, self.last = self.first or placed, placed
        kept = [span for span in placed.entry().spans if self.wanted(span)]
        self.spans += kept
        self.count += sum(len(span.types) for span in kept)
        self.at = placed.after


@dataclass(slots=True, kw_only=True)
class SpanReader:
    """Where a reader of the index in `table` has got to.

    Attributes:
        walk: behind all that was read.
        left: entries that were read and not taken yet.
        at_tail: nothing lay beyond the walk.
        items: of the index that the next request asks for.
        ahead: where requests are made that nobody waits for yet; one at a time.
        first: the first entry of the last page.
        following: the one after that page, where it is here already; else the page's last.
    """

    driver: Driver
    table: str
    walk: Walk
    left: deque[PlacedEntry] = field(default_factory=deque)
    at_tail: bool = False
    items: int = FIRST_ITEMS
    ahead: Executor | None = None
    first: PlacedEntry | None = None
    following: PlacedEntry | None = None
    _coming: Future[WalkPage] | None = None

    @classmethod
    def begin(cls, driver: Driver, table: str, partition: int, start: Checkpoint) -> SpanReader:
        """A passage that nothing has been read of."""
        return cls(driver=driver, table=table, walk=Walk(partition=partition, at=start))

    def spans(self, *, limit: int, wanted: Predicate, seconds: float, wait: float) -> SpanPage:
        """The next page: until `limit` is reached, the tail, or the end of the time allowed."""
        if limit < 1:
            raise InvalidInput("limit", "must be at least 1")
        ends, patience = self.driver.clock() + seconds, self.driver.clock() + wait
        page = _Page(wanted=wanted, limit=limit, at=self.walk.at)
        while True:
            if not self.left:
                self._read_on()
            while self.left and not page.full:
                page.take(self.left.popleft())
            if not self.left:
                page.at = self.walk.at
            at_tail, now = self.at_tail and not self.left, self.driver.clock()
            if at_tail and not page.spans and now < patience:
                self.driver.sleep(min(POLL_SECONDS, patience - now))
            elif at_tail or page.full or now >= ends:
                self.first, self.following = page.first, self.left[0] if self.left else page.last
                return SpanPage(spans=tuple(page.spans), next=page.at, at_tail=at_tail)

    def entries(self, *, limit: int, wanted: Predicate, seconds: float, wait: float) -> Iterator[SpanPage]:
        """`spans` entry by entry, each with the checkpoint after it; what nothing is wanted of joins the next."""
        if limit < 1:
            raise InvalidInput("limit", "must be at least 1")
        ends, count = self.driver.clock() + seconds, 0
        while True:
            found = self.spans(limit=1, wanted=wanted, seconds=ends - self.driver.clock(), wait=wait)
            yield found
            count += sum(len(span.types) for span in found.spans)
            if found.at_tail or count >= limit or self.driver.clock() >= ends:
                return
            wait = 0.0

    def _read_on(self) -> None:
        page = self._request() if self._coming is None else self._coming.result()
        self.walk, self.at_tail = page.walk, page.at_tail
        self.left.extend(page.placed)
        self.items = min(2 * self.items, MOST_ITEMS)
        # What comes after the tail is not there yet: it is asked for when it is wanted.
        ahead = None if self.at_tail else self.ahead
        self._coming = None if ahead is None else ahead.submit(self._request)

    def _request(self) -> WalkPage:
        return self.driver.run(step(self.table, self.walk, self.items))
