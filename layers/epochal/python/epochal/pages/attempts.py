"""One attempt to append a batch to the last page of a stream: the write that is planned, closing a full page before it.

An attempt returns the write that was applied, or what blocked it.
"""

from __future__ import annotations

from epochal.errors import InvalidInput, TooLarge
from epochal.layout.streams import Known
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.tokens import MAX_VERSION, Token, version_of
from epochal.pages.batch import Packed
from epochal.pages.items import (
    Page,
    read_page,
)
from epochal.pages.reading import load_head, load_missing_unfolds, load_page
from epochal.pages.writes import (
    Planned,
    close,
    index_of,
    is_own,
    known_state,
    may_be_followed,
    plan_extension,
    plan_page,
    token_of,
    unfolds_for_next,
)
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Overflow, Refusal, Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A write that was refused, or was not sent because it would be.

    Attributes:
        page: the page that blocked the write; None if there was none.
        planned: the write, if it was sent.
        lost: whether a response was lost, so that the write may have been applied, and may have blocked its own retry.
    """

    page: Page | None
    planned: Planned | None = None
    lost: bool = False


def write(table: str, batch: Packed, known_head: Known[Page]) -> Steps[Planned | Blocked]:
    """Try to append on exactly the known last page, or after it; return the write, or what blocked it."""
    planned = yield from prepare_write(table, batch, known_head)
    if isinstance(planned, Blocked):
        return planned
    reply = yield planned.write
    if isinstance(reply, Overflow) and may_be_followed(known_head):
        extension, planned = planned, (yield from prepare_write(table, batch, known_head, extending=False))
        if isinstance(planned, Blocked):
            return replace(planned, planned=extension)
        reply = yield planned.write
    return read_reply(planned, reply)


def prepare_write(
    table: str, batch: Packed, known_head: Known[Page], *, extending: bool = True
) -> Steps[Planned | Blocked]:
    """Plan a batch's append; if its page must close, write that first. Return the plan, or what blocks it.

    If the page does not take the batch, it is closed first; what the next page needs of it is read.

    Args:
        extending: whether the page may be extended; False if the extended page would exceed the limit.
    """
    if version_of(known_head) + batch.count > MAX_VERSION:
        raise InvalidInput("events", f"a stream holds at most {MAX_VERSION:,} events")
    if known_head is None:
        return plan_page(table, batch, None, b"")
    if isinstance(known_head, Page) and known_head.deleted:
        return Blocked(page=known_head)
    planned = plan_extension(table, batch, known_head) if extending else None
    if planned is not None:
        return planned
    if is_own(table, batch.stream, known_head):
        return (yield from _plan_page_after(table, batch, known_head))
    head = yield from load_head(table, batch.stream)
    if head is None or (head.version, head.etag) != (known_head.version, known_head.etag):
        return Blocked(page=head)
    return (yield from prepare_write(table, batch, head, extending=extending))


def read_reply(planned: Planned, reply: Done | Refusal | Overflow) -> Planned | Blocked:
    """Return the write if it was applied, or the page that refused it; raise `TooLarge` for an overflow.

    Raises:
        TooLarge: the page would be larger than an item may be.
    """
    if isinstance(reply, Done):
        return planned
    if isinstance(reply, Overflow):
        raise TooLarge("events", planned.token.size, ITEM_BYTES)
    page = None if reply.item is None else read_page(reply.item, planned.write.table)
    return Blocked(page=page, planned=planned, lost=reply.ambiguous)


def head_from(table: str, stream: str, page: Page | None) -> Steps[Page | None]:
    """Return a stream's last page after a refusal: the refusing page unless it is full, else read it.

    The page that refused the write is kept in `before`, if it is the one before the last.
    """
    if page is not None and (page.deleted or not page.full):
        return (yield from load_missing_unfolds(page))
    head = yield from load_head(table, stream)
    if head is None or page is None or page.version != head.index:
        return head
    return replace(head, before=(page,))


def _plan_page_after(table: str, batch: Packed, known_head: Page | Token) -> Steps[Planned | Blocked]:
    """Close the known page unless it is full, and plan the next one; return that, or what blocked it."""
    closed = yield from _close_first(table, batch, known_head)
    if isinstance(closed, Blocked):
        return closed
    if batch.unfolds is not None or not token_of(closed).unfolds:
        return plan_page(table, batch, closed, b"")
    page = closed if isinstance(closed, Page) else (yield from _page_of(table, batch.stream, closed))
    if page is None or page.version != known_head.version:
        return Blocked(page=page)
    return replace(plan_page(table, batch, closed, unfolds_for_next(page)), onto=page)


def _page_of(table: str, stream: str, known_head: Token) -> Steps[Page | None]:
    """Read the page that a token names."""
    return (yield from load_page(table, stream, index_of(known_head)))


def _close_first(table: str, batch: Packed, known_head: Page | Token) -> Steps[Page | Token | Blocked]:
    """Close the known page, so that no append extends it; return it as closed, or what blocked that."""
    state = known_state(known_head)
    if state is None or state.full:
        return known_head
    planned = close(table, batch, known_head, state)
    sent_write = read_reply(planned, (yield planned.write))
    if isinstance(sent_write, Planned):
        return sent_write.token
    if sent_write.page is not None and sent_write.page.stamp == planned.stamp:
        return sent_write.page
    return Blocked(page=sent_write.page)
