"""Problems of operations on one stream: it does not exist, was deleted, or is not in the expected state."""

from __future__ import annotations

from collections.abc import Mapping

from epochal.http import answers, problems
from epochal.http.preconditions import etag
from epochal.http.problems import Problem
from epochal.model.outcomes import Conflict
from epochal.plan.values import Units


def conflict_problem(stream: str, conflict: Conflict, units: Units, *, in_header: bool) -> Problem:
    """Return the problem of a write whose expected version was wrong, or whose stream was deleted.

    The status is 412 for an expectation in a header, 409 for one in the body, and 410 for a deleted stream.
    """
    figures = {"Conflicts": 1.0, **answers.consumed(units)}
    if conflict.deleted:
        return deleted_problem(stream, conflict.version, figures)
    token = conflict.token
    return Problem(
        problems.PRECONDITION_FAILED if in_header else problems.VERSION_CONFLICT,
        f"{stream} is at version {conflict.version}",
        headers={} if token is None else {"ETag": etag(token)},
        figures=figures,
        stream=stream,
        version=conflict.version,
        **({} if token is None else {"token": token.text()}),
    )


def deleted_problem(stream: str, version: int, figures: Mapping[str, float]) -> Problem:
    """Return the problem of a deleted stream, with the version at which it was deleted."""
    return Problem(
        problems.STREAM_DELETED,
        f"{stream} was deleted at version {version} and takes no more events",
        figures=figures,
        stream=stream,
        version=version,
    )


def missing_problem(stream: str) -> Problem:
    """Return the problem of a stream that does not exist."""
    return Problem(problems.STREAM_NOT_FOUND, f"{stream} has no events", stream=stream)
