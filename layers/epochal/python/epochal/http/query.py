"""Parameters of a query string: each known, each given once, each of its form."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from epochal.errors import InvalidInput
from epochal.http.document import no_document
from epochal.http.fields import UnknownName, printable
from epochal.http.operation import Request

DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 10_000
"""Events of a page. Most pages of the usual 300 bytes an event reach 4 MB before."""

_DIGITS: Final = re.compile(r"0|[1-9]\d{0,18}", re.ASCII)


class QueryParameters:
    """A request's query parameters."""

    def __init__(self, request: Request, known: Collection[str] = (), *, lists: Collection[str] = ()) -> None:
        """Refuse what is neither `known` nor, to be given any number of times, in `lists`."""
        self._values: dict[str, list[str]] = {}
        for name, value in request.query:
            if name not in known and name not in lists:
                raise UnknownName("query", printable(name), _unknown((*known, *lists)))
            self._values.setdefault(name, []).append(value)
            if name in known and len(self._values[name]) > 1:
                raise InvalidInput(name, "may be given only once")

    def text(self, name: str) -> str | None:
        """A parameter's value; None where it is absent."""
        values = self._values.get(name)
        return None if values is None else values[0]

    def texts(self, name: str) -> tuple[str, ...]:
        """All values of a parameter that may be given more than once."""
        return tuple(self._values.get(name, ()))

    def whole(self, name: str, least: int, most: int) -> int | None:
        """A whole number in plain digits."""
        value = self.text(name)
        if value is None:
            return None
        if not _DIGITS.fullmatch(value) or not least <= int(value) <= most:
            raise InvalidInput(name, f"must be a whole number from {least:,} to {most:,}")
        return int(value)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of `choices`; the first where the parameter is absent."""
        value = self.text(name)
        if value is None:
            return choices[0]
        if value not in choices:
            raise InvalidInput(name, f"must be {' or '.join(choices)}")
        return value

    def flag(self, name: str) -> bool:
        """`true` or `false`; false where the parameter is absent."""
        return self.choice(name, ("false", "true")) == "true"


def _unknown(known: tuple[str, ...]) -> str:
    if not known:
        return "is not known here: this operation takes no query parameters"
    return f"is not known here; known are {', '.join(known)}"


def nothing(request: Request) -> None:
    """Refuse whatever is sent to an operation that takes no input."""
    no_document(request)
    QueryParameters(request)
