"""An aircraft's snapshot follows its events."""

from __future__ import annotations

from decimal import Decimal

from epochal.codec import json
from epochal.model.events import Event
from examples.flights.aircraft import INITIAL, Aircraft, evolve, fold, read_snapshot


def _departed() -> Event:
    return Event(
        type="FlightDeparted", data=b'{"carrier":"UA","flight":1,"origin":"EWR","dep_time":5,"dep_delay":0}'
    )


def _arrived(dest: str, clock: int | None, delay: int | None, minutes: int | None) -> Event:
    fields = {"dest": dest, "arr_time": clock, "arr_delay": delay, "air_time": minutes}
    return Event(type="FlightArrived", data=json.dumps(fields))


def test_an_aircraft_in_the_air_is_at_no_airport() -> None:
    on_ground = Aircraft(airport="IAH", flights=1, minutes=200, delay=3)
    assert evolve(on_ground, _departed()) == Aircraft(airport=None, flights=2, minutes=200, delay=3)


def test_a_landing_adds_the_time_in_the_air_and_the_delay_and_tells_the_airport() -> None:
    state = fold(
        INITIAL, (_departed(), _arrived("IAH", 830, 11, 227), _departed(), _arrived("EWR", 1200, -20, 180))
    )
    assert state == Aircraft(airport="EWR", flights=2, minutes=407, delay=-9)
    assert state.hours == Decimal("6.8")


def test_a_landing_that_is_not_on_record_leaves_the_airport_unknown() -> None:
    assert fold(INITIAL, (_departed(), _arrived("IAH", None, None, None))) == Aircraft(flights=1)


def test_a_diverted_flight_that_reached_its_destination_is_there() -> None:
    assert fold(INITIAL, (_departed(), _arrived("IAH", 2005, None, None))).airport == "IAH"


def test_schedules_and_cancellations_change_nothing() -> None:
    assert fold(INITIAL, (Event(type="FlightScheduled"), Event(type="FlightCancelled"))) == INITIAL


def test_a_snapshot_is_read_back_as_the_state_it_was_made_from() -> None:
    state = Aircraft(airport="LAX", flights=30, minutes=9967, delay=104)
    unfold = state.snapshot()
    assert isinstance(unfold.data, bytes)
    fields = json.loads(unfold.data)
    assert fields["hours"] == Decimal("166.1")
    assert read_snapshot(fields) == state
