"""The time of an event or an unfold may be a datetime with a time zone, which becomes text as it is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest

from epochal import Event, InvalidInput, Unfold
from epochal.testing import memory_streams

NOON = datetime(2026, 1, 31, 12, 30, 0, 250_000, tzinfo=timezone(timedelta(hours=2)))
STORED = "2026-01-31T10:30:00.2500000+00:00"


def test_a_datetime_is_stored_as_the_text_of_the_same_moment() -> None:
    assert Event(type="Paid", timestamp=NOON) == Event(type="Paid", timestamp=STORED)
    assert Event.json("Paid", {}, timestamp=NOON).timestamp == STORED
    assert Unfold.json("Total", 3, timestamp=NOON).timestamp == STORED
    streams = memory_streams()
    streams.append("Cart-1", [Event(type="Paid", timestamp=NOON)])
    assert next(streams.read("Cart-1")).timestamp == STORED


@pytest.mark.parametrize("kind", [Event, Unfold])
def test_a_datetime_without_a_time_zone_is_refused(kind: type[Event | Unfold]) -> None:
    with pytest.raises(InvalidInput, match="timestamp: must have a time zone"):
        kind(type="Paid", timestamp=datetime.now(UTC).replace(tzinfo=None))


class NoOffset(tzinfo):
    """A time zone that does not say how far it is from UTC; such a datetime counts as naive."""

    def utcoffset(self, _: datetime | None) -> None:
        return None

    def dst(self, _: datetime | None) -> None:
        return None

    def tzname(self, _: datetime | None) -> None:
        return None


def test_a_datetime_whose_time_zone_has_no_offset_is_refused_too() -> None:
    with pytest.raises(InvalidInput, match="timestamp: must have a time zone"):
        Event(type="Paid", timestamp=datetime(2026, 1, 31, 12, tzinfo=NoOffset()))
