"""Appending: one conditional write of the last page, and everything that can come back from it.

    what is known         the last page, or a token of it: the write goes out      nothing: the page is read first
    the page is open      it is extended, if it is still at this revision and open
    the batch is too big  the page is closed first, if it is still at this revision and open; then
    the page is full      a new one is begun where it ends, if nothing is there

    refused               the page that stood in the way comes back
      ├ it holds our stamp              appended: a response was lost, or the key was used before
      ├ our index has been pruned       undetermined
      └ none of these                   conflict; or, where any version will do, again on the last page

An extension names the exact state that it changes. A begin names a place only; so which page it follows is told by a
page, or by a token that was made from a page of this stream: any other may be forged, or be another stream's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from epochal.errors import InvalidInput, TooLarge
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.find import Earlier, Found, absent_from, find, in_page
from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.reading import load_head, load_page
from epochal.layout.pages.writes import (
    Planned,
    begin,
    can_be_left,
    close,
    extend,
    index_of,
    is_own,
    left_by,
    place_of,
    token_of,
)
from epochal.layout.streams import Known, Rejected, Result, Settled, Unknown, Written
from epochal.model.versions import MAX_VERSION, NO_STREAM, AtVersion, Expected, ExpectedVersion, Token
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Overflow, Refusal, Steps


class Unread(Enum):
    """The last page has not been looked at."""

    UNREAD = "unread"


UNREAD: Final = Unread.UNREAD


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blocked:
    """A write did not go through.

    Attributes:
        page: what stood in its way.
        planned: the write; None where none was sent.
    """

    page: Page | None
    planned: Planned | None = None
    ambiguous: bool = False


def append(
    table: str, batch: Packed, expected: ExpectedVersion, start: Known[Page] | Unread = UNREAD
) -> Steps[Result[Page]]:
    """Append `batch`, beginning from `start` or, where that is unread, from what `expected` tells.

    Raises:
        TooLarge: the events do not fit an item.
        InvalidInput: the idempotency key was used for other events; the stream is full.
    """
    known = told(expected) if start is UNREAD else start
    if known is UNREAD:
        known = yield from load_head(table, batch.stream)
        if not accepts(expected, known):
            return Rejected(head=known)
    repeatable = expected in (Expected.ANY, Expected.STREAM_EXISTS)
    while True:
        result = yield from append_on(table, batch, known, repeatable=repeatable)
        if not isinstance(result, Rejected) or not accepts(expected, result.head):
            return result
        known = result.head


def append_on(
    table: str, batch: Packed, known: Known[Page], *, repeatable: bool = False
) -> Steps[Result[Page]]:
    """Append on exactly the last page that is known (None: no stream yet). Any other is a rejection, which brings it.

    Args:
        repeatable: unfolds alone may be written again where nobody can tell whether they were; events under a key may
            stand later than on what is known, by another process.
    """
    sent = yield from _write(table, batch, known)
    if isinstance(sent, Planned):
        version = sent.token.version
        return Written(first=version - batch.count, version=version, token=sent.token)
    head = yield from head_from(table, batch.stream, sent.page)
    settled = yield from _settle(table, batch, sent, head, version_of(known), repeatable=repeatable)
    return Rejected(head=head) if settled is None else settled


def told(expected: ExpectedVersion) -> Known[Page] | Unread:
    """What an expectation alone says of the last page."""
    if expected is NO_STREAM:
        return None
    return expected if isinstance(expected, Token) and expected.etag is not None else UNREAD


def version_of(known: Known[Page]) -> int:
    """The next index, as far as the writer knows."""
    return 0 if known is None else known.version


def accepts(expected: ExpectedVersion, head: Page | None) -> bool:
    """Whether a last page is what a writer expects."""
    if head is not None and head.deleted:
        return False
    version = version_of(head)
    match expected:
        case Expected.ANY:
            return True
        case Expected.NO_STREAM:
            return head is None
        case Expected.STREAM_EXISTS:
            return head is not None
        case AtVersion(version=wanted):
            return version == wanted
        case Token(version=wanted, etag=etag):
            return version == wanted and (etag is None or (head is not None and head.token().etag == etag))


# ------------------------------------------------------------------------------------------------------------- writing


def _write(table: str, batch: Packed, known: Known[Page]) -> Steps[Planned | _Blocked]:
    """One attempt: what was written, or what blocked it."""
    if version_of(known) + batch.count > MAX_VERSION:
        raise InvalidInput("events", f"a stream holds at most {MAX_VERSION:,} events")
    if known is None:
        first = begin(table, batch, None, b"")
        return _sent(first, (yield first.write))
    if isinstance(known, Page) and known.deleted:
        return _Blocked(page=known)
    planned = extend(table, batch, known)
    if planned is not None:
        reply = yield planned.write
        if not isinstance(reply, Overflow) or not can_be_left(known):
            return _sent(planned, reply)
    if is_own(table, batch.stream, known):
        return (yield from _begin_after(table, batch, known))
    head = yield from load_head(table, batch.stream)
    if head is None or (head.version, head.etag) != (known.version, known.etag):
        return _Blocked(page=head)
    return (yield from _write(table, batch, head))


def _sent(planned: Planned, reply: Done | Refusal | Overflow) -> Planned | _Blocked:
    if isinstance(reply, Done):
        return planned
    if isinstance(reply, Overflow):
        raise TooLarge("events", planned.token.size, ITEM_BYTES)
    page = None if reply.item is None else read_page(reply.item, planned.write.table)
    return _Blocked(page=page, planned=planned, ambiguous=reply.ambiguous)


def _begin_after(table: str, batch: Packed, known: Page | Token) -> Steps[Planned | _Blocked]:
    """Leave a page that is full, or that does not take the batch, and begin the next."""
    closed = yield from _closed(table, batch, known)
    if isinstance(closed, _Blocked):
        return closed
    kept = b""
    if batch.unfolds is None and token_of(closed).unfolds:
        page = (
            closed
            if isinstance(closed, Page)
            else (yield from load_page(table, batch.stream, index_of(closed)))
        )
        if page is None:
            return _Blocked(page=None)
        kept = page.unfolds
    planned = begin(table, batch, closed, kept)
    return _sent(planned, (yield planned.write))


def _closed(table: str, batch: Packed, known: Page | Token) -> Steps[Page | Token | _Blocked]:
    """What is known once no append extends the page."""
    state = place_of(known)
    if state is None or state.full:
        return known
    planned = close(table, batch, known, state)
    sent = _sent(planned, (yield planned.write))
    if isinstance(sent, Planned):
        return sent.token
    if sent.page is not None and sent.page.stamp == planned.stamp:
        return sent.page
    return _Blocked(page=sent.page)  # of the batch nothing was sent


# ------------------------------------------------------------------------------------------------------ what came back


def settle(table: str, batch: Packed, head: Page, since: int, *, repeatable: bool) -> Steps[Settled | None]:
    """What a stream that is there says of an append that another process may have made from index `since` on."""
    blocked = _Blocked(page=head)
    return (yield from _settle(table, batch, blocked, head, since, repeatable=repeatable))


def _settle(
    table: str, batch: Packed, blocked: _Blocked, head: Page | None, since: int, *, repeatable: bool
) -> Steps[Settled | None]:
    """How the append has already ended, or None: it has not been made."""
    if head is None or blocked.page is None:
        return None
    if not batch.count:
        return _settle_unfolds(blocked, blocked.page, repeatable=repeatable)
    # Every try names a state or a place, so ours is where we tried, if anywhere. Only a try of another process, known
    # by a key, may be later.
    found: Found | Earlier = in_page(blocked.page, batch) or absent_from(blocked.page, since)
    if not isinstance(found, Found) and batch.keyed:
        found = yield from find(table, head, batch, since, or_later=repeatable)
    if isinstance(found, Found):
        return _already(batch, blocked.planned, found)
    doubtful = found is Earlier.PRUNED and (blocked.ambiguous or batch.keyed)
    return Unknown(first=since) if doubtful else None


def _settle_unfolds(blocked: _Blocked, page: Page, *, repeatable: bool) -> Settled | None:
    """Unfolds alone leave no trace once replaced; where they may have been, they are written again."""
    planned = blocked.planned
    if planned is None or not blocked.ambiguous:
        return None
    if page.stamp == planned.stamp:
        return Written(first=page.version, version=page.version, token=planned.token)
    return None if repeatable and not page.deleted else Unknown(first=planned.token.version)


def _already(batch: Packed, planned: Planned | None, found: Found) -> Written:
    """The token is of the page that the append left, never of one that another has written since, if only unfolds: an
    append on that would replace what its writer has not seen.
    """
    version = found.first + batch.count
    if planned is not None and planned.stamp == found.stamp:
        return Written(first=found.first, version=version, token=planned.token)
    page = found.page
    latest = page.version == version and page.stamp is None
    token = page.token() if latest else left_by(page, version, found.stamp)
    return Written(first=found.first, version=version, token=token, replayed=True)


def head_from(table: str, stream: str, page: Page | None) -> Steps[Page | None]:
    """The last page, from the one that stood in the way."""
    if page is not None and (page.deleted or not page.full):
        return page
    return (yield from load_head(table, stream))
