"""Appending to one stream: one conditional write of the last page, and all outcomes that it can have.

    nothing is known      the last page is read first; with a page or its token, the write is sent at once
    the page is open      it is extended, on condition that it is still open and at this revision
    the batch is too big  the page is closed first, on the same condition; then
    the page is full      a new page is begun at its end, on condition that there is none

    refused               the page that refused the write comes back, and `evidence` judges it
      ├ Applied                         appended: by this call, or by another under the same key or with the same ids
      ├ Unknowable                      undetermined
      └ NotApplied                      a conflict; or, if any version is accepted, a retry on the last page, from the
                                        second refusal on after a pause (`giving_way`)

The condition of an extension names the exact state of the page. The condition of a new page names only its place. So
the page before it must have been read, or its token made from a page of this stream: any other token may be forged, or
be of another stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochal.layout.giving_way import pause_after
from epochal.layout.outcomes import conflict_at, refusing_head
from epochal.layout.streams import Known, accepts
from epochal.model.expected_version import UNREAD, ExpectedVersion, Unread, expected_head
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import version_of
from epochal.pages.attempts import Blocked, head_from, write
from epochal.pages.batch import Packed
from epochal.pages.evidence import (
    Applied,
    KeyedAppend,
    LookFurther,
    NotApplied,
    OwnWrite,
    Unknowable,
    Verdict,
    is_decision,
    is_pruned,
    was_applied,
)
from epochal.pages.items import Page
from epochal.pages.reading import load_head
from epochal.pages.writes import ANYWHERE, Planned, known_state
from epochal.plan.ops import Steps

if TYPE_CHECKING:
    from epochal.layout.decision_keys import DecisionKey


def append(
    table: str, batch: Packed, expected: ExpectedVersion, start: Known[Page] | Unread = UNREAD
) -> Steps[Outcome]:
    """Append a batch to one stream, retrying on newer pages that meet `expected`; return the outcome.

    Args:
        start: the last page or its token, if the caller has it; otherwise it comes from `expected`, or is read.

    Raises:
        TooLarge: the events do not fit an item.
        InvalidInput: the idempotency key was used for other events; the stream is full.
    """
    first_head = expected_head(expected) if start is UNREAD else start
    known_head: Known[Page]
    if first_head is not UNREAD:
        known_head = first_head
    elif batch.ids:
        from epochal.pages import identified  # noqa: PLC0415  a function starts without it

        head_or_outcome = yield from identified.load_head_or_outcome(table, batch, expected)
        if isinstance(head_or_outcome, Appended | Undetermined | Conflict):
            return head_or_outcome
        known_head = head_or_outcome
    else:
        head = yield from load_head(table, batch.stream)
        if not accepts(expected, head):
            return conflict_at(head)
        known_head = head
    refusals = 0
    while True:
        outcome = yield from append_on(table, batch, known_head, repeatable=expected in ANYWHERE)
        if not isinstance(outcome, Conflict):
            return outcome
        head, refusals = refusing_head(outcome), refusals + 1
        pause = pause_after(refusals) if accepts(expected, head) else None
        if pause is not None:
            yield pause
            since, head = version_of(head), (yield from load_head(table, batch.stream))
            ended = yield from _earlier_by_ids(batch, head, since, anywhere=expected in ANYWHERE)
            if ended is not None:
                return ended
            outcome = conflict_at(head)
        if not accepts(expected, head):
            return outcome
        known_head = head


def append_on(
    table: str, batch: Packed, known_head: Known[Page], *, repeatable: bool = False
) -> Steps[Outcome]:
    """Append on exactly the known last page (None: no stream yet); return the outcome, or a conflict.

    Args:
        repeatable: whether any place will do. Then unfolds alone are written again if nobody can tell whether they were
            written; and events under a key, or with ids, may have been appended by another process at a later place.
    """
    refused = yield from write(table, batch, known_head)
    if isinstance(refused, Planned):
        return refused.appended
    head = yield from head_from(table, batch.stream, refused.page)
    since = version_of(known_head)
    outcome = yield from outcome_after_refusal(batch, head, since, refused, repeatable=repeatable)
    if outcome is None:
        outcome = yield from _earlier_by_ids(batch, head, since, anywhere=repeatable)
    return conflict_at(head) if outcome is None else outcome


def _earlier_by_ids(
    batch: Packed, head: Page | None, since: int, *, anywhere: bool
) -> Steps[Appended | Undetermined | None]:
    """Return the outcome of an earlier append of the batch's ids from `since` on; None if there is none."""
    if not batch.ids:
        return None
    from epochal.pages import identified  # noqa: PLC0415  a function starts without it

    return (yield from identified.earlier_outcome(batch, head, since, anywhere=anywhere))


