"""What a reaction costs, exactly: the table in docs/reference/cost.md is made of these figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochal.store.driver import Meter
from tests.core.feed.feeds import Feeds
from tests.core.reactions.world import World

COST = Path(__file__).resolve().parents[3] / "docs" / "reference" / "cost.md"


def spent(world: World) -> tuple[int, float, float]:
    """Requests, read units and write units of one run, events read included."""
    reading, meter = Meter(), Meter()
    reactor = world.reactor()
    member = reactor.member
    driver = replace(member.driver, meter=meter)
    reader = replace(member.reader.on(replace(member.driver, meter=reading)), driver=driver)
    measured = replace(member, reader=reader)
    replace(reactor, member=measured).run(0, seconds=60)
    units = reading.units + meter.units
    return reading.requests + meter.requests, units.read, units.write


def begun() -> World:
    """A group that has caught up with one event."""
    world = World(feeds=Feeds())
    world.append("Z-1")
    world.reactor().run(0, seconds=60)
    return world


def test_looking_and_finding_nothing_writes_nothing() -> None:
    assert f"| nothing new | {_row(*spent(begun()))} |" in COST.read_text()


@pytest.mark.parametrize(("streams", "events"), [(1, 1), (100, 1), (100, 10)])
def test_a_stretch_costs_a_read_for_each_stream_and_one_write(streams: int, events: int) -> None:
    world = begun()
    for number in range(streams):
        world.feeds.append(f"A-{number}", *["happened"] * events)
    world.index()
    figures = spent(world)
    assert len(world.told.handled) == streams * events + 1
    name = f"{_many(streams * events, 'event')} of {_many(streams, 'stream')}"
    assert f"| {name} | {_row(*figures)} |" in COST.read_text(), _row(*figures)


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _row(requests: int, read: float, write: float) -> str:
    return f"{requests} | {read:g} | {write:g}"
