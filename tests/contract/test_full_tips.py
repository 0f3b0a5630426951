"""Tips at the limit of an item, on each store: what they carry goes into a calf, and the append goes on."""

from __future__ import annotations

import random
from dataclasses import replace

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import NO_STREAM
from epochal.model.tokens import Token
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contract.places import Place


def over(place: Place) -> Streams:
    """A store that calves only where it must."""
    driver = Driver(execute=place.execute, meter=Meter())
    return Streams(driver=driver, table=place.table, layout=Tips(calving=Fixed(max_bytes=10**6)))


def large(size: int) -> list[Event]:
    return [Event(type="E", data=random.Random(size).randbytes(size))]


def test_an_item_at_its_limit_is_calved_and_the_append_goes_on(place: Place) -> None:
    store, name = over(place), place.partition
    token: Token | None = None
    for _ in range(5):
        token = store.append(name, large(150_000), expected=token or NO_STREAM).token

    assert [len(event.data) for event in store.read(name)] == [150_000] * 5


def test_a_token_that_understates_the_tip_still_appends_because_an_overflow_calves(place: Place) -> None:
    store, name = over(place), place.partition
    token = store.append(name, large(390_000)).token
    forged = Token(version=1, etag=token.etag, size=100, carried=50, events=1, appends=1)

    outcome = store.append(name, large(100_000), expected=forged)

    assert (outcome.first, outcome.version) == (1, 2)
    assert [len(event.data) for event in store.read(name)] == [390_000, 100_000]


def test_unfolds_that_overflow_the_tip_calve_its_events(place: Place) -> None:
    store, name = over(place), place.partition
    store.append(name, large(200_000))
    store.append(name, large(170_000))
    unfold = Unfold(type="Large", data=random.Random(2).randbytes(130_000))

    outcome = store.append(name, [], unfolds=[unfold])

    state = store.load(name)
    assert state is not None
    assert (state.version, state.events) == (2, ())
    assert state.unfolds[0].data == unfold.data
    assert replace(state.token, size=outcome.token.size) == outcome.token
    assert [event.index for event in store.read(name)] == [0, 1]
