"""One attempt to append on what is known of the last page: the write that goes out, and what blocked it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from epochal.errors import InvalidInput, TooLarge
from epochal.layout.expectations import version_of
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.reading import load_head, load_page, openable, whole
from epochal.layout.pages.writes import (
    Planned,
    begin,
    can_be_left,
    close,
    extend,
    index_of,
    is_own,
    kept_by_next,
    place_of,
    token_of,
)
from epochal.layout.streams import Known
from epochal.model.versions import MAX_VERSION, Token
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Overflow, Refusal, Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A write did not go through.

    Attributes:
        page: what stood in its way.
        planned: the write; None where nothing of the batch was sent.
    """

    page: Page | None
    planned: Planned | None = None
    ambiguous: bool = False


def write(table: str, batch: Packed, known: Known[Page]) -> Steps[Planned | Blocked]:
    """Append on exactly what is known: what was written, or what blocked it."""
    planned = yield from next_write(table, batch, known)
    if isinstance(planned, Blocked):
        return planned
    reply = yield planned.write
    if isinstance(reply, Overflow) and can_be_left(known):
        planned = yield from next_write(table, batch, known, extending=False)
        if isinstance(planned, Blocked):
            return planned
        reply = yield planned.write
    return sent(planned, reply)


def next_write(
    table: str, batch: Packed, known: Known[Page], *, extending: bool = True
) -> Steps[Planned | Blocked]:
    """The write that appends on what is known, once all that it needs is read, and the page before it is closed.

    Args:
        extending: the page may be extended; False where that has turned out to be too much for it.
    """
    if version_of(known) + batch.count > MAX_VERSION:
        raise InvalidInput("events", f"a stream holds at most {MAX_VERSION:,} events")
    if known is None:
        return begin(table, batch, None, b"")
    if isinstance(known, Page) and known.deleted:
        return Blocked(page=known)
    planned = extend(table, batch, known) if extending else None
    if planned is not None:
        return planned
    if is_own(table, batch.stream, known):
        return (yield from _begin_after(table, batch, known))
    head = yield from load_head(table, batch.stream)
    if head is None or (head.version, head.etag) != (known.version, known.etag):
        return Blocked(page=head)
    return (yield from next_write(table, batch, head, extending=extending))


def sent(planned: Planned, reply: Done | Refusal | Overflow) -> Planned | Blocked:
    """What came of a write."""
    if isinstance(reply, Done):
        return planned
    if isinstance(reply, Overflow):
        raise TooLarge("events", planned.token.size, ITEM_BYTES)
    page = None if reply.item is None else read_page(reply.item, planned.write.table)
    return Blocked(page=page, planned=planned, ambiguous=reply.ambiguous)


def head_from(table: str, stream: str, page: Page | None) -> Steps[Page | None]:
    """The last page, from the one that stood in the way; that one is kept, where it is the page before."""
    if page is not None and (page.deleted or not page.full):
        return (yield from whole(page))
    head = yield from load_head(table, stream)
    if head is None or page is None or page.version != head.index:
        return head
    return replace(head, before=((yield from openable(page)),))


def _begin_after(table: str, batch: Packed, known: Page | Token) -> Steps[Planned | Blocked]:
    """Leave a page that is full, or that does not take the batch."""
    closed = yield from _closed(table, batch, known)
    if isinstance(closed, Blocked):
        return closed
    if batch.unfolds is not None or not token_of(closed).unfolds:
        return begin(table, batch, closed, b"")
    page = closed if isinstance(closed, Page) else (yield from _page_of(table, batch.stream, closed))
    if page is None or page.version != known.version:
        return Blocked(page=page)
    return replace(begin(table, batch, closed, kept_by_next(page)), after=page)


def _page_of(table: str, stream: str, known: Token) -> Steps[Page | None]:
    return (yield from load_page(table, stream, index_of(known)))


def _closed(table: str, batch: Packed, known: Page | Token) -> Steps[Page | Token | Blocked]:
    """What is known once no append extends the page."""
    state = place_of(known)
    if state is None or state.full:
        return known
    planned = close(table, batch, known, state)
    came = sent(planned, (yield planned.write))
    if isinstance(came, Planned):
        return came.token
    if came.page is not None and came.page.stamp == planned.stamp:
        return came.page
    return Blocked(page=came.page)
