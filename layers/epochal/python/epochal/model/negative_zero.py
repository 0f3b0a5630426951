"""The integer -0 in JSON text: no integer of Python keeps its sign, so readers of JSON treat it apart."""

from __future__ import annotations

import re
from typing import Final

_NEGATIVE_ZERO: Final = re.compile("-0(?![0-9.eE])")


def has_negative_zero(text: str) -> bool:
    """Return whether the integer -0 may be in a JSON text; True also where a string contains it."""
    return "-0" in text and _NEGATIVE_ZERO.search(text) is not None
