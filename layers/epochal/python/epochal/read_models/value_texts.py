"""Texts of the values by which a read model is queried, in the order of the values.

Numbers come by size, before texts by code points. A text is `t` and its characters, a number `n` and its figures; a
space ends each, which is below every character that may be in one. The texts are stored in the keys of entries
(FORMATS §6): they outlive the code.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final, TypeAlias

from epochal.errors import InvalidInput
from epochal.model.kinds import must_be_text

Value: TypeAlias = str | int | float | Decimal
"""A value that orders documents: text, or a number; numbers come before text."""

MAX_PARTITION_BYTES: Final = 2_048
MAX_EXPONENT: Final = 4_999

_LOW: Final = re.compile("[\x00-!]")
_NINES: Final = str.maketrans("0123456789", "9876543210")


def written(values: tuple[Any, ...], field: str) -> str:
    """Encode values as text in their order; raise `InvalidInput` for values without an order."""
    return "".join(f"{part(value, field)} " for value in values)


def part(value: Any, field: str) -> str:
    """Encode one value as text that sorts like the value; raise `InvalidInput` if it is no text or number.

    The space that ends it is not included.
    """
    if isinstance(value, str):
        if not value.isascii():
            must_be_text(value, MAX_PARTITION_BYTES, field)
        return "t" + escaped(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InvalidInput(field, f"must be of texts and numbers, not {type(value).__name__}")
    return "n" + _figures(value, field)


def escaped(value: str) -> str:
    """Replace characters up to `!` in text, keeping the order."""
    return _LOW.sub(lambda low: "!" + chr(ord("0") + ord(low[0])), value)


def unescaped(value: str) -> str:
    """Restore text that was escaped."""
    return re.sub("!(.)", lambda low: chr(ord(low[1]) - ord("0")), value)


def _figures(value: float | Decimal, field: str) -> str:
    """Encode a number as text in the order of numbers: sign, magnitude and digits."""
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise InvalidInput(field, "must be of numbers that are finite")
    if not exact:
        return "1"
    figures = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
    if abs(exact.adjusted()) > MAX_EXPONENT:
        raise InvalidInput(
            field, f"must be of numbers with at most {MAX_EXPONENT:,} figures before the point"
        )
    shown = f"{exact.adjusted() + 5_000:04d}{figures}"
    return f"2{shown}" if exact > 0 else f"0{shown.translate(_NINES)}~"
