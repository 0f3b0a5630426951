"""Conflicts as errors: what the calls of a store raise where their twins, `try_…`, answer.

An answer that nobody looks at is a lost write, so a call that could not write says so the loud way.
"""

from __future__ import annotations

from epochal.errors import OutcomeUndetermined, StreamDeleted, WrongExpectedVersion
from epochal.layout.journal.append import ExpectedLock
from epochal.model.aggregates import Lock
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.versions import AtVersion, Expected, ExpectedVersion, Token
from epochal.store.results import Pruned


def made(stream: str, outcome: Outcome, expected: ExpectedVersion) -> Appended:
    """The append that was made, or, raised, what kept it from being made."""
    match outcome:
        case Appended():
            return outcome
        case Conflict():
            raise conflict(stream, outcome, expected)
        case Undetermined(first=first):
            raise OutcomeUndetermined(stream, first)


def removed(stream: str, outcome: Pruned | Conflict, expected: ExpectedVersion) -> Pruned:
    """What was deleted, or, raised, what kept it from being deleted."""
    if isinstance(outcome, Conflict):
        raise conflict(stream, outcome, expected)
    return outcome


def conflict(
    stream: str, outcome: Conflict, expected: ExpectedVersion
) -> StreamDeleted | WrongExpectedVersion:
    """A stream's conflict as an error."""
    if outcome.deleted:
        return StreamDeleted(stream, outcome.version, outcome)
    return WrongExpectedVersion(stream, said(expected), outcome.version, outcome)


def said(expected: ExpectedVersion | ExpectedLock) -> str:
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
        case Lock(version=version, seq_nr=seq_nr):
            return f"version {version} with event {seq_nr} for its last"
