"""What the document says of an operation, and the words to say it with."""

from __future__ import annotations

from typing import Final

from epochal.http import problems
from epochal.http.shapes import (
    IDEMPOTENCY_KEY,
    KNOWN_STATES,
    LIMIT,
    MEGABYTES,
    NO_CACHE,
    TAKES_JSON,
    Description,
    Perform,
    header,
    parameter,
)

__all__ = [
    "IDEMPOTENCY_KEY",
    "KNOWN_STATES",
    "LIMIT",
    "MEGABYTES",
    "NO_CACHE",
    "TAKES_JSON",
    "Description",
    "Perform",
    "header",
    "parameter",
]

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
