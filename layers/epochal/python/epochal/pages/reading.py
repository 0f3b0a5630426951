"""Reading a stream forward or backward, some pages at a time.

A read begins with the last page: its version is the end of the read, and its own events need no further request. Every
page before it is full, and changes only when it is pruned. So each lower index is in exactly one page, which begins at
or below that index and ends where the next page begins.

    a page lacks its first events                 they were pruned: the read goes on after them
    a page ends before the next one begins        it has grown since it was read: it is read again
    no page contains the event                    the stream is corrupt

Pages are pruned oldest first, so all events below a pruned event are gone, too. A read that passes over pruned events
shows this: the cursor moves on without spans, and the low-water mark of its head rises.

A cursor is an immutable value, which can be kept and resumed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from epochal.errors import CorruptData
from epochal.layout.streams import ReadPart
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.tokens import MAX_VERSION
from epochal.pages.items import Page, PageSpan, page_key, read_page
from epochal.plan.batches import get_all, side_by_side
from epochal.plan.ops import Get, Query, Steps
from epochal.plan.values import Item, number

SHORT: Final = 16
"""Number of pages that a read from the beginning requests at once: all pages of most streams."""

RECENT: Final = 4
"""Number of pages that a load of the newest events requests at once. A page is seldom larger than the KB that a write
unit pays for, so four of them cost one read unit, as one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The position of a read in a stream.

    Attributes:
        head: last page of the stream, at which the read ends or began.
        at: forward, the index of the next event to read; backward, the index after it.
        forward: whether the read goes to higher indices.
        located: forward, whether a page begins at `at`; if not, the page with that event must be found first.
        ahead: forward, pages that have been read already and follow the cursor.
        pages, events: number of full pages that the read has passed, and of their events, to estimate later requests.
    """

    head: Page
    at: int
    forward: bool
    located: bool = False
    ahead: tuple[Page, ...] = ()
    pages: int = 0
    events: int = 0

    @property
    def at_end(self) -> bool:
        """Whether no event is left to read."""
        return self.at >= self.head.version if self.forward else self.at <= self.head.low_water

    def pages_of(self, limit: int | None) -> int | None:
        """Estimate the number of pages to request for `limit` events; None if there is no limit."""
        if limit is None:
            return None
        if not self.events:
            return min(SHORT, limit)
        # Two more than the average suggests: pages differ, and a kilobyte costs less than another request.
        return min(limit, limit * self.pages // self.events + 2)

    def passing(self, pages: Sequence[Page], index: int, mark: int) -> Cursor:
        """Return the cursor after reading these pages, at index `index`.

        Only full pages count for the estimate of later requests: the last page may have been begun just now.

        Args:
            pages: the pages that were read.
            index: the new index, as in `Cursor.at`.
            mark: index below which all events turned out to be pruned.
        """
        full = [page.version - page.index for page in pages if page.full]
        head = self.head if mark == self.head.low_water else replace(self.head, low_water=mark)
        return Cursor(
            head=head, at=index, forward=self.forward, located=self.forward,
            pages=self.pages + len(full), events=self.events + sum(full),
        )  # fmt: skip


Part = ReadPart[PageSpan, Cursor]


def load_head(table: str, stream: str, *, consistent: bool = True) -> Steps[Page | None]:
    """Read the last page of a stream, with its unfolds; None if the stream does not exist.

    An inconsistent read may return an earlier last page. That is safe: an append on it is refused, since the page has
    changed or the next one exists.
    """
    reply = yield query(table, stream, 0, MAX_VERSION, forward=False, limit=1, consistent=consistent)
    return (yield from load_missing_unfolds(read_page(reply.items[0], table))) if reply.items else None


def load_recent(
    table: str, stream: str, *, consistent: bool = True, most: int = RECENT
) -> Steps[Page | None]:
    """Read a stream's last page with those before it, at most `most` in all; None without a stream."""
    reply = yield query(table, stream, 0, MAX_VERSION, forward=False, limit=most, consistent=consistent)
    if not reply.items:
        return None
    head, *before = readable_pages(table, reply.items)
    return (
        yield from load_missing_unfolds(replace(head, before=tuple(reversed(before))) if before else head)
    )


def last_pages(table: str, streams: Collection[str]) -> Steps[dict[str, Page | None]]:
    """Return each stream's last page, or None, read in parallel without unfolds that are on other pages."""
    replies = yield from side_by_side(
        query(table, stream, 0, MAX_VERSION, forward=False, limit=1) for stream in streams
    )
    return {
        stream: read_page(reply.items[0], table) if reply.items else None
        for stream, reply in zip(streams, replies, strict=True)
    }


