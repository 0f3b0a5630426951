"""What is pruned takes the timers with it that were set there, and no other."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from epochal.care.auditor import Auditor
from epochal.care.mender import Mender
from epochal.care.retention import keep, rules_of
from epochal.layout.tables import INDEX
from epochal.model.events import Event
from epochal.plan.ops import Op, Query
from epochal.scheduling import cancel
from tests.contrib.timers.world import World

LAYOUTS = pytest.mark.parametrize("layout", ["pages", "tips"])
LARGE = [Event.json("Noted", {"text": "n" * 20_000})]
SECOND = 10**9
DAY = 86_400


def long_stream(layout: str = "pages") -> World:
    """An old timer at 0 and a new one at 41, both due, and events of many pages between and behind."""
    world = World()
    world.set("Loan-1", "old", 60, layout=layout)
    for _ in range(40):
        world.stores[layout].append("Loan-1", LARGE)
    world.set("Loan-1", "new", 120, layout=layout)
    world.arm()
    return world


@pytest.mark.slow
@LAYOUTS
@pytest.mark.parametrize("before", [1, 20, 40, 41])
def test_a_timer_behind_what_was_pruned_fires(layout: str, before: int) -> None:
    world = long_stream(layout)
    world.stores[layout].prune("Loan-1", before)
    world.time += DAY * SECOND
    came = world.engine.sweep()
    assert (came.fired, came.gone, came.failures) == (1, 1, [])
    assert world.types("Loan-1", layout)[-2:] == ["new came", "$timer-fired"]
    assert world.items() == []


@LAYOUTS
def test_a_timer_that_is_not_due_yet_keeps_its_item_when_an_earlier_one_was_pruned(layout: str) -> None:
    world = long_stream(layout)
    world.stores[layout].prune("Loan-1", 41)
    world.advance(100)
    assert [each.place for each in world.items()] == [41]
    world.advance(60)
    assert world.types("Loan-1", layout) == ["$timer-set", "new came", "$timer-fired"]
    assert world.items() == []


@LAYOUTS
def test_what_ended_a_timer_behind_what_was_pruned_is_read(layout: str) -> None:
    world = long_stream(layout)
    world.stores[layout].append("Loan-1", [cancel("new")])
    for _ in range(40):
        world.stores[layout].append("Loan-1", LARGE)
    world.stores[layout].prune("Loan-1", 30)
    world.time += DAY * SECOND
    came = world.engine.sweep()
    assert (came.fired, came.gone, world.items()) == (0, 2, [])


def test_retention_takes_no_timer_but_those_of_what_it_prunes() -> None:
    world = long_stream()
    world.feed.index()
    mender = Mender(driver=world.streams.driver, index_table=INDEX.kind, now=lambda: world.time)
    auditor = Auditor(
        mender=mender,
        sources=world.feed._deployment.sources,  # noqa: SLF001  as a deployed one has them
        rules=rules_of([keep("Loan", count=5)]),
        streams=lambda: world.streams,
        settle=0,
    )
    auditor.audit(inf)
    assert world.streams.page("Loan-1").low_water > 30
    world.time += DAY * SECOND
    came = world.engine.sweep()
    assert (came.fired, came.gone) == (1, 1)
    assert world.types("Loan-1")[-2:] == ["new came", "$timer-fired"]
    assert world.items() == []


@pytest.mark.slow
@pytest.mark.parametrize("at", [2, 3])
def test_what_a_timer_was_ended_by_may_be_pruned_while_its_stream_is_read(at: int) -> None:
    """Between two pages: the one before has the setting, and the cancelling is gone."""
    world = World()
    for name in ("ended", "kept"):
        world.set("Loan-1", name, 60)
    for _ in range(30):
        world.streams.append("Loan-1", [Event(type="N", data=Random(1).randbytes(1_000))] * 50)
    world.streams.append("Loan-1", [cancel("ended")])
    for _ in range(30):
        world.streams.append("Loan-1", [Event(type="N", data=Random(1).randbytes(1_000))] * 50)
    live = world.set("Loan-1", "live", 60)
    for _ in range(30):
        world.streams.append("Loan-1", LARGE)
    world.arm()
    world.time += DAY * SECOND
    asked = 0

    def pruning(op: Op) -> None:
        nonlocal asked
        asked += isinstance(op, Query) and op.table == "streams"
        if asked == at:
            asked += 1
            world.feed.streams.prune("Loan-1", 2_000)

    world.fails = pruning
    came = world.engine.sweep()
    assert asked > 3
    assert (came.fired, came.gone, came.failures) == (1, 2, [])
    assert world.events("Loan-1")[-1].json() == {"name": "live", "set": live}
