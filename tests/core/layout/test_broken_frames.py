"""A frame that cannot be opened hides its own events, and no others."""

from __future__ import annotations

import pytest

from epochal.errors import CorruptData
from epochal.model.events import Event, Recorded
from epochal.pages.items import page_key
from epochal.plan.ops import Get, Put
from epochal.plan.values import binary, sequence
from epochal.store.reading import Direction
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams

STREAM = "Cart-1"


@pytest.fixture
def streams() -> Streams:
    """A page of three frames, one event each but the second, which has two and is broken."""
    streams = memory_streams()
    for count in (1, 2, 1):
        streams.append(STREAM, [Event(type="Added", data=b"x" * 100)] * count)
    ask = streams.driver.ask
    item = ask(Get(table=streams.table, key=page_key(STREAM, 0))).item
    assert item is not None
    first, second, third = (each["B"] for each in item["f"]["L"])
    frames = sequence(map(binary, (first, second[:-1], third)))
    ask(Put(table=streams.table, item={**item, "f": frames}))
    return streams


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_its_neighbours_are_read(streams: Streams, direction: Direction) -> None:
    start = 0 if direction == "forward" else 3
    found = sorted(streams.reader().found(STREAM, start, direction), key=lambda each: each.index)
    assert [(each.index, isinstance(each, Recorded)) for each in found] == [
        (0, True),
        (1, False),
        (2, False),
        (3, True),
    ]


def test_a_page_of_events_ends_before_it_and_whoever_goes_on_is_told(streams: Streams) -> None:
    page = streams.page(STREAM)
    assert ([event.index for event in page.events], page.next) == ([0], 1)
    with pytest.raises(CorruptData, match="frame 1"):
        streams.page(STREAM, start=page.next)
    assert [event.index for event in streams.page(STREAM, start=3).events] == [3]


def test_appends_go_on(streams: Streams) -> None:
    assert streams.append(STREAM, [Event(type="Added")]).version == 5
