"""Records of operations, and requests and responses as plain values, which need no gateway or network in tests.

`http.routes` lists the records of all operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from typing import Any, Final, Literal, TypeAlias

from epochal.lazy_dataclasses import dataclass, field

Function = Literal["append", "replay", "feed"]
Method = Literal["GET", "POST", "PUT", "DELETE"]
Scope = Literal["append", "manage", "read", "feed"]

Perform: TypeAlias = "Callable[[Any, Request], Response]"
"""Function that performs an operation: takes what the record's `opened` returned, and a request."""

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"

_AS_PAGES: Final = ("streams", "tagged")
"""Stores of a deployment whose names are left out of the names of their operations."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API: its route, the function that performs it, and who serves it.

    Attributes:
        path: path as API Gateway writes it, with parameters in braces.
        perform: function that performs the operation, from whose name the operation's name is made.
        opened: function that returns what `perform` runs on in a deployment. It takes the deployment, and `store` if
            the record has one.
        function: Lambda function that serves the operation.
        table: kind of the table that the operation needs; empty for none. A stage may leave layouts out.
        scope: permission that a caller needs. With IAM it is a set of routes in a policy; with JWT a token must carry
            one of the scopes that the deployment maps it to.
        requests_per_second: rate limit of the operation, where one request can cost the store much more than its
            sender; None for none.
        rare: whether the store is opened at the first request instead of at a cold start: most deployments never need
            it.
        store: name of the deployment's property that holds the store, where one module serves several. It is part of
            the operation's name but for the stores in `_AS_PAGES`.
    """

    method: Method
    path: str
    perform: Perform
    _: KW_ONLY
    opened: Callable[..., Any]
    function: Function
    scope: Scope
    table: str = ""
    requests_per_second: int | None = None
    rare: bool = False
    store: str = ""

    @property
    def name(self) -> str:
        """Name of the operation in logs, metrics and the OpenAPI document."""
        words = self.perform.__name__
        if self.store not in ("", *_AS_PAGES):
            words = f"{words}_of_{self.store}"
        first, *rest = words.split("_")
        return first + "".join(map(str.capitalize, rest))

    @property
    def module(self) -> str:
        """Name of the module that performs the operation."""
        return self.perform.__module__

    @property
    def key(self) -> str:
        """Route key of the operation in API Gateway."""
        return f"{self.method} {self.path}"

    def parameters(self, path: str) -> dict[str, str] | None:
        """Match a path against the operation's; return the path's parameters, or None for no match.

        A value may be empty or hold anything but `/`.
        """
        segments, pattern = path.split("/"), self.path.split("/")
        if len(segments) != len(pattern):
            return None
        values: dict[str, str] = {}
        for value, part in zip(segments, pattern, strict=True):
            if part.startswith("{"):
                values[part[1:-1]] = value
            elif value != part:
                return None
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of an operation, as plain values.

    Attributes:
        path: values of the path's parameters, percent-decoded once.
        query: names and values of query parameters in the order sent; a name may be repeated.
        headers: values of headers by lower-case name.
        body: body as it was sent, with any base64 of the transport decoded.
        seconds: seconds within which the request must be answered.
    """

    path: Mapping[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 25.0

    def header(self, name: str) -> str | None:
        """Return a header's value without the spaces around it; None where the header is missing."""
        value = self.headers.get(name.lower())
        return None if value is None else value.strip(" \t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response of an operation, as plain values.

    Attributes:
        status: HTTP status.
        body: JSON text; None for none.
        media: media type of the body.
        headers: values of headers by name.
        figures: metrics of the request, by name.
    """

    status: int
    body: str | None = None
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
