"""Converts values of columns to times and to bodies of events. Pure."""

from __future__ import annotations

import json as plain_json
import re
from functools import lru_cache
from typing import Any, Final

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.model.moments import format_ticks, from_unix_nanoseconds, parse_time

_SECONDS, _MILLISECONDS, _MICROSECONDS, _DIGITS = 11, 14, 17, 20
"""Digits up to which a number of Unix time counts seconds, milliseconds, microseconds and nanoseconds."""


_USUAL: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(?:Z|\+00:00)?"
)


@lru_cache(maxsize=1_024)
def _second(text: str) -> str:
    """Convert ISO 8601 text to the stored form, cut to seconds.

    Results are cached, since neighbouring events share a second.
    """
    return format_ticks(parse_time(text, "time"))[:19]


def time_of(value: Any, name: str = "time") -> str:
    """Convert a time, ISO 8601 text or Unix time, to the form in which it is stored, in UTC.

    Text without an offset is UTC. Unix time may have any usual unit, which its number of digits tells.

    Raises:
        InvalidInput: the value is neither.
    """
    text = value if isinstance(value, str) else str(value)
    if usual := _USUAL.fullmatch(text):
        second, fraction = usual.groups()
        return f"{_second(second)}.{(fraction or '').ljust(7, '0')[:7]}+00:00"
    seconds, _, fraction = text.partition(".")
    if not (seconds.isascii() and seconds.isdigit()) or len(seconds) == 4:  # noqa: PLR2004  a year
        return format_ticks(parse_time(text, name))
    if len(seconds) > _DIGITS or (fraction and not (fraction.isascii() and fraction.isdigit())):
        raise InvalidInput(name, "must be an ISO 8601 time, or a Unix time in digits")
    digits = len(seconds)
    unit = 9 if digits <= _SECONDS else 6 if digits <= _MILLISECONDS else 3 if digits <= _MICROSECONDS else 0
    nanoseconds = int(seconds) * 10**unit + int((fraction[:unit] or "0").ljust(unit, "0"))
    return format_ticks(parse_time(format_ticks(from_unix_nanoseconds(nanoseconds)), name))


def _refused(constant: str) -> None:
    """Raise `ValueError` for NaN and infinities, which Python accepts as JSON."""
    raise ValueError(constant)


_DECODER: Final = plain_json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refused)


def body_of(value: Any) -> bytes:
    """Return a column's value as the bytes of a body: bytes and JSON text unchanged, other values as JSON.

    Text that is JSON, and bytes, are kept to the byte; other text and other values are written as JSON.
    """
    match value:
        case None | "":
            return b""
        case bytes():
            return value
        case str():
            try:
                _DECODER.decode(value)
            except (ValueError, RecursionError):
                return json.dumps_again(value)
            return value.encode()
        case _:
            return json.dumps_again(value)
