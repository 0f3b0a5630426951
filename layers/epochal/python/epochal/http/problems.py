"""Every error as a problem document (RFC 9457).

`type` is a stable name, `title` says the same to people, `detail` says what happened this time. `field` and `rule` name
the refused field and the broken rule, `version` is the version of a stream or aggregate. `instance` carries the
correlation id, under which the logs have details: a problem never shows a trace, a table's name or an answer of AWS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.codec.json import dumps
from epochal.errors import (
    CorruptData,
    GroupMissing,
    InvalidInput,
    KeyAhead,
    MissingBody,
    MissingBucket,
    MissingTable,
    Refused,
    TooLarge,
    Unavailable,
)
from epochal.http.operation import PROBLEM, Response
from epochal.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem, with its type, its title and its HTTP status."""

    name: str
    title: str
    status: int

    @property
    def type(self) -> str:
        """URI of the kind, which clients compare."""
        return f"urn:epochal:problem:{self.name}"


INVALID_INPUT: Final = Kind("invalid-input", "The request breaks a rule; nothing was written", 400)
ROUTE_NOT_FOUND: Final = Kind("route-not-found", "There is no such operation", 404)
STREAM_NOT_FOUND: Final = Kind("stream-not-found", "There is no such stream", 404)
EVENT_NOT_FOUND: Final = Kind("event-not-found", "There is no such event", 404)
TAG_NOT_FOUND: Final = Kind("tag-not-found", "No event has this tag", 404)
TIMER_NOT_FOUND: Final = Kind("timer-not-found", "No timer of this name is pending", 404)
PARTITION_NOT_FOUND: Final = Kind("partition-not-found", "There is no such partition", 404)
GROUP_NOT_FOUND: Final = Kind("group-not-found", "No reaction of this name has begun", 404)
METHOD_NOT_ALLOWED: Final = Kind("method-not-allowed", "The path has no such method", 405)
VERSION_CONFLICT: Final = Kind(
    "version-conflict", "The stream is not at the version that the writer expected", 409
)
CONDITION_FAILED: Final = Kind("condition-failed", "Events that the condition forbids were appended", 409)
UNDETERMINED: Final = Kind("undetermined", "Whether the append was made can no longer be determined", 409)
STREAM_DELETED: Final = Kind("stream-deleted", "The stream was deleted", 410)
PRECONDITION_FAILED: Final = Kind(
    "precondition-failed", "The stream is not in the state that the header names", 412
)
TOO_LARGE: Final = Kind("too-large", "The request is over a limit; nothing was written", 413)
UNSUPPORTED_MEDIA: Final = Kind("unsupported-media-type", "The body is not JSON in UTF-8", 415)
INTERNAL: Final = Kind("internal", "An internal error occurred", 500)
MISSING_BODY: Final = Kind("missing-body", "A body is gone from the bucket", 500)
CORRUPT_DATA: Final = Kind("corrupt-data", "The stored data cannot be read", 500)
UNAVAILABLE: Final = Kind("unavailable", "The store cannot be reached or is throttling", 503)
NOT_DEPLOYED: Final = Kind("not-deployed", "The store is not set up", 503)

KINDS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
"""All kinds of problems, in this order."""

RETRY_SECONDS: Final = "1"
"""Value of the header `Retry-After`, in seconds. DynamoDB throttles by the second."""

_MAYBE: Final = (
    "a write may have been applied: repeat it with the same Idempotency-Key or event ids, or read first"
)


class Problem(Exception):
    """Ends a request with a problem document; never raised outside of `epochal.http`."""

    def __init__(
        self,
        kind: Kind,
        detail: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        figures: Mapping[str, float] | None = None,
        **members: Any,
    ) -> None:
        """Describe the problem of a request.

        Args:
            detail: what happened this time; None for nothing beyond the title.
            headers: headers of the answer.
            figures: metrics of the request, by name.
            members: further members of the document.
        """
        super().__init__(detail or kind.title)
        self.kind = kind
        self.detail = detail
        self.headers = headers or {}
        self.figures = figures or {}
        self.members = members


class UnsupportedMedia(InvalidInput):
    """A body has a media type, charset or content coding that the API does not read."""


_SENT_AS: Final = {"idempotency_key": "Idempotency-Key"}
"""Names over HTTP of the library's arguments, where they differ."""


def problem_of(error: Exception) -> Problem:
    """Return the problem that an error is answered with.

    An unforeseen error is an internal problem without details.
    """
    match error:
        case Problem():
            return error
        case TooLarge():
            return Problem(
                TOO_LARGE, str(error), field=error.field, rule=error.rule, size=error.size, limit=error.limit
            )
        case InvalidInput():
            kind = UNSUPPORTED_MEDIA if isinstance(error, UnsupportedMedia) else INVALID_INPUT
            field = _SENT_AS.get(error.field, error.field)
            return Problem(kind, f"{field}: {error.rule}", field=field, rule=error.rule)
        case GroupMissing():
            return Problem(GROUP_NOT_FOUND)
        case Unavailable():
            return Problem(UNAVAILABLE, _detail_of(error), headers={"Retry-After": RETRY_SECONDS})
        case MissingTable() | MissingBucket():
            return Problem(NOT_DEPLOYED, "a table or bucket is missing; deploy first, or check the settings")
        case MissingBody():
            return Problem(
                MISSING_BODY, "an object to which the store refers was deleted from the bucket by other means"
            )
        case Refused():
            return Problem(INTERNAL, "the function lacks a permission")
        case CorruptData():
            return Problem(CORRUPT_DATA, "the stored data breaks the format; the logs name the item")
        case _:
            return Problem(INTERNAL)


def _detail_of(error: Unavailable) -> str:
    """Say what a caller should do about a store that was not available."""
    if isinstance(error, KeyAhead):
        return error.cause
    return _MAYBE if error.maybe_applied else "it did not answer in time: try again"


def fault_of(error: Exception) -> dict[str, str]:
    """Return the type and detail of the problem of one unreadable event, to be shown among other events."""
    return {"type": problem_of(error).kind.type, "detail": str(error)}


def problem_response(problem: Problem, correlation_id: str) -> Response:
    """Build the response that carries a problem document (RFC 9457).

    Args:
        correlation_id: id under which the logs say more about the request.
    """
    kind = problem.kind
    members = {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        **({} if problem.detail is None else {"detail": problem.detail}),
        "instance": f"urn:epochal:request:{correlation_id}",
        **problem.members,
    }
    return Response(
        status=kind.status,
        body=dumps(members).decode(),
        media=PROBLEM,
        headers=problem.headers,
        figures=problem.figures,
    )
