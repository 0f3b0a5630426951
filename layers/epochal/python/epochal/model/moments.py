"""Moments to 100 ns, as the original libraries store them.

`Ticks` count 100 ns since 0001-01-01 UTC (the unit of .NET, hence of FORMATS §1 and §3). Python's datetime stops at
microseconds, so the last digit of a tick is parsed and formatted without it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final, NewType

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be

Ticks = NewType("Ticks", int)

MAX_EXPIRES: Final = 10**11
"""Epoch seconds at which an item may expire: in the year 5138."""

PER_SECOND: Final = 10_000_000
_PER_MINUTE: Final = 60 * PER_SECOND
_BEGIN: Final = datetime(1, 1, 1)  # noqa: DTZ001  naive, so that its text has no offset
_EPOCH: Final = _BEGIN.replace(tzinfo=UTC)
END: Final = 315_537_897_600 * PER_SECOND
"""Ticks of the year 10000: the first that is no time."""

_UNIX_EPOCH_TICKS: Final = 62_135_596_800 * PER_SECOND
_EXAMPLE: Final = "2026-01-31T12:00:00Z"
_RULE: Final = f"must be an ISO 8601 date and time, such as {_EXAMPLE}"
_ISO: Final = r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9})\d*)?\s*(Z|z|[+-]\d\d(?::?\d\d)?)?"


def from_unix_nanoseconds(nanoseconds: int) -> Ticks:
    """Convert `time.time_ns()` into ticks."""
    return Ticks(_UNIX_EPOCH_TICKS + nanoseconds // 100)


def read_moment(moment: datetime | str, field: str) -> Ticks:
    """Convert a given datetime or ISO 8601 text, which must have a time zone, into ticks.

    Digits below 100 ns are cut.

    Raises:
        InvalidInput: `field` is neither, has no time zone, or is outside the years 1 to 9999.
    """
    if not isinstance(moment, datetime):
        must_be(str, moment, field, "a datetime, or ISO 8601 text")
        return _parse(moment, field, zoned=True)
    if moment.utcoffset() is None:
        example = "datetime.now(UTC), or datetime(2026, 6, 1, 9, tzinfo=UTC)"
        raise InvalidInput(field, f"must have a time zone, got {moment.isoformat(' ')}: write {example}")
    ticks = (moment - _EPOCH) // timedelta(microseconds=1) * (PER_SECOND // 1_000_000)
    return _in_range(ticks, field)


def unix_seconds(ticks: Ticks) -> int:
    """Convert ticks into whole seconds since 1970, the unit of TTL attributes."""
    return (ticks - _UNIX_EPOCH_TICKS) // PER_SECOND


def format_ticks(ticks: Ticks) -> str:
    """Format ticks as they are stored: `yyyy-MM-ddTHH:mm:ss.fffffff+00:00`."""
    minute, rest = divmod(ticks, _PER_MINUTE)
    second = str(1_000_000_000 + rest)  # a format of nine digits takes twice as long
    return f"{_day(minute // 1_440)}{_clock(minute % 1_440)}{second[1:3]}.{second[3:]}+00:00"


# A replay formats a time for each event, and those of a stream are seldom of one second.
_day = lru_cache(maxsize=1_024)(lambda day: f"{_BEGIN.date() + timedelta(days=day)}T")
_clock = lru_cache(maxsize=1_440)(lambda minute: f"{minute // 60:02d}:{minute % 60:02d}:")


def parse_time(text: str, field: str = "timestamp") -> Ticks:
    """Parse stored or foreign ISO 8601 text into ticks; text without an offset counts as UTC.

    Digits below 100 ns are cut. Times that somebody gives are read with `read_moment`.

    Raises:
        InvalidInput: `field` is not an ISO 8601 date and time, or is outside the years 1 to 9999.
    """
    must_be(str, text, field, "ISO 8601 text")
    return _parse(text, field, zoned=False)


def time_or_now(text: str | None, now: str, field: str) -> str:
    """Return a caller's time in its stored form, or `now` if the text is None; raises as `read_moment`."""
    return now if text is None else format_ticks(read_moment(text, field))


def _parse(text: str, field: str, *, zoned: bool) -> Ticks:
    """Parse ISO 8601 text into ticks; with `zoned`, refuse text without an offset, which else is UTC."""
    match = re.fullmatch(_ISO, text, re.ASCII)  # compiled with the first: a cold start does without
    if match is None:
        raise InvalidInput(field, f"{_RULE}, got {text[:40]!r}")
    day, clock, fraction, zone = match.groups()
    try:
        seconds = _whole_seconds(f"{day}T{clock}", zone)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(field, f"{_RULE}, got {text[:40]!r}") from error
    if zoned and zone is None:
        raise InvalidInput(
            field, f"must have a time zone, got {text[:40]!r}: write {_EXAMPLE}, or +02:00 at its end"
        )
    return _in_range(seconds * PER_SECOND + int((fraction or "").ljust(7, "0")[:7]), field)


def _in_range(ticks: int, field: str) -> Ticks:
    """Return ticks of the years 1 to 9999; raise `InvalidInput` for others."""
    if not 0 <= ticks < END:
        raise InvalidInput(field, "must lie in the years 1 to 9999 UTC")
    return Ticks(ticks)


@lru_cache(maxsize=256)
def _whole_seconds(text: str, zone: str | None) -> int:
    """Parse a time without a fraction into seconds since year 1.

    Cached, because neighbouring events of a stream often happened within a second.
    """
    return (datetime.fromisoformat(text).replace(tzinfo=_zone(zone)) - _EPOCH) // timedelta(seconds=1)


def _zone(text: str | None) -> timezone:
    """Parse an offset such as `+02:00` or `Z` into a timezone; None is UTC."""
    if text is None or text in "Zz":
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[3:].lstrip(":") or 0))
    return timezone(-offset if text[0] == "-" else offset)


@dataclass(frozen=True, slots=True)
class Moment:
    """A time at which to begin reading a feed, or to look at a stream.

    Attributes:
        ticks: time in ticks of 100 nanoseconds since the year 1.
    """

    ticks: Ticks

    def __str__(self) -> str:
        return format_ticks(self.ticks)


AsOf = int | Moment | datetime | str
"""Which state of a stream to load: at a version, or at a moment (a datetime or ISO 8601 text, with a time zone)."""


def as_of_moment(as_of: AsOf) -> int | Moment:
    """Return a version as it is, and a moment as a `Moment`; raise `InvalidInput` for a time without a zone."""
    return Moment(read_moment(as_of, "as_of")) if isinstance(as_of, datetime | str) else as_of
