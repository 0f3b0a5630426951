"""What appends cost: the promise of the README, measured.

By the figures of memory, which `test_capacity` holds to DynamoDB Local's, and in `make proof` by these themselves.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import count

import pytest

from epochal.contrib.equinox.streams import Tips
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams
from tests.contract.places import Place

_streams = count()

AIRPORTS = ("JFK", "LGA", "EWR", "BOS", "ORD", "ATL", "LAX", "SFO", "MIA", "SEA")


def flights(events: int) -> Iterator[Event]:
    """Departures as JSON of 300 bytes each, as different from one another as real ones are."""
    dice = random.Random(2013)
    for _ in range(events):
        body = {
            "year": 2013,
            "month": dice.randint(1, 12),
            "day": dice.randint(1, 28),
            "sched_dep_time": dice.randint(500, 2359),
            "dep_time": dice.randint(500, 2359),
            "dep_delay": dice.randint(-20, 300),
            "carrier": dice.choice(("UA", "AA", "DL", "B6", "EV")),
            "flight": dice.randint(1, 6000),
            "tailnum": f"N{dice.randint(100, 999)}{dice.choice('ABCDEF')}{dice.choice('ABCDEF')}",
            "origin": dice.choice(AIRPORTS),
            "dest": dice.choice(AIRPORTS),
            "distance": dice.randint(80, 5000),
            "time_hour": f"2013-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}T{dice.randint(0, 23):02}:00:00Z",
            "note": "",
        }
        body["note"] = " " * (300 - len(json.dumps(body)))
        text = json.dumps(body)
        assert len(text) == 300
        yield Event(type="Departed", data=text.encode())


def noise(events: int) -> Iterator[Event]:
    """Bodies of 300 bytes that no encoding shortens."""
    dice = random.Random(300)
    return (Event(type="Happened", data=dice.randbytes(300)) for _ in range(events))


def units_an_event(streams: Streams, name: str, events: Iterator[Event]) -> float:
    expected: ExpectedVersion = NO_STREAM
    count = 0
    for count, event in enumerate(events, start=1):  # noqa: B007  counted
        outcome = streams.append(name, [event], expected=expected)
        assert isinstance(outcome, Appended)
        expected = outcome.token
    return streams.driver.meter.units.write / count


def over(place: Place, *, compress: bool) -> Streams:
    driver = Driver(execute=place.execute, meter=Meter())
    return Streams(driver=driver, table=place.table, layout=Tips(), codec=BodyCodec(compress=compress))


@pytest.fixture(params=["memory", pytest.param("ddbl", marks=[pytest.mark.ddbl, pytest.mark.proof])])
def counted(request: pytest.FixtureRequest) -> Place:
    """A place whose figures are those of DynamoDB."""
    found: Place = request.getfixturevalue("memory_place" if request.param == "memory" else "local_place")
    return found.at(f"Cost-{next(_streams)}")


def test_a_thousand_events_of_300_bytes_cost_at_most_one_and_a_half_units_each(counted: Place) -> None:
    assert units_an_event(over(counted, compress=False), counted.partition, noise(1_000)) <= 1.5


def test_with_brotli_they_cost_at_most_1_35(counted: Place) -> None:
    assert units_an_event(over(counted, compress=True), counted.partition, flights(1_000)) <= 1.35
