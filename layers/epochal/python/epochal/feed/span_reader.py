"""Reads the spans of a partition page by page, and keeps what a request has returned beyond a page.

A request returns whole items of the index, each with many entries. A reader that continues takes the next entries from
these; one that stops after a page has read little in vain, because requests begin small and grow. On the way to the
tail, the next request can run while the reader works on the last page.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from math import inf
from operator import itemgetter
from typing import Final, NamedTuple

from epochal.errors import InvalidInput
from epochal.feed.filters import Predicate, accept_all
from epochal.feed.hydration import bare_items
from epochal.feed.results import PlacedRemoval, SpanPage
from epochal.feed.waiting import POLL_SECONDS, Pauses, wait_for_more
from epochal.index.checkpoints import Checkpoint
from epochal.index.entries import EntryPart
from epochal.index.feed_walk import FeedWalk, PlacedEntry, WalkPage, poll
from epochal.layout.changes import Span
from epochal.lazy_dataclasses import dataclass, field
from epochal.store.driver import Driver
from epochal.store.reading import Direction

FIRST_ITEMS: Final = 4
"""Items that the first request asks for, some 30 KB each; every further one asks for twice as many."""

MOST_ITEMS: Final = 1_024
"""A request is over at 1 MB in any case."""


class _TakenEntry(NamedTuple):
    """An entry of a page, and how many spans and removals the page has up to its end."""

    placed: PlacedEntry
    spans: int
    removals: int


@dataclass(slots=True, kw_only=True)
class _Page:
    """A page while it is read: the wanted spans, up to and including the entry that reaches `limit`."""

    predicate: Predicate
    removed: Predicate | None
    limit: int
    at: Checkpoint
    forward: bool
    created: bool = False
    spans: list[Span] = field(default_factory=list)
    removals: list[PlacedRemoval] = field(default_factory=list)
    count: int = 0
    taken: list[_TakenEntry] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self.count >= self.limit

    def take(self, placed: PlacedEntry) -> None:
        """Add the wanted spans and removals of an entry; `at` is then the checkpoint to continue from."""
        entry = placed.entry()
        if self.created:
            self._take_spans(entry.created)
        elif self.removed is not None and entry.removals:
            self._take_parts(entry.parts, self.removed)
        else:
            self._take_spans(entry.spans)
        self.taken.append(_TakenEntry(placed, len(self.spans), len(self.removals)))
        self.at = placed.after

    def _take_spans(self, spans: Sequence[Span]) -> None:
        """Add the wanted spans, in backward pages event by event."""
        chosen = spans if self.predicate is accept_all else [*filter(self.predicate, spans)]
        if not self.forward:
            chosen = [Span(item.stream, item.index, (item.type,)) for item in reversed(bare_items(chosen))]
        self.spans += chosen
        self.count += sum(map(len, map(itemgetter(2), chosen)))

    def _take_parts(self, parts: Sequence[EntryPart], removed: Predicate) -> None:
        """Add an entry's wanted spans and removals, in the page's direction."""
        for part in parts if self.forward else reversed(parts):
            if isinstance(part, Span):
                self._take_spans((part,))
            elif removed(Span(part.stream, part.next, ())):
                self.removals.append((len(self.spans), part))
                self.count += 1


@dataclass(slots=True, kw_only=True)
class SpanReader:
    """Reads the spans of a partition page by page, keeping what a request has returned beyond a page.

    Attributes:
        driver: runs requests.
        table: index table.
        walk: position after all that was read.
        left: entries that were read and not taken yet.
        at_tail: whether nothing lay beyond the walk.
        items: number of items that the next request asks for.
        ahead: runs requests in advance, one at a time.
        taken: entries of the last page.
        following: the entry after that page, if it was read already; else the page's last.
        pauses: pauses between looks at the tail, while it waits.
        seen: when the last consistent look ended.
    """

    driver: Driver
    table: str
    walk: FeedWalk
    left: deque[PlacedEntry] = field(default_factory=deque)
    at_tail: bool = False
    items: int = FIRST_ITEMS
    ahead: Executor | None = None
    taken: Sequence[_TakenEntry] = ()
    following: PlacedEntry | None = None
    pauses: Pauses = field(default_factory=Pauses)
    seen: float = -inf
    _coming: Future[WalkPage] | None = None

    @classmethod
    def begin(
        cls, driver: Driver, table: str, partition: int, start: Checkpoint, *, forward: bool = True
    ) -> SpanReader:
        """Build a reader at a checkpoint of a partition."""
        return cls(driver=driver, table=table, walk=FeedWalk(partition=partition, at=start, forward=forward))

    def spans(
        self,
        *,
        limit: int,
        predicate: Predicate,
        seconds: float,
        wait: float,
        removed: Predicate | None = None,
        created: bool = False,
    ) -> SpanPage:
        """Return the next page of spans: until `limit` is reached, the tail, or the end of the time allowed.

        Args:
            limit: number of events at which the page ends.
            predicate: filter of spans.
            seconds: time allowed for the page.
            wait: seconds to wait at the tail for something to come.
            removed: filter of removals, called with a span without events; None to leave removals out.
            created: whether to return only the first event of each stream.
        """
        if limit < 1:
            raise InvalidInput("limit", "must be at least 1")
        now, forward = self.driver.clock(), self.walk.forward
        ends, patience = now + seconds, now + wait
        page = _Page(
            predicate=predicate,
            removed=removed,
            limit=limit,
            at=self.walk.at,
            forward=forward,
            created=created,
        )
        # A reader that keeps waiting has just seen that nothing is new.
        looked = self.at_tail and now < min(patience, self.seen + POLL_SECONDS)
        while True:
            if not (self.left or looked):
                self._read_on()
            looked = False
            while self.left and not page.full:
                page.take(self.left.popleft())
            if not self.left:
                page.at = self.walk.at
            at_tail, now = self.at_tail and not self.left, self.driver.clock()
            if at_tail and not page.count and now < patience and forward:
                looked = self._wait(patience)
                patience = now if looked and not self.left else patience
            elif at_tail or page.full or now >= ends:
                self.taken = page.taken
                self.following = self.left[0] if self.left else self.last
                return SpanPage(
                    spans=tuple(page.spans), next=page.at, at_tail=at_tail, removals=tuple(page.removals)
                )

    @property
    def first(self) -> PlacedEntry | None:
        """First entry of the last page."""
        return self.taken[0].placed if self.taken else None

    @property
    def last(self) -> PlacedEntry | None:
        """Last entry of the last page."""
        return self.taken[-1].placed if self.taken else None

    def give_back(self, page: SpanPage, count: int) -> SpanPage:
        """Return the page's first `count` entries as a page; put the others back for the next page."""
        if count == len(self.taken):
            return page
        self.left.extendleft(entry.placed for entry in reversed(self.taken[count:]))
        self.taken, self.following = self.taken[:count], self.left[0]
        end = self.taken[-1]
        return SpanPage(
            spans=page.spans[: end.spans],
            next=end.placed.after,
            at_tail=False,
            removals=page.removals[: end.removals],
        )

    def entries(
        self,
        *,
        limit: int,
        predicate: Predicate,
        seconds: float,
        wait: float,
        removed: Predicate | None = None,
    ) -> Iterator[SpanPage]:
        """Yield a page for each entry with wanted events, until the tail, the limit or the time is reached.

        An entry without wanted events joins the next.
        """
        if limit < 1:
            raise InvalidInput("limit", "must be at least 1")
        ends, count = self.driver.clock() + seconds, 0
        while True:
            page = self.spans(
                limit=1, predicate=predicate, seconds=ends - self.driver.clock(), wait=wait, removed=removed
            )
            yield page
            count += sum(len(span.types) for span in page.spans) + len(page.removals)
            if page.at_tail or count >= limit or self.driver.clock() >= ends:
                return
            wait = 0.0

    def _read_on(self) -> None:
        """Take the result of the request that was made in advance, or make one."""
        self._accept_page(self._request() if self._coming is None else self._coming.result())

    def _wait(self, patience: float) -> bool:
        """Wait at the tail, sharing polls with other readers there; return whether nothing has come."""
        self._accept_page(
            wait_for_more(
                self.driver,
                (self.table, self.walk.partition, self.walk.at),
                self.pauses,
                patience,
                self._look,
            )
        )
        return self.at_tail

    def _look(self, consistent: bool) -> WalkPage:
        """Read once at the tail for new entries."""
        page = self._request(consistent=consistent)
        self.walk = page.walk
        return page

    def _accept_page(self, page: WalkPage) -> None:
        """Keep the entries of a request's page, and send the next request in advance if allowed."""
        self.walk, self.at_tail = page.walk, page.at_tail
        if page.placed:
            self.pauses = Pauses()
        elif page.at_tail:
            self.seen, self.pauses.weight = self.driver.clock(), page.weight
        self.left.extend(page.placed)
        self.items = min(2 * self.items, MOST_ITEMS)
        # What comes after the tail is not there yet: it is asked for when it is wanted.
        ahead = None if self.at_tail else self.ahead
        self._coming = None if ahead is None else ahead.submit(self._request)

    def _request(self, *, consistent: bool = True) -> WalkPage:
        """Read the next entries of the index."""
        return self.driver.run(poll(self.table, self.walk, self.items, consistent=consistent))


def is_forward(direction: Direction) -> bool:
    """Return whether a direction is forward; raise `InvalidInput` unless it is forward or backward."""
    if direction not in ("forward", "backward"):
        raise InvalidInput("direction", "must be forward or backward")
    return direction == "forward"
