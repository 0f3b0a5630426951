"""A flight's events: all of its columns, at the right moments, in the order of time."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest

from epochal.codec import json
from epochal.model.events import Event
from examples.flights.dataset import Day, Flight, days, zones
from examples.flights.happenings import (
    ARRIVED,
    CANCELLED,
    DEPARTED,
    SCHEDULED,
    Happening,
    by_day,
    by_moment,
    events_of,
    happenings,
    in_order,
    stream_of,
)
from examples.flights.zones import NEW_YORK

ZONES = zones()


@pytest.fixture(scope="module")
def sample(year: list[Day]) -> list[Flight]:
    """Every 180th day, and the days on which the clocks changed with those before."""
    chosen = [*year[::180], *year[67:69], *year[305:307]]
    return [flight for day in chosen for flight in day.flights()]


@cache
def told(flight: Flight) -> list[Happening]:
    """What happens to a flight, which many tests look at."""
    return list(happenings(flight, ZONES))


def _data(event: Event) -> dict[str, object]:
    assert isinstance(event.data, bytes)
    fields: dict[str, object] = json.loads(event.data)
    return fields


def _of_type(flight: Flight, kind: str) -> list[Happening]:
    return [each for each in told(flight) if each.event.type == kind]


@pytest.mark.slow
def test_a_flights_events_together_hold_exactly_its_19_columns(sample: list[Flight]) -> None:
    for flight in sample:
        merged: dict[str, object] = {}
        for each in told(flight):
            merged |= _data(each.event)
        assert merged == flight.columns()
        assert len(merged) == 19


@pytest.mark.slow
def test_a_flight_is_scheduled_then_departs_and_arrives_or_is_cancelled(sample: list[Flight]) -> None:
    for flight in sample:
        types = [each.event.type for each in told(flight)]
        assert types == (
            [SCHEDULED, CANCELLED] if flight.dep_time is None else [SCHEDULED, DEPARTED, ARRIVED]
        )


@pytest.mark.slow
def test_no_event_of_a_flight_is_earlier_than_the_one_before_it(sample: list[Flight]) -> None:
    for flight in sample:
        moments = [each.moment for each in told(flight)]
        assert moments == sorted(moments)


def test_times_are_those_on_the_clocks_of_the_airports() -> None:
    first = next(days(1)[0].flights())
    assert [each.event.timestamp for each in told(first)] == [
        "2013-01-01T00:00:00-05:00",
        "2013-01-01T05:17:00-05:00",
        "2013-01-01T08:30:00-06:00",  # Houston
    ]


@pytest.mark.slow
def test_departures_and_arrivals_show_their_own_columns_clock_time(sample: list[Flight]) -> None:
    # Landed in Florida at 2:03 on 10 March, in the hour that clocks skipped.
    (skipped,) = [
        each for each in sample if (each.month, each.day, each.flight, each.arr_time) == (3, 9, 35, 203)
    ]
    assert _of_type(skipped, ARRIVED)[0].event.timestamp == "2013-03-10T03:03:00-04:00"
    for flight in sample:
        for kind, clock in ((DEPARTED, flight.dep_time), (ARRIVED, flight.arr_time)):
            for each in _of_type(flight, kind):
                if clock is not None and flight != skipped:
                    assert each.moment.hour * 100 + each.moment.minute == clock % 2400


@pytest.mark.slow
def test_between_departure_and_arrival_there_is_the_time_in_the_air_and_at_most_five_hours_on_the_ground(
    sample: list[Flight],
) -> None:
    for flight in sample:
        if flight.air_time is not None:
            departed, arrived = _of_type(flight, DEPARTED)[0].moment, _of_type(flight, ARRIVED)[0].moment
            ground = arrived - departed - timedelta(minutes=flight.air_time)
            assert timedelta(0) <= ground < timedelta(hours=5), flight


@pytest.mark.slow
def test_a_landing_that_is_not_on_record_stands_at_its_scheduled_time_with_nulls(
    sample: list[Flight],
) -> None:
    diverted = [flight for flight in sample if flight.dep_time is not None and flight.arr_time is None]
    assert diverted
    for flight in diverted:
        (arrived,) = _of_type(flight, ARRIVED)
        assert {name: _data(arrived.event)[name] for name in ("arr_time", "arr_delay", "air_time")} == {
            "arr_time": None,
            "arr_delay": None,
            "air_time": None,
        }


@pytest.mark.slow
def test_flights_without_an_aircraft_are_all_cancelled_and_stand_in_their_carriers_stream(
    sample: list[Flight],
) -> None:
    unassigned = [flight for flight in sample if flight.tailnum is None]
    assert unassigned
    for flight in unassigned:
        assert stream_of(flight) == f"Unassigned-{flight.carrier}"
        assert [each.event.type for each in told(flight)] == [SCHEDULED, CANCELLED]


@pytest.mark.slow
def test_one_correlation_id_names_one_flight(sample: list[Flight]) -> None:
    ids = [{each.event.correlation_id for each in told(flight)} for flight in sample]
    assert all(len(mine) == 1 for mine in ids)
    assert len(set.union(*ids)) == len(sample)


@pytest.mark.slow
def test_everything_comes_in_the_order_of_time_across_midnights(year: list[Day]) -> None:
    ordered = list(in_order(year[:4], ZONES))
    assert all(one.moment <= other.moment for one, other in pairwise(ordered))
    assert len(ordered) == sum(events_of(day) for day in year[:4]) == 10_814


def test_an_aircrafts_timetable_for_the_day_is_one_append(year: list[Day]) -> None:
    batches = list(by_moment(in_order(year[:1], ZONES)))
    midnight = [batch for batch in batches if batch.events[0].timestamp == "2013-01-01T00:00:00-05:00"]
    assert len(midnight) == len({stream_of(flight) for flight in year[0].flights()})
    assert sum(len(batch.events) for batch in midnight) == 842


@pytest.mark.slow
def test_both_groupings_give_every_stream_the_same_events_in_the_same_order(year: list[Day]) -> None:
    def streams(batches: object) -> dict[str, list[Event]]:
        found: dict[str, list[Event]] = {}
        for batch in batches:  # type: ignore[attr-defined]
            found.setdefault(batch.stream, []).extend(batch.events)
        return found

    assert streams(by_moment(in_order(year[:3], ZONES))) == streams(by_day(in_order(year[:3], ZONES)))


def test_a_day_is_one_append_for_each_aircraft_that_has_something_happen_on_it(year: list[Day]) -> None:
    batches = list(by_day(in_order(year[:1], ZONES)))
    first_day = [batch for batch in batches if _local_day(batch.events[0]) == 1]
    assert len({batch.stream for batch in first_day}) == len(first_day) < len(batches)


def _local_day(event: Event) -> int:
    return NEW_YORK.of(datetime.fromisoformat(event.timestamp or "")).day


@pytest.mark.slow
def test_no_more_than_two_days_are_held_however_many_there_are(year: list[Day]) -> None:
    thin = [replace(day, rows=b"".join(day.rows.splitlines(keepends=True)[:80])) for day in year[:8]]

    def peak(count: int) -> int:
        tracemalloc.start()
        for _ in by_day(in_order(thin[:count], ZONES)):
            pass
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    peak(8)  # what is made once, and kept
    assert peak(8) < 1.3 * peak(2)


@pytest.mark.slow
def test_the_year_has_2512_flights_without_an_aircraft_all_cancelled_among_8255(year: list[Day]) -> None:
    rows = [
        dict(zip(day.names, row.split(","), strict=True)) for day in year for row in day.rows.decode().split()
    ]
    cancelled = [row for row in rows if row["dep_time"] == "NA"]
    unassigned = [row for row in rows if row["tailnum"] == "NA"]
    assert (len(cancelled), len(unassigned)) == (8_255, 2_512)
    assert all(row["dep_time"] == "NA" for row in unassigned)