def load_whole(table: str, stream: str, *, consistent: bool = True, most: int = SHORT) -> Steps[Page | None]:
    """Read a stream's last page, with up to `most` first pages in `before`; None if there is no stream.

    The last page is read with its unfolds, as by `load_head`. Most streams have no more pages than that, so one request
    is enough.
    """
    reply = yield query(table, stream, 0, MAX_VERSION, limit=most, consistent=consistent)
    if not reply.items:
        return None
    if reply.last is None:
        before = tuple(readable_pages(table, reply.items[:-1]))
        return (yield from load_missing_unfolds(read_page(reply.items[-1], table, before)))
    head = yield from load_head(table, stream, consistent=consistent)
    return head and (
        yield from load_missing_unfolds(replace(head, before=tuple(readable_pages(table, reply.items))))
    )


def load_page(table: str, stream: str, index: int) -> Steps[Page | None]:
    """Read the page whose first event has index `index`; None if there is none."""
    reply = yield Get(table=table, key=page_key(stream, index))
    return None if reply.item is None else read_page(reply.item, table)


def load_missing_unfolds(head: Page) -> Steps[Page]:
    """Return a last page with its unfolds, which are read if another page has them.

    The other page loses the unfolds only when they are out of date. Then the stream has a new last page, which is read
    and returned instead.

    Raises:
        CorruptData: the other page has no unfolds, and the last page has not changed.
    """
    while True:
        unfolds_at = head.unfolds_at
        if unfolds_at is None or head.found:
            return head
        holder = next((page for page in head.before if page.index == unfolds_at and page.full), None)
        if holder is None:
            # This is a query, since not all readers of streams may use GetItem.
            reply = yield query(head.table, head.stream, unfolds_at, unfolds_at)
            holder = next((read_page(item, head.table) for item in reply.items), None)
        if holder is not None and holder.unfolds:
            return replace(head, found=holder.unfolds)
        fresh = yield query(head.table, head.stream, 0, MAX_VERSION, forward=False, limit=1)
        last = next((read_page(item, head.table) for item in fresh.items), None)
        if last is None or last.state == head.state:
            raise CorruptData(f"{head.stream}: page {head.index}: page {unfolds_at} lacks its unfolds")
        head = last


def begin_read(
    table: str, stream: str, start: int | None, *, forward: bool = True, limit: int | None = None
) -> Steps[Cursor | None]:
    """Read the last page of a stream and return a cursor at event `start`; None if there is no stream.

    Args:
        start: index of the first event to read; None is the first event of the stream, or the last one backward.
        forward: whether the read goes to higher indices.
        limit: number of events to read, which limits the pages that are requested.
    """
    if forward and not start:
        # A page has at least one event. One page more shows whether a short stream ends there.
        return (yield from _begin_at_first(table, stream, SHORT if limit is None else min(SHORT, limit + 1)))
    head = yield from load_head(table, stream)
    return None if head is None else cursor_at(head, start, forward=forward)


def is_batched(start: int) -> bool:
    """Whether a read from event `start` on may be begun by `begin_batch`: only the first page has a known key."""
    return start == 0


def begin_batch(table: str, starts: Mapping[str, int]) -> Steps[dict[str, Cursor]]:
    """Read the first pages of streams in one batch; return cursors for streams that have no other page.

    A page that is not full is the last one. Whether a full page is, only a query shows. A page that cannot be read is
    left to the query, too.

    Args:
        starts: by stream, index of the first event to read.
    """
    cursors: dict[str, Cursor] = {}
    for item in (yield from get_all(table, [page_key(stream, 0) for stream in starts])):
        try:
            page = read_page(item, table)
        except CorruptData:
            continue
        if not page.full:
            cursors[page.stream] = cursor_at(page, starts[page.stream])
    return cursors


def cursor_at(head: Page, start: int | None, *, forward: bool = True) -> Cursor:
    """Return a cursor at event `start` of a stream whose last page was read.

    A `start` of None is the first event of the stream, or the last one if the read goes backward.
    """
    if forward:
        index = max(start or 0, head.low_water)
        ahead = tuple([page for page in head.before if page.version > index])
        return Cursor(head=head, at=index, forward=True, located=index == 0, ahead=ahead)
    return Cursor(
        head=head, at=head.version if start is None else min(start + 1, head.version), forward=False
    )


