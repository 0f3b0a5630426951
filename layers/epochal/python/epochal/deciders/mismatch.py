"""The error of a value that does not survive JSON: the rule it breaks, and where in the value."""

from __future__ import annotations

from reprlib import Repr
from typing import Any, Final

_SHOWN: Final = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 60

NO_VALUE: Final = object()
"""Placeholder for the value of a mismatch without one."""

MISSING: Final = "is missing"
"""Rule that an object without a required field breaks."""


class Mismatch(ValueError):
    """A value breaks a rule: `path` leads to it, `rule` says what is wrong.

    The value itself, `got`, is not in the message: a stored body may not belong in a log.
    """

    def __init__(self, rule: str, path: str = "", got: Any = NO_VALUE) -> None:
        """Form the message from path and rule, without the value."""
        super().__init__(f"{path}: {rule}" if path else rule)
        self.rule = rule
        self.path = path
        self.got = got

    def inside(self, name: str) -> Mismatch:
        """Return the same mismatch with `name` put before its path."""
        return Mismatch(self.rule, f"{name}.{self.path}" if self.path else name, self.got)

    def with_value(self) -> str:
        """Return the rule with the value, shortened, for the program that wrote it."""
        if self.got is NO_VALUE:
            return self.rule
        try:
            return f"{self.rule}, got {_SHOWN.repr(self.got)}"
        except ValueError:  # Python shows no integer of so many digits
            return f"{self.rule}, got a value of type {type(self.got).__name__} that is too long to show"
