"""Reading a stream, forward or backward, some pages at a time, complete or saying where it stopped.

The last page says what the read is of: its version is the end, and its own events need no further request. Every page
before it is full, and no longer changes except that it is pruned; so each index below is in exactly one page, which
begins at or before it and ends where the next begins.

    a page lacks events at its beginning          they were pruned: the read goes on above them
    a page ends before the next one begins        it has grown since it was read: it is read again
    no page holds the event                       corruption

Pages are pruned oldest first, so everything below an event that was pruned is gone, too. What a read passes over it
shows: its cursor moves on without spans, and the low-water mark of its head with it.

A read is a value: cursors can be kept and resumed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from epochal.errors import CorruptData
from epochal.layout.streams import ReadPart
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.versions import MAX_VERSION
from epochal.pages.items import Page, PageSpan, page_key, read_page
from epochal.plan.batches import side_by_side
from epochal.plan.ops import Get, Query, Steps
from epochal.plan.values import Item, number

SHORT: Final = 16
"""Pages that a read from the beginning asks for at once: of most streams that is all there is, in one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where a read of the stream whose last page is `head` has got to.

    Attributes:
        at: forward, the next index wanted; backward, the index after the next one wanted.
        located: forward, a page begins at `at`; otherwise the one that holds it must be found first.
        ahead: forward, pages that have been read already.
        pages, events: full pages that have been passed, and what they held: how many pages hold what is wanted.
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
        """Nothing is left to read."""
        return self.at >= self.head.version if self.forward else self.at <= self.head.low_water

    def pages_of(self, limit: int | None) -> int | None:
        """Pages to ask for where so many events are wanted. One has an event at least, and dozens of small ones."""
        if limit is None:
            return None
        if not self.events:
            return min(SHORT, limit)
        # Two more: pages differ, and a kilobyte more costs less than a request more.
        return min(limit, limit * self.pages // self.events + 2)

    def passing(self, pages: Sequence[Page], at: int, mark: int) -> Cursor:
        """Having passed these, of which the last one of all tells nothing: it may have been begun just now.

        Args:
            mark: everything below is found to be pruned.
        """
        full = [page.version - page.index for page in pages if page.full]
        head = self.head if mark == self.head.low_water else replace(self.head, low_water=mark)
        return Cursor(
            head=head, at=at, forward=self.forward, located=self.forward,
            pages=self.pages + len(full), events=self.events + sum(full),
        )  # fmt: skip


Part = ReadPart[PageSpan, Cursor]


def load_head(table: str, stream: str, *, consistent: bool = True) -> Steps[Page | None]:
    """The last page, or where the read need not be consistent one that has been; None where the stream does not exist.

    A page that is full stays as it is: an append on one that is the last no more finds another where it would begin.
    """
    reply = yield query(table, stream, 0, MAX_VERSION, forward=False, limit=1, consistent=consistent)
    return (yield from whole(read_page(reply.items[0], table))) if reply.items else None


def last_pages(table: str, streams: Collection[str]) -> Steps[dict[str, Page | None]]:
    """The last page of each stream, read side by side; its unfolds may be elsewhere."""
    replies = yield from side_by_side(
        query(table, stream, 0, MAX_VERSION, forward=False, limit=1) for stream in streams
    )
    return {
        stream: read_page(reply.items[0], table) if reply.items else None
        for stream, reply in zip(streams, replies, strict=True)
    }


def load_whole(table: str, stream: str, *, consistent: bool = True, most: int = SHORT) -> Steps[Page | None]:
    """`load_head`, with the first pages of the stream, which of most are all."""
    reply = yield query(table, stream, 0, MAX_VERSION, limit=most, consistent=consistent)
    if not reply.items:
        return None
    if reply.last is None:
        before = tuple(sound(table, reply.items[:-1]))
        return (yield from whole(read_page(reply.items[-1], table, before)))
    head = yield from load_head(table, stream, consistent=consistent)
    return head and (yield from whole(replace(head, before=tuple(sound(table, reply.items)))))


def load_page(table: str, stream: str, index: int) -> Steps[Page | None]:
    """The page that begins at `index`."""
    reply = yield Get(table=table, key=page_key(stream, index))
    return None if reply.item is None else read_page(reply.item, table)


def whole(head: Page) -> Steps[Page]:
    """A last page that was read, with its unfolds, where another page has them.

    That page is full, and loses them only once they count no more: then the last page is another, and is read again.
    """
    while True:
        unfolds_at = head.unfolds_at
        if unfolds_at is None or head.found:
            return head
        holder = next((page for page in head.before if page.index == unfolds_at and page.full), None)
        if holder is None:
            # By a query, since not all who read streams may get items.
            reply = yield query(head.table, head.stream, unfolds_at, unfolds_at)
            holder = next((read_page(item, head.table) for item in reply.items), None)
        if holder is not None and holder.unfolds:
            return replace(head, found=holder.unfolds)
        fresh = yield query(head.table, head.stream, 0, MAX_VERSION, forward=False, limit=1)
        last = next((read_page(item, head.table) for item in fresh.items), None)
        if last is None or last.state == head.state:
            raise CorruptData(f"{head.stream}: page {head.index}: its unfolds are not on page {unfolds_at}")
        head = last


def begin(
    table: str, stream: str, start: int | None, *, forward: bool = True, limit: int | None = None
) -> Steps[Cursor | None]:
    """Read the last page and stand before event `start`, or before all of them. None: there is no such stream.

    Args:
        limit: events wanted; more than what holds them is not read.
    """
    if forward and not start:
        # A page has an event at least; one more shows that a stream of few pages ends there.
        return (yield from _begin_at_first(table, stream, SHORT if limit is None else min(SHORT, limit + 1)))
    head = yield from load_head(table, stream)
    return None if head is None else stand(head, start, forward=forward)


def stand(head: Page, start: int | None, *, forward: bool = True) -> Cursor:
    """Stand before event `start` of a stream whose last page is in hand."""
    if forward:
        index = max(start or 0, head.low_water)
        ahead = tuple([page for page in head.before if page.version > index])
        return Cursor(head=head, at=index, forward=True, located=index == 0, ahead=ahead)
    return Cursor(
        head=head, at=head.version if start is None else min(start + 1, head.version), forward=False
    )


def advance(table: str, cursor: Cursor, limit: int | None = None, *, consistent: bool = True) -> Steps[Part]:
    """One part more: one request, or none, and another only to read again what has grown.

    Args:
        limit: events wanted; more or fewer may come, since pages are read whole, and it is guessed how many have them.
        consistent: False reads pages as they have been, which may have less; then again, as they are.

    Raises:
        CorruptData: an event is in no page, and was not pruned.
    """
    if cursor.at_end:
        return ReadPart(spans=(), cursor=cursor)
    move = _forward if cursor.forward else _backward
    part = yield from move(table, cursor, limit, consistent=consistent)
    if part is None and not consistent:
        part = yield from move(table, cursor, limit, consistent=True)
    if part is None:
        next_index = cursor.at if cursor.forward else cursor.at - 1
        raise CorruptData(f"{cursor.head.stream}: event {next_index} is in no page, and was not pruned")
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
    """Pages that begin at these indices."""
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
    return stand(head if mark == head.low_water else replace(head, low_water=mark), None)


def _forward(table: str, cursor: Cursor, limit: int | None, *, consistent: bool) -> Steps[Part | None]:
    stream, end = cursor.head.stream, cursor.head.index
    part = _onward(cursor, cursor.ahead)
    if cursor.at >= end and part is None:
        # The last page has all that is left, so that what follows asks for pages before it alone.
        return _onward(cursor, (cursor.head,))
    if part is None and cursor.located:
        most = cursor.pages_of(limit)
        reply = yield query(table, stream, cursor.at, end - 1, limit=most, consistent=consistent)
        part = _onward(cursor, sound(table, reply.items))
    if part is None:
        reply = yield query(table, stream, 0, cursor.at, forward=False, limit=1, consistent=consistent)
        part = _onward(cursor, sound(table, reply.items))
    return part


def _onward(cursor: Cursor, pages: Iterable[Page]) -> Part | None:
    """What pages hold from the cursor on, up to the first that does not go on where the last one ended."""
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
    return _downward(cursor, sound(table, reply.items))


def _downward(cursor: Cursor, pages: Iterable[Page]) -> Part | None:
    """A part of the events below the cursor; where events of a page are gone, all below are."""
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


def sound(table: str, items: Iterable[Item]) -> Iterator[Page]:
    """Pages up to one that cannot be read, which is an error once it comes first."""
    for position, item in enumerate(items):
        try:
            page = read_page(item, table)
        except CorruptData:
            if position:
                return
            raise
        yield page
