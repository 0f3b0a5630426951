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


def must_be(kind: type | tuple[type, ...], value: object, field: str, rule: str) -> None:
    """Raise `InvalidInput` unless `value` is of the kind; the rule is what follows "must be"."""
    if not isinstance(value, kind):
        raise InvalidInput(field, f"must be {rule}, not {type(value).__name__}")


def must_be_whole(value: object, field: str, least: int = 0, most: int = MAX_WHOLE) -> None:
    """Raise `InvalidInput` unless `value` is a whole number in these bounds. True is none, nor is 1.0."""
    if isinstance(value, bool):
        raise InvalidInput(field, "must be a number, not bool")
    must_be(int, value, field, "a number")
    if isinstance(value, int) and value < least:
        raise InvalidInput(field, "must not be negative" if least == 0 else f"must be at least {least:,}")
    if isinstance(value, int) and value > most:
        raise InvalidInput(field, f"must be at most {most:,}")


def must_be_list(kind: type, values: object, field: str) -> None:
    """Raise `InvalidInput` unless `values` is a list or another sequence of the kind; a text is none."""
    rule = f"a list of {kind.__name__}"
    if isinstance(values, str | bytes):
        raise InvalidInput(field, f"must be {rule}, not {type(values).__name__}")
    must_be(Sequence, values, field, rule)
    if isinstance(values, Sequence):
        for position, each in enumerate(values):
            must_be(kind, each, f"{field}[{position}]", f"{kind.__name__}")


def must_be_texts(values: Sequence[str], longest: int, field: str) -> None:
    """Raise `InvalidInput` unless `values` is a list of texts that can be stored, each of 1 to so many bytes."""
    must_be_list(str, values, field)
    for each in values:
        must_be_text(each, longest, field)


def must_be_names(values: object, field: str) -> None:
    """Raise `InvalidInput` unless `values` is a collection of texts; a text by itself is one of its letters."""
    if isinstance(values, str | bytes):
        raise InvalidInput(field, "must be a list of names, not one")
    must_be(Collection, values, field, "a list of names")
    if isinstance(values, Collection):
        for each in values:
            must_be(str, each, field, "a list of names")


def must_be_text(value: object, longest: int, field: str) -> None:
    """Raise `InvalidInput` unless `value` is text that can be stored, of 1 to so many bytes."""
    must_be(str, value, field, "text")
    try:
        size = len(str(value).encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(field, "must be text that UTF-8 can hold, without lone surrogates") from error
    if not 0 < size <= longest:
        raise InvalidInput(field, f"must be 1 to {longest:,} bytes")
