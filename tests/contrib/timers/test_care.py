"""What was missed is swept, what is lost is made anew, and a look tells how late timers are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.contrib.timers.care import coming, rebuild
from epochal.contrib.timers.protocol import SHARDS
from epochal.layout.tables import TIMERS
from epochal.model.events import Event
from epochal.plan.failures import RequestNotApplied
from epochal.plan.ops import Delete, Op, Query
from epochal.scheduling import after, cancel, later
from tests.contrib.timers.world import World

SECOND = 10**9
HOUR = 3_600


def test_a_sweep_fires_what_no_wake_up_came_for_and_nothing_before_its_time() -> None:
    world = World()
    world.engine = replace(world.engine, send=lambda _: None)
    for number in range(40):
        world.set(f"Loan-{number}", "reminder", 60 if number % 2 else 2 * HOUR)
    world.arm()
    world.time += 100 * SECOND
    assert world.engine.sweep().fired == 0, "what was due a moment ago has wake-ups on their way"
    world.time += HOUR * SECOND
    assert world.engine.sweep().fired == 20
    assert len(world.items()) == 20
    world.time += 40 * 24 * HOUR * SECOND
    assert world.engine.sweep().fired == 20
    assert world.items() == []


def test_a_sweep_deletes_an_item_of_what_is_over_that_a_slow_reactor_has_put_again() -> None:
    world = World()
    world.set("Loan-1", "reminder", 60)
    world.arm()
    (item,) = world.items()
    world.advance(61)
    world.engine = replace(world.engine, send=lambda _: None)
    world.engine.arm_all([item])
    world.time += HOUR * SECOND
    came = world.engine.sweep()
    assert (came.fired, came.gone, world.items()) == (0, 1, [])


@pytest.mark.slow
@pytest.mark.parametrize("pending", [0, 300])
def test_a_sweep_without_anything_due_asks_the_same_however_much_is_pending(pending: int) -> None:
    world = World()
    for number in range(pending):
        world.set(f"Loan-{number}", "reminder", 30 * 24 * HOUR)
    world.arm()
    world.asked.clear()
    before = world.meter.capacity
    world.engine.sweep()
    after = world.meter.capacity
    assert [type(each) for each in world.asked] == [Query] * SHARDS
    assert (after.read - before.read, after.write - before.write) == (SHARDS / 2, 0)


def test_what_comes_next_is_in_order_over_all_shards_and_what_is_late_is_first() -> None:
    world = World()
    assert list(coming(world.engine)) == []
    for number in range(100):
        world.set(f"Loan-{number}", "reminder", 100 * (number + 1))
    world.arm()
    world.time += 250 * SECOND
    assert [each.stream for each in coming(world.engine, limit=3)] == ["Loan-0", "Loan-1", "Loan-2"]
    assert [each.stream for each in coming(world.engine, since=world.now, limit=2)] == ["Loan-2", "Loan-3"]
    assert [each.stream for each in coming(world.engine, limit=1_000)] == [f"Loan-{n}" for n in range(100)]


def test_the_table_is_made_anew_of_the_feed_with_what_is_pending_alone() -> None:
    world = World()
    for name in ("kept", "cancelled", "again"):
        for layout in ("pages", "tips"):
            world.set("Loan-1", name, 2 * HOUR, layout=layout)
    for layout in ("pages", "tips"):
        world.stores[layout].append("Loan-1", [cancel("cancelled")])
        world.set("Loan-1", "again", 3 * HOUR, layout=layout)
    tags = ("loan:1", "member:2")
    world.tagged.append([later("tagged", [Event.json("E", {}, tags=tags)], at=after(hours=2), tags=tags)])
    world.set("Loan-2", "soon", 60)
    world.arm()
    world.advance(100)
    before = world.items()
    for each in before:
        world.tables.execute(Delete(table=TIMERS.kind, key=each.key))
    done = rebuild(world.engine, world.feed.feed)
    assert (done.settings, done.armed, done.troubles) == (10, 5, [])
    assert len(world.items()) == 5
    assert set(world.items()) <= set(before)
    world.advance(4 * HOUR)
    assert [each for each in world.types("Loan-1") if not each.startswith("$")] == ["kept came", "again came"]
    assert [each for each in world.types("Loan-1", "tips") if not each.startswith("$")] == [
        "kept came",
        "again came",
    ]
    assert world.items() == []


def test_a_stream_that_cannot_be_read_is_told_and_the_rebuild_goes_on() -> None:
    world = World()
    for number in range(3):
        world.set(f"Loan-{number}", "reminder", HOUR)
    world.feed.index()

    def fail(op: Op) -> None:
        if "Loan-1" in str(op):
            raise RequestNotApplied("throttled")

    world.fails = fail
    done = rebuild(world.engine, world.feed.feed)
    assert (done.settings, done.armed) == (3, 2)
    assert [each.partition(":")[0] for each in done.troubles] == ["Loan-1"]


def test_a_malformed_event_of_timers_stops_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that knows no rules may have written it: an older one, or one of another library."""
    world = World()
    with monkeypatch.context() as lax:
        lax.setattr("epochal.scheduling.check_all", lambda *_, **__: None)
        for body in (b"", b"[]", b'{"name": "reminder"}', b'{"name": 1, "in": "x", "events": 2}'):
            types = ("$timer-set", "$timer-cancelled", "$timer-fired")
            world.streams.append("Loan-1", [Event(type=each, data=body) for each in types[: len(body) or 3]])
    world.set("Loan-1", "reminder", 60)
    world.arm()
    world.streams.append("Loan-1", [Event(type="$timer-other", data=b"{")])
    assert len(world.items()) == 1
    world.advance(70)
    assert world.types("Loan-1")[-2:] == ["reminder came", "$timer-fired"]
