"""Query strings: each parameter is read by its schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.http.nodes import UnknownName, printable
from epochal.http.operation import Request

_DIGITS: Final = re.compile(r"0|[1-9]\d{0,18}", re.ASCII)


class QueryString:
    """The parameters of a request's query string, each declared, and read by its schema.

    A parameter may be given once; one that is an array may be repeated.
    """

    def __init__(self, request: Request, declared: Mapping[str, Mapping[str, Any]]) -> None:
        """Collect a request's query parameters; refuse unknown ones, and repeated ones unless they are lists.

        Args:
            declared: schemas of the parameters by name.

        Raises:
            UnknownName: a parameter is not declared.
            InvalidInput: one that is no array is given more than once.
        """
        self._declared = declared
        self._values: dict[str, list[str]] = {}
        for name, value in request.query:
            if name not in declared:
                raise UnknownName("query", printable(name), _unknown(declared))
            self._values.setdefault(name, []).append(value)
            if len(self._values[name]) > 1 and not _is_list(declared[name]):
                raise InvalidInput(name, "may be given only once")

    def text(self, name: str) -> str | None:
        """Return a parameter's value as text; None where it is absent."""
        values = self._values.get(name)
        return None if values is None else values[0]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return all values of a parameter that may be repeated."""
        return tuple(self._values.get(name, ()))

    def whole(self, name: str) -> int | None:
        """Return a parameter as a whole number in bounds, None if absent; raise `InvalidInput` otherwise.

        Raises:
            InvalidInput: it is not written in plain digits, or out of bounds.
        """
        value, schema = self.text(name), self._declared[name]
        if value is None:
            return None
        least, most = schema["minimum"], schema["maximum"]
        if not _DIGITS.fullmatch(value) or not least <= int(value) <= most:
            raise InvalidInput(name, f"must be a whole number from {least:,} to {most:,}")
        return int(value)

    def limit(self) -> int:
        """Return the parameter `limit`, the most items of a page, or its default."""
        limit, default = self.whole("limit"), self._declared["limit"]["default"]
        return int(default) if limit is None else limit

    def choice(self, name: str) -> str:
        """Return a parameter that is one of its schema's choices; the first choice where it is absent."""
        return self._one_of(name, tuple(self._declared[name]["enum"]))

    def flag(self, name: str) -> bool:
        """Whether a parameter is `true`; false where it is absent."""
        return self._one_of(name, ("false", "true")) == "true"

    def _one_of(self, name: str, choices: tuple[str, ...]) -> str:
        """Return a parameter that is one of `choices`, the first where absent; else raise `InvalidInput`."""
        value = self.text(name)
        if value is None:
            return choices[0]
        if value not in choices:
            raise InvalidInput(name, f"must be {' or '.join(choices)}")
        return value


def _unknown(declared: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the rule for an unknown parameter, which lists the declared ones."""
    if not declared:
        return "is not a known parameter: this operation takes no query parameters"
    # Parameters that may be repeated are listed last.
    names = sorted(declared, key=lambda name: _is_list(declared[name]))
    return f"is not a known parameter; known parameters are {', '.join(names)}"


def _is_list(schema: Mapping[str, Any]) -> bool:
    """Whether a parameter may be repeated."""
    return schema.get("type") == "array"
