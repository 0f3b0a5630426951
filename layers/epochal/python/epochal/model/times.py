"""Time to the 100 ns, as the original libraries keep it.

`Ticks` count 100 ns since 0001-01-01 UTC (the unit of .NET, hence of FORMATS §1 and §3). Python's datetime
stops at microseconds, so a tick's last digit is carried beside it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final, NewType

from epochal.errors import InvalidInput
from epochal.model.kinds import must_be

Ticks = NewType("Ticks", int)

MAX_EXPIRES: Final = 10**11
"""Epoch seconds at which an item may expire: in the year 5138."""

PER_SECOND: Final = 10_000_000
_BEGIN: Final = datetime(1, 1, 1)  # noqa: DTZ001  naive, so that its text has no offset
_EPOCH: Final = _BEGIN.replace(tzinfo=UTC)
END: Final = 315_537_897_600 * PER_SECOND
"""Ticks of the year 10000: the first that is no time."""

_UNIX_EPOCH_TICKS: Final = 62_135_596_800 * PER_SECOND
_ISO: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9})\d*)?\s*(Z|z|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)


def from_unix_nanoseconds(nanoseconds: int) -> Ticks:
    """Ticks of `time.time_ns()`."""
    return Ticks(_UNIX_EPOCH_TICKS + nanoseconds // 100)


def read_moment(moment: datetime | str, field: str) -> Ticks:
    """A moment that a caller names: with a time zone, or ISO 8601 text, which is UTC where it has no offset.

    Raises:
        InvalidInput: `field` is neither.
    """
    if not isinstance(moment, datetime):
        return parse_time(moment, field)
    if moment.tzinfo is None:
        raise InvalidInput(field, "must have a time zone: datetime.now(UTC), for instance")
    return Ticks((moment - _EPOCH) // timedelta(microseconds=1) * (PER_SECOND // 1_000_000))


def unix_seconds(ticks: Ticks) -> int:
    """Whole seconds since 1970, as TTL attributes want them."""
    return (ticks - _UNIX_EPOCH_TICKS) // PER_SECOND


def format_ticks(ticks: Ticks) -> str:
    """The stored form: `yyyy-MM-ddTHH:mm:ss.fffffff+00:00`."""
    seconds, fraction = divmod(ticks, PER_SECOND)
    return f"{_format_second(seconds)}.{fraction:07d}+00:00"


@lru_cache(maxsize=256)
def _format_second(seconds: int) -> str:
    """Neighbours in a stream often happened within a second."""
    return (_BEGIN + timedelta(seconds=seconds)).isoformat()


def parse_time(text: str, field: str = "timestamp") -> Ticks:
    """Read any ISO 8601 date and time; without an offset it is UTC. Digits below 100 ns are cut.

    Raises:
        InvalidInput: `field` is not an ISO 8601 date and time, or is outside the years 1 to 9999.
    """
    must_be(str, text, field, "ISO 8601 text")
    match = _ISO.fullmatch(text)
    if match is None:
        raise InvalidInput(field, "must be an ISO 8601 date and time")
    day, clock, fraction, zone = match.groups()
    try:
        local = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=_zone(zone))
        whole = (local - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(field, "must be an ISO 8601 date and time") from error
    ticks = whole * PER_SECOND + int((fraction or "").ljust(7, "0")[:7])
    if not 0 <= ticks < END:
        raise InvalidInput(field, "must lie in the years 1 to 9999 UTC")
    return Ticks(ticks)


def time_or_now(given: str | None, now: str, field: str) -> str:
    """A time that a caller gave, as it is stored, or `now`; raises as `parse_time`."""
    return now if given is None else format_ticks(parse_time(given, field))


def _zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[3:].lstrip(":") or 0))
    return timezone(-offset if text[0] == "-" else offset)
