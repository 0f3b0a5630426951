"""What a page tells of the appends that made it is what they cost when they were made."""

from __future__ import annotations

import pytest

from epochal import Event, Unfold
from epochal.layout.stored_items import StoredAppend
from epochal.pages.port import stored_items
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams


@pytest.fixture
def streams() -> Streams:
    return memory_streams()


def _noise(number: int, size: int) -> bytes:
    """What no compression makes smaller."""
    return bytes((number * 7919 + at * at * 31 + at * 17) % 251 for at in range(size))


def _appends(streams: Streams, first: int, end: int) -> list[StoredAppend]:
    items = streams.driver.run(stored_items(streams.table, "Cart-1", first, end))
    return [each for item in items for each in item.appends]


def test_each_append_is_told_with_the_write_units_that_it_was_charged(streams: Streams) -> None:
    charged = []
    for number, size in enumerate([100, 300, 900, 1500, 10, 10, 5000, 20, 700, 40]):
        before = streams.driver.meter.capacity.write
        streams.append("Cart-1", [Event(type="Noted", data=_noise(number, size))] * (1 + number % 3))
        charged.append(streams.driver.meter.capacity.write - before)
    told = _appends(streams, 0, 100)
    assert [each.events for each in told] == [1 + number % 3 for number in range(10)]
    assert [each.units for each in told] == charged
    assert not any(each.least for each in told)


def test_what_is_told_of_appends_with_unfolds_is_the_least_that_they_cost(streams: Streams) -> None:
    charged = []
    for number in range(6):
        before = streams.driver.meter.capacity.write
        unfold = Unfold(type="Total", data=_noise(number, 900))
        streams.append("Cart-1", [Event(type="Noted", data=_noise(number, 200))], unfolds=[unfold])
        charged.append(streams.driver.meter.capacity.write - before)
    told = _appends(streams, 0, 100)
    assert all(each.units <= units for each, units in zip(told, charged, strict=True))
    assert all(each.least or each.units == units for each, units in zip(told, charged, strict=True))


def test_a_window_is_told_in_two_requests_from_the_page_that_holds_its_first_event(streams: Streams) -> None:
    for number in range(200):
        streams.append("Cart-1", [Event(type="Noted", data=_noise(number, 300))])
    before = streams.driver.meter.capacity.requests
    told = _appends(streams, 100, 110)
    assert streams.driver.meter.capacity.requests - before == 2
    indices = [each.index for each in told]
    assert indices[0] <= 100
    assert {*range(100, 110)} <= {*indices}
    assert len(indices) < 20
    assert all(each.timestamp > "20" for each in told)