def advance(table: str, cursor: Cursor, limit: int | None = None, *, consistent: bool = True) -> Steps[Part]:
    """Return the next part of a stream and the cursor after it; raise `CorruptData` if events are missing.

    Most parts take one request or none. A further request is made only for a page that must be found or that has grown
    since it was read.

    Args:
        limit: number of events to read. The part may have more or fewer, since whole pages are read, and their number
            is estimated.
        consistent: False allows an eventually consistent read. If that lacks the events, a consistent one follows.

    Raises:
        CorruptData: an event is in no page, but was not pruned.
    """
    if cursor.at_end:
        return ReadPart(spans=(), cursor=cursor)
    move = _forward if cursor.forward else _backward
    part = yield from move(table, cursor, limit, consistent=consistent)
    if part is None and not consistent:
        part = yield from move(table, cursor, limit, consistent=True)
    if part is None:
        next_index = cursor.at if cursor.forward else cursor.at - 1
        raise CorruptData(f"{cursor.head.stream}: event {next_index} is in no page, but was not pruned")
    return part


def query(
    table: str,
    stream: str,
    lowest: int,
    highest: int,
    *,
    forward: bool = True,
    limit: int | None = None,
    consistent: bool = True,
) -> Query:
    """Make the query for the pages of a stream that begin at the indices `lowest` to `highest`."""
    return Query(
        table=table,
        partition=("p", page_key(stream, 0)["p"]),
        sort=("i", number(lowest), number(highest)),
        forward=forward,
        limit=limit,
        consistent=consistent,
    )


def _begin_at_first(table: str, stream: str, most: int) -> Steps[Cursor | None]:
    head = yield from load_whole(table, stream, most=most)
    if head is None:
        return None
    mark = max(page.low_water for page in (*head.before[:1], head))
    return cursor_at(head if mark == head.low_water else replace(head, low_water=mark), None)


def _forward(table: str, cursor: Cursor, limit: int | None, *, consistent: bool) -> Steps[Part | None]:
    """Read the part that begins at the cursor; None if no page has the next event."""
    stream, end = cursor.head.stream, cursor.head.index
    part = _onward(cursor, cursor.ahead)
    if cursor.at >= end and part is None:
        # All events left are on the last page, so the queries below are only for earlier pages.
        return _onward(cursor, (cursor.head,))
    if part is None and cursor.located:
        most = cursor.pages_of(limit)
        reply = yield query(table, stream, cursor.at, end - 1, limit=most, consistent=consistent)
        part = _onward(cursor, readable_pages(table, reply.items))
    if part is None:
        reply = yield query(table, stream, 0, cursor.at, forward=False, limit=1, consistent=consistent)
        part = _onward(cursor, readable_pages(table, reply.items))
    return part


def _onward(cursor: Cursor, pages: Iterable[Page]) -> Part | None:
    """Make the part after the cursor from consecutive pages; None if they lack the next event."""
    index, mark, version = cursor.at, cursor.head.low_water, cursor.head.version
    spans: list[PageSpan] = []
    passed: list[Page] = []
    for page in pages:
        if not page.index <= index < page.version:
            break
        span = page.span.since(index).before(version)
        if span.base > index:
            mark = min(span.base, version)
        if span.base < span.next:
            spans.append(span)
        passed.append(page)
        index = page.version
    if index == cursor.at:
        return None
    return ReadPart(spans=tuple(spans), cursor=cursor.passing(passed, min(index, version), mark))


def _backward(table: str, cursor: Cursor, limit: int | None, *, consistent: bool) -> Steps[Part | None]:
    if cursor.at > cursor.head.index:
        return _downward(cursor, (cursor.head,))
    stream, last = cursor.head.stream, cursor.at - 1
    most = cursor.pages_of(limit)
    reply = yield query(table, stream, 0, last, forward=False, limit=most, consistent=consistent)
    return _downward(cursor, readable_pages(table, reply.items))


def _downward(cursor: Cursor, pages: Iterable[Page]) -> Part | None:
    """Make the part below the cursor from consecutive pages; None if no page continues there.

    If events of a page are pruned, all events below them are, too.
    """
    index, mark = cursor.at, cursor.head.low_water
    spans: list[PageSpan] = []
    passed: list[Page] = []
    for page in pages:
        if not page.index < index <= page.version or mark >= index:
            break
        span = page.span.since(mark).before(index)
        if span.base < span.next:
            spans.append(span)
        passed.append(page)
        lowest = page.span.base
        if lowest > page.index:
            mark = max(mark, min(lowest, index))
        index = max(page.index, mark)
    if index == cursor.at and mark == cursor.head.low_water:
        return None
    return ReadPart(spans=tuple(spans), cursor=cursor.passing(passed, index, mark))


def readable_pages(table: str, items: Iterable[Item]) -> Iterator[Page]:
    """Decode pages up to one that is corrupt; raise `CorruptData` only if that is the first page."""
    for position, item in enumerate(items):
        try:
            page = read_page(item, table)
        except CorruptData:
            if position:
                return
            raise
        yield page
