"""How a function is declared as an operation of the HTTP API: what it takes, answers and fails with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Final, TypeVar

from epochal.http.components import Component
from epochal.http.documents import no_document
from epochal.http.operation import Request, Response
from epochal.http.parameters import Parameter
from epochal.http.problems import Kind
from epochal.http.query_strings import QueryString
from epochal.http.schemas import Schema
from epochal.lazy_dataclasses import dataclass, field

R = TypeVar("R")

PARAGRAPH: Final = "\n\n"
"""Separator between the summary of an operation and its description in the docstring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class operation:  # noqa: N801  a decorator, named as it reads
    """Decorator that declares what an operation's function takes, answers and fails with.

    The declaration is kept as the function's attribute `described`. The function gets a `QueryString` of the declared
    query parameters; others are refused, and so is a body unless the operation `takes` one. The function's docstring
    is published in the OpenAPI document: a summary, and a description.

    Attributes:
        gives: body of the answer.
        takes: body of the request; None for none.
        status: HTTP status of a success.
        headers: headers of the answer, and their schemas.
        not_modified: whether the answer may be 304.
        fails: kinds of problems besides those of every operation.
    """

    gives: Component
    takes: Component | None = None
    status: int = 200
    parameters: tuple[Parameter, ...] = ()
    headers: Mapping[str, Schema] = field(default_factory=dict)
    not_modified: bool = False
    fails: tuple[Kind, ...] = ()

    def __call__(
        self, perform: Callable[[R, Request, QueryString], Response]
    ) -> Callable[[R, Request], Response]:
        """Wrap a function so that unexpected bodies and query parameters are refused before it runs."""
        declared = {
            parameter["name"]: parameter["schema"]
            for parameter in self.parameters
            if parameter["in"] == "query"
        }

        @wraps(perform)
        def performed(opened: R, request: Request) -> Response:
            if self.takes is None:
                no_document(request)
            return perform(opened, request, QueryString(request, declared))

        vars(performed)["described"] = self
        return performed


def described(
    perform: Callable[[R, Request], Response], description: str
) -> Callable[[R, Request], Response]:
    """Return a copy of an operation's function with another description, for another store.

    Args:
        description: paragraph that replaces the docstring's description; the summary stays.
    """

    @wraps(perform)
    def performed(opened: R, request: Request) -> Response:
        return perform(opened, request)

    performed.__doc__ = f"{(perform.__doc__ or '').partition(PARAGRAPH)[0]}{PARAGRAPH}{description}"
    return performed
