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

from dataclasses import replace

from epochal.layout.expectations import UNREAD, Unread, accepts, told, version_of
from epochal.layout.pages.attempt import Blocked, head_from, write
from epochal.layout.pages.batch import Packed, rest_of
from epochal.layout.pages.find import (
    Earlier,
    FoundAppend,
    SoughtDecision,
    absent_from,
    find,
    in_page,
    is_decision,
    sought,
)
from epochal.layout.pages.items import Page
from epochal.layout.pages.reading import load_head
from epochal.layout.pages.writes import Planned, left_by
from epochal.layout.streams import Known, Rejected, Result, Settled, Unknown, Written
from epochal.model.versions import Expected, ExpectedVersion
from epochal.plan.ops import Steps


def append(
    table: str, batch: Packed, expected: ExpectedVersion, start: Known[Page] | Unread = UNREAD
) -> Steps[Result[Page]]:
    """Append `batch`, beginning from `start` or, where that is unread, from what `expected` tells.

    Raises:
        TooLarge: the events do not fit an item.
        InvalidInput: the idempotency key was used for other events; the stream is full.
    """
    known: Known[Page] | Unread = told(expected) if start is UNREAD else start
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
    sent = yield from write(table, batch, known)
    if isinstance(sent, Planned):
        version = sent.token.version
        return Written(first=version - batch.count, version=version, token=sent.token)
    head = yield from head_from(table, batch.stream, sent.page)
    settled = yield from _settle(table, batch, sent, head, version_of(known), repeatable=repeatable)
    return Rejected(head=head) if settled is None else settled


def settle(table: str, batch: Packed, head: Page, since: int, *, repeatable: bool) -> Steps[Settled | None]:
    """What a stream that is there says of an append that another process may have made from index `since` on."""
    blocked = Blocked(page=head)
    return (yield from _settle(table, batch, blocked, head, since, repeatable=repeatable))


def decided(table: str, head: Page, append_id: bytes, since: int) -> Steps[Settled | None]:
    """What came of a decision that is known by a key, from index `since` on; None where there is none."""
    found = yield from find(table, head, SoughtDecision(rest=rest_of(append_id)), since, or_later=True)
    if isinstance(found, FoundAppend):
        return _left_by(found, replayed=True)
    return Unknown(first=since) if found is Earlier.PRUNED else None


def _settle(
    table: str, batch: Packed, blocked: Blocked, head: Page | None, since: int, *, repeatable: bool
) -> Steps[Settled | None]:
    """How the append has already ended, or None: it has not been made."""
    if head is None or blocked.page is None:
        return None
    if not batch.count:
        return _settle_unfolds(blocked, blocked.page, repeatable=repeatable)
    # Every try names a state or a place, so ours is where we tried, if anywhere. Only a try of another process, known
    # by a key, may be later.
    wanted = sought(batch)
    found: FoundAppend | Earlier = in_page(blocked.page, wanted, since) or absent_from(blocked.page, since)
    if not isinstance(found, FoundAppend) and batch.keyed:
        found = yield from find(table, head, wanted, since, or_later=repeatable)
    if isinstance(found, FoundAppend):
        return _already(batch, blocked.planned, found)
    doubtful = found is Earlier.PRUNED and (blocked.ambiguous or batch.keyed)
    return Unknown(first=since) if doubtful else None


def _settle_unfolds(blocked: Blocked, page: Page, *, repeatable: bool) -> Settled | None:
    """Unfolds alone leave no trace once replaced; where they may have been, they are written again."""
    planned = blocked.planned
    if planned is None or not blocked.ambiguous:
        return None
    if page.stamp == planned.stamp:
        return Written(first=page.version, version=page.version, token=planned.token)
    return None if repeatable and not page.deleted else Unknown(first=planned.token.version)


def _already(batch: Packed, planned: Planned | None, found: FoundAppend) -> Written:
    """The token is of the page that the append left, never of one that another has written since, if only unfolds: an
    append on that would replace what its writer has not seen.

    Another process may have the key, and even the moment: what it has made of the page, nobody else knows.
    """
    # Two that decide under one key at one moment have one stamp, whatever each of them has decided.
    ours = planned is not None and planned.stamp == found.stamp and not is_decision(batch)
    left = _left_by(found, replayed=batch.keyed and not ours)
    as_found = found.page.version == found.end and found.page.stamp is None
    if planned is not None and ours and not batch.keyed and not as_found:
        return replace(left, token=planned.token)
    return left


def _left_by(found: FoundAppend, *, replayed: bool) -> Written:
    page, version = found.page, found.end
    as_left = page.version == version and page.stamp is None
    token = page.token() if as_left else left_by(page, version, found.stamp)
    return Written(first=found.first, version=version, token=token, replayed=replayed)
