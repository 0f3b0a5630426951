from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.errors import InvalidInput
from epochal.model.moments import (
    PER_SECOND,
    Ticks,
    format_ticks,
    from_unix_nanoseconds,
    parse_time,
    unix_seconds,
)

LAST = Ticks(3_155_378_975_999_999_999)
"""The last tick of the year 9999, as .NET has it."""


@given(st.integers(0, LAST))
def test_what_is_written_is_read_back_to_the_tick(ticks: int) -> None:
    assert parse_time(format_ticks(Ticks(ticks))) == ticks


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2023-06-29T03:32:37.404481Z", "2023-06-29T03:32:37.4044810+00:00"),
        ("2023-06-29T03:32:37.1234567+00:00", "2023-06-29T03:32:37.1234567+00:00"),
        ("2023-06-29T03:32:37.123456789Z", "2023-06-29T03:32:37.1234567+00:00"),
        ("2023-06-29T03:32:37", "2023-06-29T03:32:37.0000000+00:00"),
        ("2023-06-29 03:32", "2023-06-29T03:32:00.0000000+00:00"),
        ("2023-06-29T03:32:37,5-05:30", "2023-06-29T09:02:37.5000000+00:00"),
        ("2023-06-29T03:32:37+0200", "2023-06-29T01:32:37.0000000+00:00"),
        ("2023-06-29t03:32:37z", "2023-06-29T03:32:37.0000000+00:00"),
        ("2013-01-01T05:00:00-05", "2013-01-01T10:00:00.0000000+00:00"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.0000000+00:00"),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999+00:00"),
    ],
)
def test_any_iso_8601_moment_is_stored_in_one_form(text: str, stored: str) -> None:
    assert format_ticks(parse_time(text)) == stored


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2023-06-29",
        "2023-13-01T00:00:00Z",
        "2023-02-30T00:00:00Z",
        "2023-06-29T24:01:00Z",
        "2023-06-29T03:32:37+25:00",
        "0001-01-01T00:00:00+00:01",
        "２０23-06-29T03:32:37Z",
    ],
)
def test_anything_else_is_refused_by_field(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_time(text, "events[0].timestamp")
    assert caught.value.field == "events[0].timestamp"


@given(st.text(max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    with suppress(InvalidInput):
        assert 0 <= parse_time(text) <= LAST


def test_ticks_count_from_the_year_one() -> None:
    moment = datetime(2013, 1, 1, 5, 15, tzinfo=UTC)
    passed = moment - datetime(1, 1, 1, tzinfo=UTC)
    assert parse_time("2013-01-01T05:15:00Z") == passed // timedelta(microseconds=1) * 10


def test_the_clock_becomes_ticks_and_seconds_again() -> None:
    now = time.time_ns()
    ticks = from_unix_nanoseconds(now)
    assert unix_seconds(ticks) == now // 10**9
    assert from_unix_nanoseconds(now + 100) == ticks + 1
    assert from_unix_nanoseconds(10**9) - from_unix_nanoseconds(0) == PER_SECOND
