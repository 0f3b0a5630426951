"""A timer that cannot be fired stops itself alone: others of its stream or tags fire, and what has fired is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from epochal.contrib.timers.care import rebuild
from epochal.contrib.timers.engine import Engine
from epochal.contrib.timers.stores import timers_of
from epochal.errors import Contended, EpochalError, InvalidInput, InvalidRequest, MissingBody, TooLarge
from epochal.model.events import Event
from epochal.pages.items import STREAMS
from epochal.plan.ops import Delete, Op, Put, Update
from epochal.scheduling import after, later
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams
from tests.contrib.timers.world import World

SECOND = 10**9
LAYOUTS = pytest.mark.parametrize("layout", ["pages", "tips"])
LARGE = Event(type="lost came", data=Random(1).randbytes(450_000))
NOTED = Event(type="Noted", data=Random(2).randbytes(90))


def bodies(store: Any) -> dict[str, bytes]:
    found: dict[str, bytes] = store.codec.bodies.objects
    return found


def types(world: World, layout: str) -> list[str]:
    return [each.type for each in world.stores[layout].page("Loan-1", fetch=False).events]


def three(layout: str = "pages") -> World:
    """Timers at 0, 1 and 2 of a stream, of which the second is in the bucket."""
    world = World()
    for name in ("first", "lost", "last"):
        world.set("Loan-1", name, 60, *([LARGE] if name == "lost" else []), layout=layout)
    return world


@LAYOUTS
def test_a_setting_whose_body_is_gone_waits_and_is_told_and_the_others_fire(layout: str) -> None:
    world = three(layout)
    world.arm()
    kept = dict(bodies(world.stores[layout]))
    bodies(world.stores[layout]).clear()
    world.time += 61 * SECOND
    came = world.work()
    assert types(world, layout)[3:] == ["first came", "$timer-fired", "last came", "$timer-fired"]
    assert (came.fired, came.gone) == (2, 0)
    assert [(armed.place, type(error)) for armed, error in came.failures] == [(1, MissingBody)]
    assert [each.place for each in world.items()] == [1]
    assert [each.timer.place for each in came.failed if each.timer] == [1]
    assert world.engine.work(came.failed).failed == came.failed
    bodies(world.stores[layout]).update(kept)
    assert world.engine.work(came.failed).fired == 1
    assert types(world, layout)[7:] == ["lost came", "$timer-fired"]
    assert world.items() == []


def test_a_setting_whose_body_is_gone_is_given_up_where_it_is_said_to_have_fired() -> None:
    world = three()
    world.arm()
    bodies(world.streams).clear()
    world.streams.append("Loan-1", [Event.json("$timer-fired", {"name": "lost", "set": 1})])
    world.time += 61 * SECOND
    came = world.work()
    assert (came.fired, came.gone, came.failures, world.items()) == (2, 1, [], [])


def test_a_setting_whose_body_is_gone_keeps_nobody_from_listing_and_calling_off() -> None:
    streams = three().streams
    bodies(streams).clear()
    assert [each.name for each in timers_of(streams).pending("Loan-1")] == ["first", "last"]
    assert timers_of(streams).cancel("Loan-1", "first") is not None
    assert [each.name for each in timers_of(streams).pending("Loan-1")] == ["last"]
    assert timers_of(streams).cancel("Loan-1", "never") is None
    assert timers_of(streams).cancel("Loan-1", "lost") is None
    assert timers_of(streams).cancel("Loan-1", "lost") is None
    assert [each.type for each in streams.page("Loan-1", fetch=False).events][3:] == ["$timer-cancelled"] * 2


def test_a_setting_under_tags_whose_body_is_gone_stops_itself_alone() -> None:
    world, tags = World(), ("loan:17",)
    for name, event in (("first", NOTED), ("lost", LARGE), ("last", NOTED)):
        world.tagged.append([later(name, [event], at=after(seconds=60), tags=tags)])
    world.arm()
    bodies(world.tagged).clear()
    assert [each.name for each in timers_of(world.tagged).pending(tags)] == ["first", "last"]
    assert timers_of(world.tagged).cancel(tags, "first") is not None
    world.time += 61 * SECOND
    came = world.work()
    assert (came.fired, came.gone) == (1, 1)
    assert [type(error) for _, error in came.failures] == [MissingBody]
    assert len(world.items()) == 1


def test_a_rebuild_tells_of_a_setting_whose_body_is_gone_and_arms_it_with_the_others() -> None:
    world = three()
    world.feed.index()
    kept = dict(bodies(world.streams))
    bodies(world.streams).clear()
    done = rebuild(world.engine, world.feed.feed)
    assert (done.armed, [each.partition(":")[0] for each in done.troubles]) == (3, ["Loan-1@1"])
    assert [each.place for each in world.items()] == [1, 0, 2]
    bodies(world.streams).update(kept)
    world.time += 600 * SECOND
    assert world.engine.sweep().fired == 3
    assert world.items() == []


@LAYOUTS
def test_a_timer_that_was_set_anew_does_not_fire_as_it_was_where_the_body_of_that_is_gone(
    layout: str,
) -> None:
    world = World()
    for name, event in (("x", NOTED), ("other", NOTED), ("x", LARGE), ("last", NOTED)):
        world.set("Loan-1", name, 60, event, layout=layout)
    world.arm()
    kept = dict(bodies(world.stores[layout]))
    bodies(world.stores[layout]).clear()
    assert [each.name for each in timers_of(world.stores[layout]).pending("Loan-1")] == ["other", "last"]
    world.time += 61 * SECOND
    came = world.work()
    assert (came.fired, came.gone) == (2, 1)
    assert [(armed.place, type(error)) for armed, error in came.failures] == [(2, MissingBody)]
    assert [each.place for each in world.items()] == [2]
    bodies(world.stores[layout]).update(kept)
    assert world.engine.work(came.failed).fired == 1
    assert types(world, layout)[-2:] == ["lost came", "$timer-fired"]


def test_a_timer_of_tags_that_was_set_anew_does_not_fire_as_it_was_where_the_body_of_that_is_gone() -> None:
    world, tags = World(), ("loan:17",)
    for name, event in (("x", NOTED), ("other", NOTED), ("x", LARGE)):
        world.tagged.append([later(name, [event], at=after(seconds=60), tags=tags)])
    world.tagged.append([later("x", [NOTED], at=after(seconds=60), tags=(*tags, "desk:1"))])
    world.arm()
    bodies(world.tagged).clear()
    world.time += 61 * SECOND
    came = world.work()
    assert (came.fired, came.gone, len(came.failures)) == (2, 1, 1), "one of more tags is another"
    assert timers_of(world.tagged).cancel(tags, "x") is None
    again = world.engine.work(came.failed)
    assert (again.gone, again.failures, world.items()) == (1, [], [])


@pytest.mark.parametrize("end", ["cancelled", "set anew"])
def test_a_setting_whose_body_is_gone_is_over_once_its_name_is_called_off_or_set_anew(end: str) -> None:
    world = three()
    world.arm()
    bodies(world.streams).clear()
    if end == "cancelled":
        assert timers_of(world.streams).cancel("Loan-1", "lost") is None
    else:
        world.set("Loan-1", "lost", 50, NOTED)
        world.arm()
    world.time += 61 * SECOND
    came = world.work()
    assert (came.fired, came.gone, came.failures) == (2 + (end == "set anew"), 1, [])
    assert world.items() == []


def refused(error: EpochalError, *names: str) -> Any:
    append = Engine.try_append

    def refusing(self: Engine, scope: Any, events: Sequence[Event], known: Any) -> Any:
        if {f"{name} came" for name in names} & {each.type for each in events}:
            raise error
        return append(self, scope, events, known)

    return refusing


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [
        TooLarge("events", 2, 1),
        InvalidInput("events", "is bad"),
        InvalidRequest("Update", "Validation", "bad"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_timers_whose_appends_are_refused_for_good_hold_none_of_the_others_back(
    error: EpochalError, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    for number in range(25):
        world.set("Loan-1", f"n{number}", 60 + number)
    world.arm()
    world.time += 100 * SECOND
    monkeypatch.setattr(Engine, "try_append", refused(error, "n0", "n7"))
    came = world.work()
    assert (came.fired, came.gone) == (23, 0)
    assert [(armed.place, found) for armed, found in came.failures] == [(0, error), (7, error)]
    assert [each.place for each in world.items()] == [0, 7]


def test_what_was_fired_before_others_were_faster_is_counted_and_not_done_again() -> None:
    world = World()
    for number in range(30):
        world.set("Loan-1", f"n{number}", 60 + number)
    world.arm()
    world.time += 100 * SECOND
    appends = 0

    def meddle(op: Op) -> None:
        nonlocal appends
        if isinstance(op, Put | Update) and op.table == "streams":
            appends += 1
            if appends > 1:
                world.feed.streams.append("Loan-1", [NOTED])

    world.fails = meddle
    came = world.work()
    assert (came.fired, came.refused, came.gone) == (25, 20, 0)
    assert [type(error) for _, error in came.failures] == [Contended] * 5
    assert len(world.items()) == len(came.failed) == 5
    assert sum(isinstance(op, Delete) for op in world.asked) == 25


def test_timers_of_a_stream_whose_archive_has_a_hole_are_those_that_fire() -> None:
    store = memory_streams(MemoryTables({"streams": STREAMS, "archive": STREAMS}))
    archived = replace(store, archive=replace(store, table="archive"))
    timers_of(store).schedule("Loan-1", "gone", [NOTED], at=after(days=1))
    store.append("Loan-1", [NOTED] * 3)
    store.prune("Loan-1", 2)
    timers_of(store).schedule("Loan-1", "kept", [NOTED], at=after(days=1))
    assert [each.name for each in timers_of(archived).pending("Loan-1")] == ["kept"]
    assert timers_of(archived).cancel("Loan-1", "kept") is not None
