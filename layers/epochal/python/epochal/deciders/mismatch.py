"""What a value broke on its way to JSON or back, and where in the value that is."""

from __future__ import annotations

from reprlib import Repr
from typing import Any, Final

_SHOWN: Final = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 60

NO_VALUE: Final = object()
"""Stands for the value of a mismatch that shows none."""


class Mismatch(ValueError):
    """A value is not what it should be: `path` leads to it, `rule` is what it broke.

    The value itself, `got`, is no part of the message: who reads a stored body may not want it in a log.
    """

    def __init__(self, rule: str, path: str = "", got: Any = NO_VALUE) -> None:
        super().__init__(f"{path}: {rule}" if path else rule)
        self.rule = rule
        self.path = path
        self.got = got

    def inside(self, name: str) -> Mismatch:
        """The same, seen from the value that holds it under `name`."""
        return Mismatch(self.rule, f"{name}.{self.path}" if self.path else name, self.got)

    def with_value(self) -> str:
        """The rule and the value, shortened, for the program that wrote it."""
        if self.got is NO_VALUE:
            return self.rule
        try:
            return f"{self.rule}, got {_SHOWN.repr(self.got)}"
        except ValueError:  # Python shows no integer of so many digits
            return f"{self.rule}, got a value of type {type(self.got).__name__} that is too long to show"
