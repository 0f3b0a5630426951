"""JSON that keeps numbers exact: 1.10 stays 1.10, -0 keeps its sign, and integers may have 4,300 digits.

Python's own module reads decimals as floats and so changes them on the way back; simplejson can read them as
`Decimal` and write those as they were. No integer of Python is -0, so that number is read as a `Decimal`, too.

What goes wrong is a `ValueError`, or in writing a `TypeError`: never the end of the stack, or of decimals' arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import simplejson

from epochal.model.negative_zero import has_negative_zero

MARK: Final = b"\xef\xbb\xbf"
"""A byte order mark: no part of JSON. Some writers begin with it, and `loads` passes it over."""


class TooDeep(ValueError):
    """Lists and objects are nested deeper than Python's stack."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its members; raise `ValueError` if a name appears twice."""
    record = dict(pairs)
    if len(record) != len(pairs):
        ((repeated, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"one object has a name twice: {repeated[:64]!r}")
    return record


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# Made once: to make one takes longer than an event does.
_DECODER: Final = simplejson.JSONDecoder(
    parse_float=Decimal, object_pairs_hook=unique, parse_constant=_no_constant
)
_SIGNED_DECODER: Final = simplejson.JSONDecoder(
    parse_float=Decimal,
    parse_int=lambda digits: Decimal(digits) if digits == "-0" else int(digits),
    object_pairs_hook=unique,
    parse_constant=_no_constant,
)
_ENCODER: Final = simplejson.JSONEncoder(
    use_decimal=True,
    ensure_ascii=False,
    allow_nan=False,
    separators=(",", ":"),
    encoding=None,  # type: ignore[arg-type]  # bytes are no JSON; the stubs do not know of None
)


def loads(text: bytes | str) -> Any:
    """Parse JSON exactly: decimals and -0 become `Decimal`; raise `ValueError` also for repeated names.

    Raises `ValueError` on NaN, Infinity and repeated names, on numbers beyond what Python takes, and `TooDeep`.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    try:
        return (_SIGNED_DECODER if has_negative_zero(text) else _DECODER).decode(text)
    except ArithmeticError as error:
        raise ValueError("a number has an exponent that is too large to read") from error
    except RecursionError as error:
        raise TooDeep("lists and objects are nested too deeply") from error


def dumps(value: Any, errors: str = "strict") -> bytes:
    """Encode a value as compact JSON in UTF-8, with decimals written exactly.

    Raises `ValueError` on NaN, Infinity and half of a surrogate pair, `TooDeep`, and `TypeError` on what is not JSON.
    """
    try:
        text: str = _ENCODER.encode(value)
    except RecursionError as error:
        raise TooDeep("lists and objects are nested too deeply") from error
    return text.encode("utf-8", errors)


def dumps_again(value: Any) -> bytes:
    """Encode a value that `loads` has read, with lone surrogates escaped as they were."""
    return dumps(value, "backslashreplace")


def with_members(text: bytes, members: Mapping[str, Any]) -> bytes | None:
    """Add default members to a JSON object, or to empty text; return None if the text is not an object."""
    try:
        present = loads(text) if text else {}
    except ValueError:
        return None
    return dumps({**members, **present}) if isinstance(present, dict) else None
