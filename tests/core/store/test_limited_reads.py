"""A page of few events reads few pages: not the megabyte that a read of a whole stream begins with."""

from __future__ import annotations

from random import Random

import pytest

from epochal.model.events import Event
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams

EVENTS = 60


@pytest.fixture(scope="module")
def streams() -> Streams:
    """A stream of some twenty pages, and one of a single page."""
    found = memory_streams()
    for number in range(EVENTS):
        found.append("Long-1", [Event(type="A", data=Random(number).randbytes(3_000))])
    found.append("Short-1", [Event(type="A")])
    return found


def cost(streams: Streams, stream: str, limit: int, *, listed: bool) -> tuple[float, int, int]:
    """Read units, requests, and how many events came."""
    units, requests = streams.driver.meter.units.read, streams.driver.meter.requests
    found = list(streams.read(stream, limit=limit)) if listed else streams.page(stream, limit=limit).events
    meter = streams.driver.meter
    return meter.units.read - units, meter.requests - requests, len(found)


@pytest.mark.parametrize("listed", [True, False], ids=["read", "page"])
def test_one_event_costs_what_its_page_does_and_the_last(streams: Streams, *, listed: bool) -> None:
    whole, _, count = cost(streams, "Long-1", EVENTS, listed=listed)
    assert (count, whole > 40) == (EVENTS, True)
    units, requests, count = cost(streams, "Long-1", 1, listed=listed)
    assert (requests, count) == (2, 1)
    assert units < 8


@pytest.mark.parametrize("listed", [True, False], ids=["read", "page"])
def test_a_stream_of_one_page_is_still_one_request(streams: Streams, *, listed: bool) -> None:
    assert cost(streams, "Short-1", 1, listed=listed) == (1, 1, 1)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 59, 60, 99])
def test_pages_of_any_limit_join(streams: Streams, limit: int) -> None:
    found, start = [], None
    while True:
        page = streams.page("Long-1", start=start, limit=limit)
        found += page.events
        if page.next is None:
            break
        start = page.next
    assert found == list(streams.read("Long-1"))
    assert len(found) == EVENTS