def outcome_after_refusal(
    batch: Packed, head: Page | None, since: int, refused: Blocked, *, repeatable: bool
) -> Steps[Appended | Undetermined | None]:
    """Return the outcome of an append after its refused write; None if not applied, or safe to repeat.

    Args:
        head: last page of the stream.
        since: version that the write was for.
        repeatable: as in `append_on`.
    """
    if batch.keyed and batch.count:
        if refused.page is None:
            return None
        return (yield from outcome_under_key(batch, head, since, later=repeatable, refused=refused))
    outcome = own_outcome(batch, refused)
    if isinstance(outcome, Undetermined) and not batch.count and repeatable and not _is_deleted(refused.page):
        return None  # unfolds alone may be written again
    return outcome


def own_outcome(batch: Packed, refused: Blocked) -> Appended | Undetermined | None:
    """Judge from the refusing page whether our write was applied: `Appended`, `Undetermined`, or None."""
    planned = refused.planned
    if planned is None:
        return None
    match OwnWrite.of_joined(batch, planned, lost=refused.lost).judge(refused.page):
        case Applied() as applied:
            # If other writes followed, only the planned write still has the token that this one left.
            token = applied.page.token() if applied.is_latest else planned.token
            return Appended(first=applied.first, version=applied.end, token=token)
        case Unknowable():
            return Undetermined(first=planned.first)
        case NotApplied():
            return None


def outcome_under_key(
    batch: Packed, head: Page | None, since: int, *, later: bool, refused: Blocked | None = None
) -> Steps[Appended | Undetermined | None]:
    """Return the outcome of an earlier append under the key of a batch, by any process; None if none.

    Args:
        head: last page of the stream.
        since: lowest index at which the append may be.
        later: whether it may be on a later page than the one with that index.
        refused: our own write, if it is the one that was refused.
    """
    if head is None or not batch.count:
        return None
    sought = KeyedAppend.of(batch, since, later=later)
    verdict: Verdict | LookFurther = NotApplied()
    if refused is not None and refused.page is not None:
        verdict = sought.judge(refused.page)
    if not isinstance(verdict, Applied):
        verdict = yield from was_applied(sought, [head, *reversed(head.before)])
    if isinstance(verdict, Applied):
        # Without a lost answer the append is another process's, even if it has the same key and time, and so the same
        # stamp. Two decisions under one key at one time have the same stamp, even if they decide differently.
        planned = refused.planned if refused is not None and refused.lost else None
        own = planned is not None and planned.stamp == verdict.stamp and not is_decision(batch)
        return verdict.appended(replayed=not own)
    return undetermined_from(head, sought.first) if isinstance(verdict, Unknowable) else None


def decided(key: DecisionKey, head: Page, since: int) -> Steps[Appended | Undetermined | None]:
    """Return the outcome of a decision under a key, from index `since` on; None if there is none."""
    sought = KeyedAppend.of_decision(key, since)
    verdict = yield from was_applied(sought, [head])
    if isinstance(verdict, Applied):
        return verdict.appended(replayed=True)
    return undetermined_from(head, sought.first) if isinstance(verdict, Unknowable) else None


def undetermined_from(head: Page, first: int) -> Undetermined:
    """Make the outcome of an append that may be among pruned events from index `first` on.

    While a stream is being deleted, its last page loses its events first; then the append may be there.
    """
    return Undetermined(first=max(first, head.index) if is_pruned(head, head.index) else first)


def _is_deleted(page: Page | None) -> bool:
    return page is not None and page.deleted


def is_new(known_head: Known[Page], above: Ticks) -> bool | None:
    """Return whether the known last page is not newer than a key's moment; None if the key has no moment.

    True for a stream that does not exist, if the key has a moment.
    """
    if not above or known_head is None:
        return bool(above) or None
    state = known_state(known_head)
    return state is not None and state.time <= above
