"""Appends of events that all have ids chosen by the caller: an earlier append is recognized by these ids.

    expected       where the ids are searched (`evidence.SameIds`)          all ids found, one after another
    a place        at that place, after the append was refused              appended before
    any version    on the last pages, before the append; then among         appended before, at any index
                   newer events, each time the append is refused

    expected       ids found: none, some, or all but not in a row
    a place        a conflict, as without ids
    any version    none: the events are appended; otherwise `IdTaken`

A place is a version, a token, or the beginning of a stream; it is searched however far back it is. If any version is
expected, the search covers the last pages and everything that was appended after they were read. So of two calls at
the same time, one finds the other's append. Contents are not compared.

An append to several streams is searched for in each of them, once one of them is not as expected.

An append at a place that meets the expectation does not search for ids, and costs no more than one without ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from epochal.layout.outcomes import conflict_at, refusing_head
from epochal.layout.queries import IdTaken
from epochal.layout.streams import accepts, id_in
from epochal.lazy_dataclasses import replace
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.model.tokens import MAX_VERSION, version_of
from epochal.pages.batch import Packed
from epochal.pages.evidence import (
    Applied,
    NotApplied,
    SameIds,
    Unknowable,
    Verdict,
    was_applied,
)
from epochal.pages.items import Page, page_key
from epochal.pages.reading import load_head, load_missing_unfolds, query, readable_pages
from epochal.pages.writes import ANYWHERE
from epochal.plan.batches import settled
from epochal.plan.ops import Steps

LOOKED_BACK: Final = 8
"""Number of pages that the search before an append at any version reads, in the same request as the head. A page of
small events has some hundred; each page has an append at least. Four KB cost a read unit, a fifth of an append."""


def load_head_or_outcome(
    table: str, batch: Packed, expected: ExpectedVersion
) -> Steps[Page | Appended | Undetermined | Conflict | None]:
    """Read the last page for a batch with ids; return it, or the outcome if nothing is to be appended.

    Returns:
        The last page to append on (None: no stream yet); or the outcome, if the batch was appended before, or the
        stream is not as expected.
    """
    head: Page | None
    if expected in ANYWHERE:
        head = yield from _load_back(table, batch.stream)
        ended = None if head is None else (yield from outcome_on_last_pages(batch, head))
        head = head and replace(head, before=())
    else:
        head, ended = (yield from load_head(table, batch.stream)), None
        if not accepts(expected, head):
            since = 0 if expected is NO_STREAM else version_of(expected)
            ended = yield from earlier_outcome(batch, head, since, anywhere=False)
    if ended is not None:
        return ended
    return head if accepts(expected, head) else conflict_at(head)


def find_all(table: str, appends: Sequence[tuple[Packed, ExpectedVersion]]) -> Steps[Appended | None]:
    """Return the outcome of an earlier append of all these batches to their streams; None if one lacks it.

    Returns:
        The outcome, if every batch is in its stream already; None if not.
    """
    searches = yield from _load_heads_or_outcomes(table, appends)
    heads = {
        batch.stream: refusing_head(search) if isinstance(search, Conflict) else search
        for (batch, _), search in zip(appends, searches, strict=True)
        if not isinstance(search, Appended | Undetermined)
    }
    if heads and len(heads) < len(searches):
        # A transaction that is under way may show in one stream earlier than in another.
        places = {(stream, index): None for stream, head in heads.items() for index in _ends(head)}
        yield from settled((table, page_key(*place)) for place in places)
        searches = yield from _load_heads_or_outcomes(table, appends)
    streams = {
        batch.stream: outcome
        for (batch, _), outcome in zip(appends, searches, strict=True)
        if isinstance(outcome, Appended)
    }
    return Appended(streams=streams, replayed=True) if len(streams) == len(searches) else None


def _load_heads_or_outcomes(
    table: str, appends: Sequence[tuple[Packed, ExpectedVersion]]
) -> Steps[list[Page | Appended | Undetermined | Conflict | None]]:
    searches: list[Page | Appended | Undetermined | Conflict | None] = []
    for batch, expected in appends:
        searches.append((yield from load_head_or_outcome(table, batch, expected)))
    return searches


def _ends(head: Page | None) -> tuple[int, ...]:
    """Return the indices of the pages that an append may be writing to: the last one and the next."""
    return (0,) if head is None else (head.index, head.version)


def earlier_outcome(
    batch: Packed, head: Page | None, since: int, *, anywhere: bool
) -> Steps[Appended | Undetermined | None]:
    """Return the outcome of an earlier append of the batch's ids; None if none; may raise `IdTaken`.

    Args:
        head: last page of the stream.
        since: index of the first of the ids or, if they may be `anywhere`, the lowest where it may be.

    Raises:
        IdTaken: they may be anywhere, and some of them are in the stream, but not all in a row.
    """
    if head is None or head.deleted or (not anywhere and head.version < since + batch.count):
        return None
    if anywhere:
        return (yield from _outcome_anywhere(batch, _in_hand(head), since))
    end = since + batch.count
    # The events of one append are on one page.
    most = LOOKED_BACK if end == head.version else 1
    sought = SameIds(ids=batch.ids, first=since, end=end, anywhere=False, most=most)
    return _outcome(batch, since, (yield from was_applied(sought, _in_hand(head))))


def outcome_on_last_pages(batch: Packed, head: Page) -> Steps[Appended | Undetermined | None]:
    """Return the outcome of the ids' append on the pages read; None if none; raise `IdTaken` if only some.

    Raises:
        IdTaken: some of the ids are there, and not all of them in a row.
    """
    pages = _in_hand(head)
    return (yield from _outcome_anywhere(batch, pages, pages[-1].base))


def _outcome_anywhere(
    batch: Packed, pages: Sequence[Page], first: int
) -> Steps[Appended | Undetermined | None]:
    """Return the outcome of the ids' append from `first` on; None if none; raise `IdTaken` if only some.

    Args:
        pages: last pages of the stream, newest first.

    Raises:
        IdTaken: some of the ids are there, and not all of them in a row.
    """
    end = pages[0].version
    sought = SameIds(ids=batch.ids, first=first, end=end, anywhere=True, most=LOOKED_BACK)
    return _outcome(batch, first, (yield from was_applied(sought, pages)))


def _outcome(batch: Packed, first: int, verdict: Verdict) -> Appended | Undetermined | None:
    """Return the outcome that a verdict means; None if not applied; raise `IdTaken` if an id is taken."""
    match verdict:
        case Applied() as applied:
            return applied.appended(replayed=True)
        case Unknowable():
            return Undetermined(first=first)
        case NotApplied(taken=taken):
            if taken is None:
                return None
            rule = f"{batch.stream} has the id {id_in(taken)}, but not all ids of this append in a row"
            raise IdTaken("events", rule)


def _in_hand(head: Page) -> list[Page]:
    """Return the last page and those read with it, newest first, up to a gap or one with pruned events."""
    pages = [head]
    for page in reversed(head.before):
        if pages[-1].base > pages[-1].index or page.version != pages[-1].index:
            break
        pages.append(page)
    return pages


def _load_back(table: str, stream: str) -> Steps[Page | None]:
    """Read the last page of a stream, and some pages before it in the same request."""
    reply = yield query(table, stream, 0, MAX_VERSION, forward=False, limit=LOOKED_BACK)
    pages = list(readable_pages(table, reply.items))
    return (yield from load_missing_unfolds(replace(pages[0], before=tuple(pages[:0:-1])))) if pages else None
