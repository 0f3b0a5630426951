"""Converts conflicts and undetermined outcomes to errors.

A caller that ignores a returned conflict loses a write. So `append` raises an error where `try_append` returns the
conflict. Callers of `try_append` on one stream do not load this module, unless they write to other tables, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from epochal.errors import (
    ConditionUnmet,
    ConflictError,
    EpochalError,
    InvalidInput,
    InvalidRequest,
    MissingTable,
    OutcomeUndetermined,
    StreamDeleted,
    WrongExpectedVersion,
    WrongTable,
)
from epochal.layout.streams import Also
from epochal.model.capacity import NOTHING, Capacity
from epochal.model.expected_version import AtVersion, Expected, ExpectedVersion, state_meets
from epochal.model.outcomes import Conflict, Undetermined
from epochal.model.stream_append import StreamAppend
from epochal.model.tokens import Token

MAX_NAMED_EVENTS: Final = 3
"""Largest number of events that the message of a refused append names; the error carries all of them."""


def also_conflict(refused: Conflict, capacity: Capacity = NOTHING) -> Conflict:
    """Return the conflict of an append whose `also` conditions failed, with the items as Python values.

    Args:
        refused: the layout's conflict, with the items as they are stored, by their places in `also`.
    """
    from epochal.store.also import plain  # noqa: PLC0415  few appends have anything with them

    items = {place: None if item is None else plain(item) for place, item in refused.unmet.items()}
    return Conflict(unmet=items, capacity=capacity)


def condition_error(outcome: Conflict) -> EpochalError:
    """Make the `ConditionUnmet` for unmet `also` conditions, or the `ConflictError` for matching events."""
    if outcome.unmet:
        return ConditionUnmet(list(outcome.unmet), outcome)
    events = ", ".join(f"{event.type} {event.id}" for event in outcome.events[:MAX_NAMED_EVENTS])
    rest = " and others" if len(outcome.events) > MAX_NAMED_EVENTS else ""
    rule = f"not appended, because stored events match the condition: {events}{rest}"
    return ConflictError(rule, outcome)


def append_error(stream: str, outcome: Conflict | Undetermined, expected: ExpectedVersion) -> EpochalError:
    """Make the error for an append to one stream that was not made, or whose outcome is unknown."""
    if isinstance(outcome, Undetermined):
        error = OutcomeUndetermined(stream, outcome.first)
        error.capacity = outcome.capacity
        return error
    if outcome.unmet or outcome.events:
        return condition_error(outcome)
    if outcome.deleted:
        return StreamDeleted(stream, outcome.version, outcome)
    return WrongExpectedVersion(stream, describe_expected(expected), outcome.version, outcome)


def check_state(stream: str, expected: ExpectedVersion, token: Token | None) -> None:
    """Raise `ConflictError` unless a loaded token is as expected; a token of None means no stream."""
    version, etag = (None, None) if token is None else (token.version, token.etag)
    if not state_meets(expected, version, etag):
        raise append_error(stream, Conflict(version=version or 0, token=token), expected)


def append_all_error(appends: Sequence[StreamAppend], outcome: Conflict | Undetermined) -> EpochalError:
    """Make the error for an append to several streams from the outcome of the first one that failed.

    The error names the first stream; a conflict carries the outcomes of all streams.
    """
    if isinstance(outcome, Conflict) and not outcome.streams:
        return condition_error(outcome)
    each_of: Mapping[str, Conflict | Undetermined] = outcome.streams
    stream, first = next(iter(each_of.items()))
    error = append_error(
        stream, first, next(append.expected for append in appends if append.stream == stream)
    )
    error.capacity = outcome.capacity
    if isinstance(error, ConflictError):
        error.outcome = outcome
    return error


def describe_expected(expected: ExpectedVersion) -> str:
    """Describe an expected version in words, for an error message."""
    match expected:
        case Expected.ANY:
            return "any version of an existing stream"
        case Expected():
            return str(expected.value)
        case AtVersion(version=version):
            return f"version {version}"
        case Token(version=version):
            return f"version {version} with the etag of its token"


@contextmanager
def explain_also_errors(also: Also) -> Iterator[None]:
    """Turn DynamoDB's errors in the block into errors that name the write of `also` at fault.

    Only DynamoDB knows which attributes are a table's key, so such faults show only there.

    Raises:
        InvalidInput: two writes on one item, or a key that is not that of the table.
        MissingTable: a table of `also` does not exist.
    """
    try:
        yield
    except InvalidRequest as error:
        if also and "multiple operations on one item" in error.message:
            raise InvalidInput("also", "must not have two writes to one item") from error
        raise
    except (MissingTable, WrongTable) as error:
        # DynamoDB may not tell which table is wrong. The store's own tables have been checked by now.
        places = [place for place, write in enumerate(also) if write.table in error.table.split(", ")]
        if not places:
            raise
        tables = ", ".join(sorted({also[place].table for place in places}))
        if isinstance(error, MissingTable):
            raise MissingTable(tables, error.where) from error
        field = f"also[{places[0]}]" if len(places) == 1 else "also"
        raise InvalidInput(field, f"the attributes of the key are not those of table {tables}") from error
