"""How a function is declared as an operation of the HTTP API: what it takes, answers and fails with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

from epochal.http.components import Component
from epochal.http.documents import no_document
from epochal.http.operation import Request, Response
from epochal.http.parameters import Parameter
from epochal.http.problems import Kind
from epochal.http.query_strings import QueryString
from epochal.http.schemas import Schema
from epochal.lazy_dataclasses import dataclass, field

R = TypeVar("R")

Perform = Callable[[Any, Request], Response]
"""What performs an operation: on what `opened` of its module made, and a request."""

PARAGRAPH: Final = "\n\n"
"""Between the summary of an operation and its description, in its docstring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class operation:  # noqa: N801  a decorator, named as it reads
    """What a function takes and answers, as its `described`. Its request has no body, unless it `takes` one, and no
    other query parameters than these, which it gets. Its docstring is what the document says of it: a summary, and a
    description.

    Attributes:
        takes, gives: the request's and the answer's body.
        headers: of the answer.
        fails: kinds of problem besides those of every operation.
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
        """The function that is served."""
        declared = {each["name"]: each["schema"] for each in self.parameters if each["in"] == "query"}

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
    """The same operation on another store, of which there is something else to say."""

    @wraps(perform)
    def performed(opened: R, request: Request) -> Response:
        return perform(opened, request)

    performed.__doc__ = f"{(perform.__doc__ or '').partition(PARAGRAPH)[0]}{PARAGRAPH}{description}"
    return performed
