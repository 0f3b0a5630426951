"""Conflicts as errors: what the calls of a store raise where their twins, `try_…`, answer.

An unread answer is a lost write, so a call that could not write raises. Functions look at outcomes, and never need
this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from epochal.errors import (
    ConditionUnmet,
    ConflictError,
    EpochalError,
    InvalidInput,
    InvalidRequest,
    OutcomeUndetermined,
    StreamDeleted,
    WrongExpectedVersion,
)
from epochal.layout.streams import Also
from epochal.model.versions import AtVersion, Conflict, Expected, ExpectedVersion, Token, Undetermined
from epochal.plan.values import Item

if TYPE_CHECKING:
    from epochal.model.versions import Conflict

NAMED: Final = 3
"""Events that the error of a refused append names; it carries all."""


def in_the_way(outcome: Conflict) -> ConflictError:
    """The error of an append that events forbid which match its condition."""
    named = ", ".join(f"{event.type} {event.id}" for event in outcome.events[:NAMED])
    rest = " and others" if len(outcome.events) > NAMED else ""
    said = f"not appended: the condition forbids {named}{rest}, appended since the position given"
    return ConflictError(said, outcome)


def not_made(stream: str, outcome: Conflict | Undetermined, expected: ExpectedVersion) -> EpochalError:
    """The error of an append to a stream that was not made."""
    match outcome:
        case Conflict() if outcome.unmet:
            return ConditionUnmet(list(outcome.unmet), outcome)
        case Conflict() if outcome.events:
            return in_the_way(outcome)
        case Conflict():
            return conflict(stream, outcome, expected)
        case Undetermined(first=first):
            error = OutcomeUndetermined(stream, first)
            error.capacity = outcome.capacity
            return error


def conflict(
    stream: str, outcome: Conflict, expected: ExpectedVersion
) -> StreamDeleted | WrongExpectedVersion:
    """A stream's conflict as an error."""
    if outcome.deleted:
        return StreamDeleted(stream, outcome.version, outcome)
    return WrongExpectedVersion(stream, said(expected), outcome.version, outcome)


def said(expected: ExpectedVersion) -> str:
    """An expectation in words."""
    match expected:
        case Expected.ANY:
            return "any stream there is"
        case Expected():
            return str(expected.value)
        case AtVersion(version=version):
            return f"version {version}"
        case Token(version=version):
            return f"version {version} as its token saw it"


def unmet(items: Mapping[int, Item | None]) -> dict[int, Mapping[str, Any] | None]:
    """What stands in the way of what was to go with an append, as Python's values."""
    from epochal.also import plain  # noqa: PLC0415  few appends have anything with them

    return {place: None if item is None else plain(item) for place, item in items.items()}


@contextmanager
def going_with(also: Also) -> Iterator[None]:
    """Name what only DynamoDB knows of it: which attributes are a table's key."""
    try:
        yield
    except InvalidRequest as error:
        if also and "multiple operations on one item" in error.message:
            raise InvalidInput("also", "has two on one item") from error
        raise
