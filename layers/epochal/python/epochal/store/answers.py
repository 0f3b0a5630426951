"""Converts the answers of a layout to the outcomes of appends that callers get."""

from __future__ import annotations

from math import inf

from epochal.layout.streams import Answer, Head, Known, Rejected, Unknown, Unmet, Written
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.versions import Appended, Capacity, Conflict, ExpectedVersion, Outcome, Token, Undetermined


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedAppend:
    """The head that came with a conflict, the number of refusals in a row, and when the append began.

    Attributes:
        head: the current head; None if there is no stream.
        times: number of refusals in a row.
        since: clock reading before the append.
    """

    head: Head | None
    times: int
    since: float


def refusals_of(expected: ExpectedVersion) -> tuple[int, ExpectedVersion]:
    """Return how often appends were refused up to an expected version, and the version without that."""
    if not isinstance(expected, Token) or not expected.refused:
        return 0, expected
    return expected.refused, replace(expected, refused=0)


def outcome_of(result: Answer[Head], capacity: Capacity, *, since: float = -inf, refused: int = 0) -> Outcome:
    """Convert a layout's answer to an append to an outcome.

    Args:
        since: clock reading before the append.
        refused: number of refusals before.
    """
    match result:
        case Written(first=first, version=version, token=token, replayed=replayed):
            return Appended(first=first, version=version, token=token, replayed=replayed, capacity=capacity)
        case Rejected(head=head):
            conflict = conflict_of(head, capacity)
            refusal = RefusedAppend(head=head, times=refused + 1, since=since)
            newest = None if conflict.token is None else replace(conflict.token, refused=refusal.times)
            return replace(conflict, token=newest, refused=refusal)
        case Unknown(first=first):
            return Undetermined(first=first, capacity=capacity)
        case Unmet():
            from epochal.store.outcomes import also_conflict  # noqa: PLC0415  few appends have anything with them

            return also_conflict(result, capacity)


def conflict_of(head: Head | None, capacity: Capacity) -> Conflict:
    """Make the conflict of an append with a head that does not have the expected version."""
    if head is None:
        return Conflict(version=0, capacity=capacity)
    return Conflict(version=head.version, token=head.token(), deleted=head.deleted, capacity=capacity)


def token_of(known: Known[Head]) -> Token | None:
    """Return the token of a known head, without its events; None if there is no stream."""
    return known if known is None or isinstance(known, Token) else known.token()
