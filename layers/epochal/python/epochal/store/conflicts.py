"""Conflicts as errors: what the calls of a store raise where their twins, `try_…`, answer.

An unread answer is a lost write, so a call that could not write raises. Functions look at outcomes, and never need
this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from epochal.errors import (
    ConflictError,
    EpochalError,
    OutcomeUndetermined,
    StreamDeleted,
    WrongExpectedVersion,
)
from epochal.model.outcomes import Conflict, Undetermined
from epochal.model.versions import AtVersion, Expected, ExpectedVersion, Token

if TYPE_CHECKING:
    from epochal.model.several import Conflicts
    from epochal.model.tagged_results import TaggedConflict

NAMED: Final = 3
"""Events that the error of a refused append names; it carries all."""


def in_the_way(outcome: Conflicts | Conflict | TaggedConflict) -> ConflictError:
    """The error of an append that events forbid which match its condition."""
    named = ", ".join(f"{event.type} {event.id}" for event in outcome.events[:NAMED])
    rest = " and others" if len(outcome.events) > NAMED else ""
    said = f"not appended: the condition forbids {named}{rest}, appended since the position given"
    return ConflictError(said, outcome)


def not_made(stream: str, outcome: Conflict | Undetermined, expected: ExpectedVersion) -> EpochalError:
    """The error of an append to a stream that was not made."""
    match outcome:
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
