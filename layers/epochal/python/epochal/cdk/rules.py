"""Rules that settings obey, and the error of a setting that breaks one.

A rule takes a value of `cdk.json` and returns the setting's value, or raises `ValueError`. The error says what is
allowed and what the value is; the caller adds the setting's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from epochal.lazy_dataclasses import field, fields

Rule = Callable[[Any], Any]


def wrong(expected: str, value: object) -> ValueError:
    """Return the error that says `expected` where `value` breaks a rule."""
    return ValueError(f"must be {expected}, not {value!r}")


class BrokenMember(ValueError):
    """A member within a setting breaks its rule.

    Attributes:
        path: names of the members that lead to the value, and places in lists.
    """

    def __init__(self, path: tuple[str, ...], rule: str) -> None:
        super().__init__(rule)
        self.path = path


def _member(name: str, rule: Rule, value: object) -> Any:
    """Parse a member of an object by its rule; the error has the name of the member."""
    try:
        return rule(value)
    except ValueError as error:
        inner = error.path if isinstance(error, BrokenMember) else ()
        raise BrokenMember((name, *inner), str(error)) from None


def _element(place: int, rule: Rule, value: object) -> Any:
    """Parse an element of a list by its rule; the error of a member within has the place of the element."""
    try:
        return rule(value)
    except BrokenMember as error:
        raise BrokenMember((str(place), *error.path), str(error)) from None


def a_flag(value: object) -> bool:
    """Return the value as a boolean, or raise `ValueError`."""
    if not isinstance(value, bool):
        raise wrong("true or false", value)
    return value


def a_number(least: int, most: int) -> Rule:
    """Make a rule that admits whole numbers from `least` to `most`."""

    def rule(value: object) -> int:
        """Return the value if it is a whole number within the bounds, or raise `ValueError`."""
        # Python takes JSON's true for an int.
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise wrong(f"a whole number from {least:,} to {most:,}", value)
        return value

    return rule


def or_null(rule: Rule) -> Rule:
    """Make a rule that admits null besides the values of another rule."""
    return lambda value: None if value is None else rule(value)


def one_of(*choices: str | int) -> Rule:
    """Make a rule that admits only the given texts or numbers."""

    def rule(value: object) -> object:
        """Return the value if it is one of the choices, or raise `ValueError`."""
        # Python takes JSON's true and 1.0 for 1.
        if type(value) not in (str, int) or value not in choices:
            raise wrong("one of " + ", ".join(map(str, choices)), value)
        return value

    return rule


def a_text(pattern: str, meaning: str) -> Rule:
    """Make a rule that admits text that matches `pattern` as a whole.

    Args:
        meaning: the pattern in words, for errors.
    """

    def rule(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise wrong(meaning, value)
        return value

    return rule


def a_list(element_rule: Rule, *, least: int = 0) -> Rule:
    """Make a rule that admits lists of at least `least` elements that obey the rule `element_rule`."""

    def rule(value: object) -> tuple[Any, ...]:
        """Return the list as a tuple of parsed elements, or raise `ValueError`."""
        if not isinstance(value, list) or len(value) < least:
            raise wrong(f"a list of {least} or more" if least else "a list", value)
        return tuple(_element(place, element_rule, element) for place, element in enumerate(value))

    return rule


def a_map(element_rule: Rule, *, keys: Collection[str] | None = None) -> Rule:
    """Make a rule that admits objects whose values obey the rule `element_rule`.

    Args:
        keys: allowed keys; None for any.
    """

    def rule(value: object) -> MappingProxyType[str, Any]:
        """Return the object as a read-only mapping of parsed values, or raise `ValueError`."""
        if not isinstance(value, dict):
            raise wrong("an object", value)
        _refuse_strangers(value, keys)
        return MappingProxyType({key: _member(key, element_rule, element) for key, element in value.items()})

    return rule


def _refuse_strangers(value: Mapping[str, Any], keys: Collection[str] | None) -> None:
    """Raise `BrokenMember` if an object has a key that is not among those; None allows any."""
    for key in value:
        if keys is not None and key not in keys:
            raise BrokenMember((str(key),), f"is not a known member; {list_alternatives(str(key), keys)}")


def setting_field(default: Any, rule: Rule) -> Any:
    """Declare a dataclass field that is a setting, with its default and its rule."""
    if isinstance(default, Mapping):
        return field(default_factory=lambda: default, metadata={"rule": rule})
    return field(default=default, metadata={"rule": rule})


def declared_rules(settings: type) -> dict[str, Rule]:
    """Return the rules of the settings that a class declares with `setting_field`, by name."""
    return {
        setting.name: setting.metadata["rule"] for setting in fields(settings) if "rule" in setting.metadata
    }


def parse_members(rules: Mapping[str, Rule], value: object) -> dict[str, Any]:
    """Parse the members of an object, each by its own rule; refuse members without a rule."""
    a_map(lambda element: element, keys=rules)(value)
    assert isinstance(value, dict)  # noqa: S101  # the rule above says so
    return {name: _member(name, rules[name], element) for name, element in value.items()}


class BadSetting(ValueError):
    """A setting breaks its rule; nothing was synthesized.

    Attributes:
        name: name of the setting.
        rule: the broken rule.
    """

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"{name} {rule}")
        self.name = name
        self.rule = rule


def bad_setting(name: str, error: ValueError) -> BadSetting:
    """Return the error of a setting whose rule raised `error`, with the name of the member that broke it."""
    path = error.path if isinstance(error, BrokenMember) else ()
    return BadSetting(".".join((name, *path)), str(error))


def list_alternatives(name: str, allowed: Iterable[str]) -> str:
    """Return the part of an error message that suggests known names instead of `name`, the nearest first.

    All names are listed if they are few, or if none is near.
    """
    names = list(allowed)
    part_of = re.compile(rf"(.*_)?{re.escape(name)}(_.*)?")
    nearest = [one for one in names if part_of.fullmatch(one)] or get_close_matches(name, names, n=1)
    suggestion = f"did you mean {', '.join(nearest[:_SUGGESTED])}?" if nearest else ""
    if nearest and len(names) > _LISTED:
        return suggestion
    return f"{suggestion}{' ' if nearest else ''}known names are {', '.join(names)}"


_SUGGESTED = 4
"""Most names that an error suggests."""

_LISTED = 25
"""Most names that an error lists beside those that it suggests."""
