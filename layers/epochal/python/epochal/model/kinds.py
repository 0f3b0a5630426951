"""Whether what a caller hands in is of the kind that it has to be.

Type checkers say so before a program runs; whoever has none, or sits at a prompt, gets the field and the rule here,
and not an `AttributeError` from the depths or, worse, an answer: a text is a sequence of letters, and an unknown
expectation is equal to no stream. So values check themselves when they are made, and stores what they are called with.
"""

from __future__ import annotations

from collections.abc import Sequence

from epochal.errors import InvalidInput


def must_be(kind: type | tuple[type, ...], value: object, field: str, rule: str) -> None:
    """Raise `InvalidInput` unless `value` is of the kind; the rule is what follows "must be"."""
    if not isinstance(value, kind):
        raise InvalidInput(field, f"must be {rule}, not {type(value).__name__}")


def must_be_list(kind: type, values: object, field: str) -> None:
    """Raise `InvalidInput` unless `values` is a list or another sequence of the kind; a text is none."""
    rule = f"a list of {kind.__name__}"
    if isinstance(values, str | bytes):
        raise InvalidInput(field, f"must be {rule}, not {type(values).__name__}")
    must_be(Sequence, values, field, rule)
    if isinstance(values, Sequence):
        for position, each in enumerate(values):
            must_be(kind, each, f"{field}[{position}]", f"{kind.__name__}")


def must_be_text(value: object, longest: int, field: str) -> None:
    """Raise `InvalidInput` unless `value` is text that can be stored, of 1 to so many bytes."""
    must_be(str, value, field, "text")
    try:
        size = len(str(value).encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(field, "must be text that UTF-8 can hold, without lone surrogates") from error
    if not 0 < size <= longest:
        raise InvalidInput(field, f"must be 1 to {longest:,} bytes")
