"""Rules that settings obey: each takes what is in `cdk.json` and returns the value, or raises.

The error says what would be right and what was found; who asked adds where (`stages.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from types import MappingProxyType
from typing import Any

Rule = Callable[[Any], Any]


def wrong(expected: str, found: object) -> ValueError:
    """The error for `found` where `expected` should be."""
    return ValueError(f"must be {expected}, not {found!r}")


def a_flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong("true or false", value)
    return value


def a_number(least: int, most: int) -> Rule:
    """A whole number from `least` to `most`."""

    def rule(value: object) -> int:
        # JSON's true is an int to Python.
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise wrong(f"a whole number from {least:,} to {most:,}", value)
        return value

    return rule


def or_null(rule: Rule) -> Rule:
    """What obeys `rule`, or null."""
    return lambda value: None if value is None else rule(value)


def one_of(*choices: str | int) -> Rule:
    """One of `choices`."""

    def rule(value: object) -> object:
        # To Python, JSON's true and 1.0 are 1.
        if type(value) not in (str, int) or value not in choices:
            raise wrong("one of " + ", ".join(map(str, choices)), value)
        return value

    return rule


def a_text(pattern: str, meaning: str) -> Rule:
    """Text that matches `pattern` as a whole; `meaning` says so in words."""

    def rule(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise wrong(meaning, value)
        return value

    return rule


def a_list(each: Rule, *, least: int = 0) -> Rule:
    """A list of at least so many elements, all of which obey `each`."""

    def rule(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) < least:
            raise wrong(f"a list of {least} or more" if least else "a list", value)
        return tuple(each(element) for element in value)

    return rule


def a_map(each: Rule, *, keys: Collection[str] | None = None) -> Rule:
    """An object whose every value obeys `each`, and whose keys are among `keys` where these are given."""

    def rule(value: object) -> MappingProxyType[str, Any]:
        if not isinstance(value, dict):
            raise wrong("an object", value)
        if keys is not None and (strangers := sorted(set(value) - set(keys))):
            raise wrong(f"an object with keys among {', '.join(keys)}", strangers[0])
        return MappingProxyType({key: each(element) for key, element in value.items()})

    return rule
