"""What the document says of an operation, and the words to say it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from epochal.http import problems
from epochal.http.openapi.shapes import Schema, text, whole
from epochal.http.operation import Request, Response
from epochal.http.problems import Kind
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT
from epochal.settings import KEY_WINDOW_SECONDS, RESPONSE_BYTES

Parameter = dict[str, Any]

Perform = Callable[[Any, Request], Response]
"""What performs an operation, by which its description is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What an operation takes and answers.

    Attributes:
        takes, gives: names of the schemas of the request's and the answer's body.
        headers: of the answer.
        fails: kinds of problem besides those of every operation.
    """

    summary: str
    description: str
    gives: str
    takes: str | None = None
    status: int = 200
    parameters: tuple[Parameter, ...] = ()
    headers: Mapping[str, Schema] = field(default_factory=dict)
    not_modified: bool = False
    fails: tuple[Kind, ...] = ()


ALWAYS: Final = (
    problems.INVALID_INPUT,
    problems.ROUTE_NOT_FOUND,
    problems.METHOD_NOT_ALLOWED,
    problems.INTERNAL,
    problems.CORRUPT_DATA,
    problems.UNAVAILABLE,
    problems.NOT_DEPLOYED,
)
"""Problems that any operation may answer with."""

TAKES_JSON: Final = (problems.TOO_LARGE, problems.UNSUPPORTED_MEDIA)
MEGABYTES: Final = RESPONSE_BYTES // 1024**2
LIMIT: Final = whole("", 1, MAX_LIMIT, default=DEFAULT_LIMIT)
NO_CACHE: Final = {"Cache-Control": text("`no-cache`: to be kept, but asked about each time.")}


def parameter(where: str, name: str, schema: Schema, *, required: bool = False) -> Parameter:
    """A parameter of a path, a query or the headers."""
    description = schema["description"]
    inner = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": where, "required": required, "description": description, "schema": inner}


def header(name: str, description: str, **more: Any) -> Parameter:
    """A header of the request."""
    return parameter("header", name, text(description, **more))


_TAG: Final = r'(W/)?"[!#-~]*"'
KNOWN_STATES: Final = header(
    "If-None-Match",
    "ETags that the caller has a state of already, or `*`.",
    pattern=rf"(\*|{_TAG}( *, *{_TAG})*)",
)


IDEMPOTENCY_KEY: Final = header(
    "Idempotency-Key",
    "Repeats of the request with the same key and content are answered like the first for "
    f"{KEY_WINDOW_SECONDS // 3600} hours, whatever they expect.",
    most=255,
    pattern=r"[\x21-\x7e]{1,255}",
)
