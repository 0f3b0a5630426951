"""JSON that keeps numbers exact: 1.10 stays 1.10, and integers have no limit.

Python's own module reads decimals as floats and so changes them on the way back; simplejson can read them as
`Decimal` and write those as they were.
"""

from __future__ import annotations

from typing import Any

import simplejson


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of these members; raises `ValueError` where a name stands twice."""
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return record


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def loads(text: bytes | str) -> Any:
    """Parse JSON; decimals become `Decimal`. Raises `ValueError` on NaN, Infinity and repeated names too."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    return simplejson.loads(
        text, use_decimal=True, object_pairs_hook=unique, parse_constant=_no_constant, allow_nan=False
    )


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON.

    Raises `ValueError` on NaN, Infinity and half of a surrogate pair, `TypeError` on what is not JSON.
    """
    return _text(value).encode("utf-8")


def dumps_again(value: Any) -> bytes:
    """`dumps` of what `loads` has read, whoever wrote it: half of a surrogate pair stays escaped, as it was."""
    return _text(value).encode("utf-8", "backslashreplace")


def _text(value: Any) -> str:
    text: str = simplejson.dumps(
        value, use_decimal=True, ensure_ascii=False, allow_nan=False, encoding=None, separators=(",", ":")
    )
    return text
