"""Checks of what a caller hands in.

Type checkers find a wrong kind before a program runs. Without one, or at a prompt, the caller gets the field and the
rule, not an `AttributeError` from the depths or, worse, an answer: a text is a sequence of letters, and an unknown
expectation is equal to no stream. So values check themselves when they are made, and stores check their arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from epochal.errors import InvalidInput

MAX_WHOLE: Final = 2**53 - 1
"""The greatest whole number that every reader of JSON reads exactly; nothing counted here comes near it."""

_LONGEST_SHOWN: Final = 10**20
"""Integers from here on are not written out in error messages."""


def must_be(kind: type | tuple[type, ...], value: object, field: str, rule: str) -> None:
    """Raise `InvalidInput` unless `value` is of the kind; the rule is what follows "must be"."""
    if not isinstance(value, kind):
        raise InvalidInput(field, f"must be {rule}, not {type(value).__name__}")


def must_be_whole(value: object, field: str, least: int = 0, most: int = MAX_WHOLE) -> None:
    """Raise `InvalidInput` unless `value` is an integer within bounds; True and 1.0 are not."""
    if isinstance(value, bool):
        raise InvalidInput(field, "must be a number, not bool")
    must_be(int, value, field, "a number")
    if isinstance(value, int) and value < least:
        raise InvalidInput(field, f"must be at least {least:,}, got {_shown(value)}")
    if isinstance(value, int) and value > most:
        raise InvalidInput(field, f"must be at most {most:,}, got {_shown(value)}")


def _shown(number: int) -> str:
    """Format an integer for an error message; Python refuses to format one of thousands of digits."""
    return f"{number:,}" if abs(number) < _LONGEST_SHOWN else "a number of more than 20 digits"


def must_be_seconds(value: object, field: str) -> None:
    """Raise `InvalidInput` unless `value` is a number of seconds; NaN is not."""
    if isinstance(value, bool) or value != value:  # noqa: PLR0124  only NaN is not equal to itself
        raise InvalidInput(field, f"must be seconds, not {value}")
    must_be((int, float), value, field, "seconds")


def must_be_numbers(values: Collection[int], field: str) -> tuple[int, ...]:
    """Return the values as a tuple; raise `InvalidInput` unless they are distinct integers of 0 or more."""
    if isinstance(values, str | bytes):
        raise InvalidInput(field, f"must be a list of numbers, not {type(values).__name__}")
    must_be(Collection, values, field, "a list of numbers")
    for number in values:
        must_be_whole(number, field)
    if len({*values}) < len(values):
        raise InvalidInput(field, "must not contain a number twice")
    return tuple(values)


def must_be_list(kind: type, values: object, field: str) -> None:
    """Raise `InvalidInput` unless `values` is a sequence of the kind; a single text is not one."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        rule = "a list" if kind is object else f"a list of {kind.__name__}"
        raise InvalidInput(field, f"must be {rule}, not {type(values).__name__}")
    for position, item in enumerate(values):
        if not isinstance(item, kind):
            rule = f"must be {kind.__name__}, not {type(item).__name__}"
            raise InvalidInput(f"{field}[{position}]", rule)


def must_be_texts(values: Sequence[str], longest: int, field: str) -> None:
    """Raise `InvalidInput` unless `values` is a list of storable texts of 1 to `longest` bytes each."""
    must_be_list(str, values, field)
    for text in values:
        must_be_text(text, longest, field)


def must_be_names(values: object, field: str) -> None:
    """Raise `InvalidInput` unless `values` is a collection of texts; a single text is not one."""
    if isinstance(values, str | bytes):
        raise InvalidInput(field, "must be a list of names, not one name")
    must_be(Collection, values, field, "a list of names")
    if isinstance(values, Collection):
        for name in values:
            must_be(str, name, field, "a list of names")


def must_be_text(value: object, longest: int, field: str) -> None:
    """Raise `InvalidInput` unless `value` is text that UTF-8 can store, of 1 to `longest` bytes."""
    must_be(str, value, field, "text")
    try:
        size = len(str(value).encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(
            field, "must be text without lone surrogates, which UTF-8 cannot encode"
        ) from error
    if not 0 < size <= longest:
        raise InvalidInput(field, f"must be 1 to {longest:,} bytes, got {size:,}")
