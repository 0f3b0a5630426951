"""Completes the outcomes of a layout for callers: with the capacity of the call and the number of refusals."""

from __future__ import annotations

from contextvars import ContextVar
from math import inf
from typing import Final, NamedTuple, TypeAlias

from epochal.layout.streams import Head, Known
from epochal.lazy_dataclasses import replace
from epochal.model.capacity import NOTHING, Capacity
from epochal.model.expected_version import ExpectedVersion
from epochal.model.outcomes import Conflict, Outcome
from epochal.model.tokens import Token

StreamPlace: TypeAlias = tuple[int | None, str, str]
"""Identity of a stream: place of its table, name of the table, name of the stream."""


class Refusals(NamedTuple):
    """The refusals of a caller's appends to one stream, in a row.

    Attributes:
        place: the stream.
        times: number of refusals.
        began: clock reading before the append that was refused last.
        refused: clock reading when it was refused.
        waited: whether a load has waited since then.
    """

    place: StreamPlace
    times: int
    began: float
    refused: float
    waited: bool = False


REFUSALS: Final[ContextVar[tuple[Refusals, ...]]] = ContextVar("refusals", default=())
"""The caller's refusals, the latest first (`store.refusals`). They are here since few callers have any."""


def refusals_of(expected: ExpectedVersion) -> tuple[int, ExpectedVersion]:
    """Return the number of refusals that an expected version carries, and the version without it."""
    if not isinstance(expected, Token) or not expected.refused:
        return 0, expected
    return expected.refused, replace(expected, refused=0)


def complete(outcome: Outcome, capacity: Capacity, *, began: float = -inf, refused: int = 0) -> Outcome:
    """Return a layout's outcome with the call's capacity, and in a conflict the number of refusals.

    Args:
        capacity: capacity of the whole call.
        began: clock reading before the append.
        refused: number of refusals before.
    """
    if isinstance(outcome, Conflict):
        return _complete_conflict(outcome, capacity, began, refused)
    return replace(outcome, capacity=capacity)


def _complete_conflict(conflict: Conflict, capacity: Capacity, began: float, refused: int) -> Conflict:
    """Return a conflict with capacity and numbers of refusals, also per stream; `unmet` as Python values."""
    if conflict.unmet:
        from epochal.store.outcomes import also_conflict  # noqa: PLC0415  few appends have anything with them

        return also_conflict(conflict, capacity)
    streams = {
        stream: _complete_conflict(refusal, NOTHING, began, refused)
        for stream, refusal in conflict.streams.items()
    }
    if conflict.refused is None:
        return replace(conflict, streams=streams, capacity=capacity)
    refusal = replace(conflict.refused, times=refused + 1, began=began)
    token = None if conflict.token is None else replace(conflict.token, refused=refusal.times)
    return replace(conflict, token=token, refused=refusal, capacity=capacity)


def token_of(known_head: Known[Head]) -> Token | None:
    """Return the token of a known head, without its events; None if there is no stream."""
    return known_head if known_head is None or isinstance(known_head, Token) else known_head.token()
