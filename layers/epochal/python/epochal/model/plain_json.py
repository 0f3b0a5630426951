"""Bodies that are plain JSON, written and read without a codec.

Plain JSON has none of the marks of codecs and subjects (`model.body_marks`): `write_json` refuses to write them, and
`read_json` refuses to read a body that has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import isinf
from typing import Any, Final

from epochal.errors import CorruptData, InvalidInput
from epochal.model.bodies import Body, Claim
from epochal.model.body_marks import SEALED, VERSION
from epochal.model.negative_zero import has_negative_zero


def json_of(body: Body, where: str) -> Any:
    """Parse a body that is plain JSON; raises as `read_json`, and `InvalidInput` if it is in the bucket."""
    if isinstance(body, Claim):
        raise InvalidInput("fetch", f"must be true to read {where}: its body is in the bucket, at {body.key}")
    return read_json(body, where)


# Made once. What holds itself ends like what is nested too deep: nothing looks for it on the way.
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
)


def holds_seal(body: Body) -> bool:
    """Return whether a body may contain anything sealed for a subject, at any depth, even encoded.

    What only looks sealed counts, too. A body that is still in the bucket may be sealed, so it counts as sealed.
    """
    if isinstance(body, Claim) or SEALED.encode() in body:
        return True
    from epochal.model.seal_search import finds_seal  # noqa: PLC0415  few events are looked into

    return finds_seal(body)


def write_json(value: Any) -> bytes:
    """Encode a value as a JSON body; raise `InvalidInput` with the path to whatever is not JSON."""
    for mark in (VERSION, SEALED) if isinstance(value, dict) else ():
        if mark in value:
            raise InvalidInput(
                f"value.{mark}", "must not be in plain JSON: only codecs and subjects write this name"
            )
    try:
        try:
            body = _ENCODER.encode(value).encode()
        except (TypeError, ValueError):
            path, culprit = _find_non_json("value", value)
        else:
            unnamed = find_names_not_text("value", value)
            if unnamed is None:
                return body
            path, culprit = unnamed
    except RecursionError:
        raise InvalidInput("value", "must not be nested this deeply, nor contain itself") from None
    raise InvalidInput(path, f"must be JSON, and {_describe(culprit)} is not")


def find_names_not_text(path: str, value: Any) -> tuple[str, dict[Any, Any]] | None:
    """Return the path to the first object with names that are not text, and the object; None if none."""
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            return path, value
    elif not isinstance(value, list | tuple):
        return None
    for name, member in _inside(value):
        if isinstance(member, dict | list | tuple):
            unnamed = find_names_not_text(f"{path}.{name}", member)
            if unnamed is not None:
                return unnamed
    return None


def read_json(body: bytes | str, where: str) -> Any:
    """Parse a body as JSON, but refuse one that is sealed or that only its codec can read.

    Args:
        where: which event it is, for errors.

    Raises:
        InvalidInput: it is sealed, or of a version above 1, which only its codec can read as today's.
        CorruptData: it is not JSON, or a number in it is beyond a float; a codec can read that as a `Decimal`.
    """
    try:
        text = body if isinstance(body, str) else body.decode("utf-8-sig")
        value = (_SIGNED_DECODER if has_negative_zero(text) else _DECODER).decode(text)
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"{where}: its body is not JSON: {error}") from error
    if isinstance(value, dict):
        if value.get(VERSION, 1) != 1:
            raise InvalidInput(
                "codec", f"must be used to read {where}: it is stored as version {value[VERSION]!r}"
            )
        if SEALED in value:
            raise InvalidInput("unseal", f"must be called before {where} is read as JSON: it is sealed")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    """Read a number as a float; raise `ValueError` if it is beyond the largest one."""
    value = float(digits)
    if isinf(value):
        raise ValueError(f"the number {digits[:32]} is beyond a float; a codec can read it as a Decimal")
    return value


# Made once: to make one takes longer than to read most bodies.
_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
_SIGNED_DECODER: Final = json.JSONDecoder(
    parse_float=_finite,
    parse_int=lambda digits: -0.0 if digits == "-0" else int(digits),
    parse_constant=_no_constant,
)


def _find_non_json(path: str, value: Any) -> tuple[str, object]:
    """Find the innermost value that is not JSON; return the path to it and the value."""
    for name, member in _inside(value):
        try:
            _ENCODER.encode(member).encode()
        except (TypeError, ValueError):
            return _find_non_json(f"{path}.{name}", member)
    return path, value


def _inside(value: Any) -> Iterable[tuple[object, Any]]:
    """Return the members of an object or list with their names or indices."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list | tuple) else ()


def _describe(value: object) -> str:
    """Describe, for an error message, a value that JSON cannot hold."""
    if isinstance(value, float):
        return str(value)
    if isinstance(value, int):
        return "an integer of more digits than Python writes out"
    if isinstance(value, str):
        return "a lone surrogate"
    if isinstance(value, dict):
        return "an object whose names are not text"
    return f"a {type(value).__name__}"
