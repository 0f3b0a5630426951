"""The flights as they are read: exact, in calendar order, on the right clocks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from dateutil.zoneinfo import get_zonefile_instance

from examples.flights.dataset import FLIGHTS, Day, Flight, days, zones
from examples.flights.zones import ATLANTIC, NEW_YORK, Zone


def test_the_first_flight_is_read_to_the_column() -> None:
    (day,) = days(1)
    assert next(day.flights()) == Flight(
        year=2013,
        month=1,
        day=1,
        dep_time=517,
        sched_dep_time=515,
        dep_delay=2,
        arr_time=830,
        sched_arr_time=819,
        arr_delay=11,
        carrier="UA",
        flight=1545,
        tailnum="N14228",
        origin="EWR",
        dest="IAH",
        air_time=227,
        distance=1400,
        hour=5,
        minute=15,
        time_hour="2013-01-01T10:00:00Z",
    )


def test_whole_numbers_stay_whole_and_gaps_are_none() -> None:
    cancelled = [flight for day in days(1) for flight in day.flights() if flight.dep_time is None]
    assert [flight.columns("dep_delay", "arr_time", "air_time") for flight in cancelled] == [
        {"dep_delay": None, "arr_time": None, "air_time": None}
    ] * 4
    assert all(type(flight.dep_time) is int for day in days(1) for flight in day.flights() if flight.dep_time)


@pytest.mark.slow
def test_days_come_in_calendar_order_though_the_file_has_october_after_january(year: list[Day]) -> None:
    assert [day.date for day in year] == [date(2013, 1, 1) + timedelta(days=n) for n in range(365)]
    for day in year:
        first = next(day.flights())
        assert date(first.year, first.month, first.day) == day.date


@pytest.mark.slow
def test_a_year_has_every_flight(year: list[Day]) -> None:
    assert sum(map(len, year)) == FLIGHTS == 336_776


def test_reading_tells_how_far_it_is() -> None:
    heard: list[int] = []
    days(3, heard.append)
    assert heard == [1_000, 2_000, 842 + 943 + 914]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("America/New_York", NEW_YORK),
        ("America/Los_Angeles", Zone(winter=-8)),
        ("America/Phoenix", Zone(winter=-7, daylight=False)),
        ("America/Puerto_Rico", ATLANTIC),
    ],
)
def test_clocks_agree_with_the_time_zone_database_at_every_half_hour_of_the_year(
    name: str, zone: Zone
) -> None:
    database = get_zonefile_instance().get(name)
    moment = datetime(2013, 1, 1, tzinfo=UTC)
    while moment.year == 2013:
        shown = zone.of(moment)
        assert shown.replace(tzinfo=None) == moment.astimezone(database).replace(tzinfo=None)
        assert shown == moment
        moment += timedelta(minutes=30)


def test_a_clock_time_means_the_next_moment_it_is_shown() -> None:
    evening = NEW_YORK.at(datetime(2013, 1, 1, 23, 30))  # noqa: DTZ001  clocks on a wall have no zone
    assert NEW_YORK.next(2345, evening).isoformat() == "2013-01-01T23:45:00-05:00"
    assert NEW_YORK.next(2330, evening) == evening
    assert NEW_YORK.next(2400, evening).isoformat() == "2013-01-02T00:00:00-05:00"
    assert NEW_YORK.next(517, evening).isoformat() == "2013-01-02T05:17:00-05:00"


@pytest.mark.slow
def test_every_destination_has_clocks(year: list[Day]) -> None:
    known = zones()
    column = days(1)[0].names.index("dest")
    assert {row.split(",")[column] for day in year for row in day.rows.decode().split()} <= known.keys()
    assert known["SJU"] == ATLANTIC
    assert known["PHX"] == Zone(winter=-7, daylight=False)
