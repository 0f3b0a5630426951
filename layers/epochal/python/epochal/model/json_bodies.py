"""Bodies that are plain JSON, written and read without a codec.

Whatever else the library puts into a JSON object has a member of its own there: the version of what upcasts know, and
what is sealed. Plain JSON has neither: these members are not written here, and nothing is read past them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from epochal.errors import CorruptData, InvalidInput

VERSION: Final = "$v"
"""Member of an object that a codec with upcasts has stored."""

SEALED: Final = "$sealed"
"""Member of a sealed body."""

# Made once. What holds itself ends like what is nested too deep: nothing looks for it on the way.
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
)


def write_json(value: Any) -> bytes:
    """A body of what `json.dumps` takes; raises `InvalidInput` with the path to what is not JSON."""
    for mark in (VERSION, SEALED) if isinstance(value, dict) else ():
        if mark in value:
            raise InvalidInput(f"value.{mark}", "is a name that codecs and subjects write, not plain JSON")
    try:
        try:
            return _ENCODER.encode(value).encode()
        except (TypeError, ValueError):
            path, culprit = _culprit("value", value)
    except RecursionError:
        raise InvalidInput("value", "must not be nested so deep, nor hold itself") from None
    raise InvalidInput(path, f"must be JSON, and {_told(culprit)} is not")


def read_json(body: bytes | str, where: str) -> Any:
    """The value of a body as `json.loads` reads it.

    Args:
        where: which event it is, for errors.

    Raises:
        InvalidInput: it is sealed, or of a version above 1, which only its codec can read as today's.
        CorruptData: it is not JSON.
    """
    try:
        text = body if isinstance(body, str) else body.decode("utf-8-sig")
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"{where}: its body is not JSON: {error}") from error
    if isinstance(value, dict):
        if value.get(VERSION, 1) != 1:
            raise InvalidInput("codec", f"must read {where}: it is of version {value[VERSION]!r}")
        if SEALED in value:
            raise InvalidInput("unseal", f"must come before JSON: {where} is sealed")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _culprit(path: str, value: Any) -> tuple[str, object]:
    """The innermost value that is not JSON, and the path to it."""
    for name, each in _inside(value):
        try:
            _ENCODER.encode(each).encode()
        except (TypeError, ValueError):
            return _culprit(f"{path}.{name}", each)
    return path, value


def _inside(value: Any) -> Iterable[tuple[object, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list | tuple) else ()


def _told(value: object) -> str:
    if isinstance(value, float):
        return str(value)
    if isinstance(value, str):
        return "half of a surrogate pair"
    if isinstance(value, dict):
        return "an object with such names"
    return f"a {type(value).__name__}"
