"""Reads that need not be consistent cost half, and what a replica lacks below a head in hand is read again."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.layout.streams import AnyStreamLayout
from epochal.model.events import Event
from epochal.plan.ops import Get, Op, Query, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.reading import Direction
from epochal.store.streams import Streams
from epochal.testing.stores import memory_tables
from tests.support.lagging import Choice, Lagging, oldest
from tests.support.stream_layouts import LAYOUTS

S = "Flight-1"
EVENTS = 24


def filled(layout: AnyStreamLayout, choice: Choice) -> Streams:
    tables = memory_tables()
    driver = Driver(execute=Lagging(tables, choice).execute, meter=Meter())
    streams = replace(memory_tips(tables), driver=driver, layout=layout)
    for number in range(EVENTS):
        streams.append(S, [Event(type="Seen", data=Random(number).randbytes(1_500))])
    return streams


def read(streams: Streams, direction: Direction, *, consistent: bool) -> tuple[list[object], float]:
    """What is read, in order of indices, of a head that is the latest; and the read units."""
    head = streams.head(S)
    assert head is not None
    measured, meter = streams.metered()
    start = 0 if direction == "forward" else None
    found = list(measured.reader(consistent=consistent).onward(head, start, direction))
    return sorted(found, key=lambda each: getattr(each, "index", -1)), meter.capacity.read


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_events_before_a_head_come_for_half(layout: str, direction: Direction) -> None:
    streams = filled(LAYOUTS[layout], lambda states: states[-1])
    events, whole = read(streams, direction, consistent=True)
    same, half = read(streams, direction, consistent=False)
    assert len(events) == EVENTS
    assert same == events
    assert half == whole / 2 > 0


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_replica_has_not_yet_is_read_again(layout: str, direction: Direction) -> None:
    streams = filled(LAYOUTS[layout], oldest)
    lagging = streams.head(S, consistent=False)
    assert lagging is not None
    assert lagging.version < EVENTS
    events, _ = read(streams, direction, consistent=True)
    assert len(events) == EVENTS
    asked: list[Op] = []

    def execute(op: Op) -> Reply:
        asked.append(op)
        return perform(op)

    perform = streams.driver.execute
    recorded = replace(streams, driver=replace(streams.driver, execute=execute))
    assert read(recorded, direction, consistent=False)[0] == events
    assert {type(op) for op in asked} <= {Get, Query}, "nothing was waited for"
