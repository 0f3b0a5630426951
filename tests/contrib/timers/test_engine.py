"""Timers are armed and fired: on streams of any layout, and under tags."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from epochal.contrib.timers.protocol import BEGINNING, MINUTE, NEAR, SHARDS, Armed, Sent, Wake, read_wake_up
from epochal.contrib.timers.stores import timers_of
from epochal.errors import Unavailable
from epochal.layout.tables import TIMERS
from epochal.model.events import Event
from epochal.model.moments import Ticks, format_ticks
from epochal.model.tags import Query, QueryItem
from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import Delete, Get, Op, Put, Reply, Update
from epochal.plan.ops import Query as Reading
from epochal.scheduling import after, cancel, later
from tests.contrib.timers.world import World

DAY = 86_400
SECOND = 10**9
LARGE = [Event.json("Noted", {"text": "n" * 20_000})]
LAYOUTS = pytest.mark.parametrize("layout", ["pages", "tips"])


@LAYOUTS
def test_a_timer_fires_at_its_time_and_once_and_leaves_no_item(layout: str) -> None:
    world = World()
    world.set("Loan-1", "reminder", 14 * DAY, layout=layout)
    world.arm()
    assert [each.stream for each in world.items()] == ["Loan-1"]
    world.advance(14 * DAY - 1)
    assert world.types("Loan-1", layout) == ["$timer-set"]
    (*_, came) = world.advance(2)
    assert (came.fired, came.gone, came.failed) == (1, 0, [])
    assert world.types("Loan-1", layout) == ["$timer-set", "reminder came", "$timer-fired"]
    assert world.items() == []
    assert world.advance(DAY) == []


@LAYOUTS
def test_what_was_cancelled_or_set_anew_does_not_fire(layout: str) -> None:
    world = World()
    world.set("Loan-1", "reminder", 60, layout=layout)
    world.set("Loan-1", "other", 60, layout=layout)
    world.arm()
    world.stores[layout].append("Loan-1", [cancel("reminder")])
    world.set("Loan-1", "other", 120, layout=layout)
    world.arm()
    came = world.advance(90)
    assert (sum(each.fired for each in came), sum(each.gone for each in came)) == (0, 2)
    world.advance(60)
    assert world.types("Loan-1", layout)[4:] == ["other came", "$timer-fired"]
    assert world.items() == []


def test_timers_of_a_stream_fire_in_the_order_of_their_times_in_one_append() -> None:
    world = World()
    for name, seconds in (("c", 30), ("a", 10), ("b", 20)):
        world.set("Loan-1", name, seconds)
    world.arm()
    world.time += 60 * SECOND
    before = world.streams.load("Loan-1")
    came = world.work()
    assert came.fired == 3
    assert world.types("Loan-1")[3:] == [
        "a came",
        "$timer-fired",
        "b came",
        "$timer-fired",
        "c came",
        "$timer-fired",
    ]
    assert before is not None
    appends = [each for each in world.events("Loan-1")[3:] if each.append_id is not None]
    assert len(appends) == 1
    assert came.late == pytest.approx(50, abs=1)


def test_a_timer_under_tags_alone_fires_and_its_firing_has_its_tags() -> None:
    world = World()
    tags = ("loan:17", "member:4")
    reminded = Event.json("Reminded", {"n": 1})
    setting = later("reminder", [replace(reminded, tags=("loan:17",))], at=after(seconds=60))
    world.tagged.append([replace(setting, tags=tags)])
    world.tagged.append([replace(later("other", [reminded], at=after(seconds=30)), tags=tags)])
    world.arm()
    assert [each.tags for each in world.items()] == [tags, tags]
    world.tagged.append([replace(cancel("other"), tags=tags)])
    world.advance(120)
    seen = world.tagged.read(Query(items=(QueryItem(tags=frozenset({"loan:17"})),)))
    assert [each.type for each in seen.events] == [
        "$timer-set",
        "$timer-set",
        "$timer-cancelled",
        "Reminded",
        "$timer-fired",
    ]
    assert seen.events[-1].tags == tags
    assert seen.events[-1].json() == {"name": "reminder", "set": seen.events[0].id}
    assert world.items() == []


def test_an_old_setting_under_tags_is_read_among_all_that_came_since() -> None:
    world = World()
    tags = ("loan:17",)
    world.tagged.append([replace(later("old", [Event.json("Old", {})], at=after(seconds=600)), tags=tags)])
    for number in range(30):
        fresh = later(f"n{number}", [Event.json("New", {})], at=after(seconds=900))
        world.tagged.append([replace(fresh, tags=tags)])
    world.arm()
    (came,) = world.advance(601)
    assert came.fired == 1


def test_a_timer_that_is_set_with_an_event_of_a_stream_that_has_tags_is_the_streams() -> None:
    world = World()
    setting = replace(
        later("reminder", [Event.json("Reminded", {})], at=after(seconds=60)), tags=("loan:17", "a:1")
    )
    world.streams.append("Loan-17", [Event.json("Lent", {}), setting])
    world.arm()
    assert [(each.stream, each.place, each.tags) for each in world.items()] == [("Loan-17", 1, ())]
    world.advance(61)
    assert world.types("Loan-17")[2:] == ["Reminded", "$timer-fired"]


def test_a_firing_that_is_refused_loads_again() -> None:
    world = World()
    world.set("Loan-1", "reminder", 60)
    world.arm()
    world.time += 61 * SECOND
    others = iter([[Event.json("Returned", {})], [cancel("reminder")]])

    def meddle(op: Op) -> None:
        if isinstance(op, Update) and op.table == "streams" and (events := next(others, None)):
            world.feed.streams.append("Loan-1", events)

    world.fails = meddle
    came = world.work()
    assert (came.fired, came.refused, came.gone) == (0, 2, 1)
    assert world.types("Loan-1") == ["$timer-set", "Returned", "$timer-cancelled"]


def test_a_stream_that_is_gone_has_no_timers() -> None:
    world = World()
    world.set("Loan-1", "reminder", 60)
    world.set("Loan-2", "reminder", 60)
    world.streams.append("Loan-2", [Event.json("Returned", {})])
    world.arm()
    world.streams.delete("Loan-1")
    world.streams.prune("Loan-2", 1)
    (came, *_) = world.advance(61)
    assert (came.fired, came.gone) == (0, 2)
    assert world.items() == []


def test_a_scope_that_fails_keeps_nobody_from_the_others_and_its_wake_up_comes_again() -> None:
    world = World()
    for number in range(3):
        world.set(f"Loan-{number}", "reminder", 60)
    world.arm()
    world.time += 61 * SECOND
    broken = True

    def fail(op: Op) -> None:
        if broken and "Loan-1" in str(op):
            raise RequestNotApplied("throttled")

    world.fails = fail
    came = world.work()
    assert came.fired == 2
    assert [each.timer.stream for each in came.failed if each.timer] == ["Loan-1"]
    assert [type(error) for _, error in came.failures] == [Unavailable]
    assert [each.stream for each in world.items()] == ["Loan-1"]
    broken = False
    again = world.engine.work(came.failed)
    assert (again.fired, again.failed, world.items()) == (1, [], [])


def test_a_slots_wake_up_comes_again_where_one_of_its_streams_fails() -> None:
    world = World()
    for number in range(3):
        world.set(f"Loan-{number}", "reminder", 3 * 3600)
    world.arm()
    slots = [*dict.fromkeys(Wake.of_slot(each) for each in world.items())]
    world.time += 4 * 3600 * SECOND

    def fail(op: Op) -> None:
        if "Loan-1" in str(op):
            raise RequestNotApplied("throttled")

    world.fails = fail
    came = world.engine.work(slots)
    (failing,) = world.items()
    assert (came.fired, came.failed) == (2, [Wake.of_slot(failing)])
    world.fails = lambda _: None
    assert world.engine.work(came.failed).fired == 1


def test_what_there_is_no_time_for_is_sent_again() -> None:
    world = World()
    for number in range(3):
        world.set(f"Loan-{number}", "reminder", 60)
    world.arm()
    world.time += 61 * SECOND
    came = world.engine.work(world.wake_ups.take(), seconds=0)
    assert (came.fired, came.failed) == (0, [])
    assert world.work().fired == 3


def test_a_wake_up_that_comes_early_comes_again() -> None:
    world = World()
    world.set("Loan-1", "reminder", 60)
    world.arm()
    came = world.engine.work([Wake.of(each) for each in world.items()])
    assert (came.fired, came.failed, len(world.items())) == (0, [], 1)
    world.advance(61)
    assert world.types("Loan-1") == ["$timer-set", "reminder came", "$timer-fired"]


def test_a_slots_wake_up_that_comes_hours_early_by_this_clock_is_kept_until_it_is_due() -> None:
    world = World()
    world.set("Loan-1", "reminder", 3 * 3600)
    world.arm()
    (item,) = world.items()
    world.wake_ups = type(world.wake_ups)(now=lambda: world.time)
    world.engine = replace(world.engine, send=world.wake_ups.send)
    world.engine.work([Wake.of_slot(item)])
    world.advance(3 * 3600 - 5)
    assert world.types("Loan-1") == ["$timer-set"]
    world.advance(10)
    assert world.types("Loan-1") == ["$timer-set", "reminder came", "$timer-fired"]


def test_a_far_slot_has_one_schedule_and_near_timers_a_message_each() -> None:
    world = World()
    sent = list[Sent]()
    world.engine = replace(world.engine, send=sent.append)
    for number in range(3):
        world.set("Loan-1", f"near-{number}", 600)
        world.set("Loan-1", f"far-{number}", DAY)
    world.arm()
    near = [wake_up for each in sent for wake_up, _ in each.near]
    assert len(near) == 3
    assert len({slot.name for each in sent for slot in each.far}) == 1
    assert all(0 <= seconds <= 900 for each in sent for _, seconds in each.near)


@pytest.mark.parametrize("seconds", [0, 1, 59, 60, 719, 720, 721, 779, 781, 840, 3600])
def test_a_schedule_is_for_a_slot_that_begins_later_than_any_message_comes(seconds: int) -> None:
    world = World()
    timer = Armed(due=world.after(seconds), layout="pages", stream="Loan-1", place=0)
    sent = Sent.arming([timer], world.now)
    assert len(sent.near) + len(sent.far) == 1
    for wake_up, delay in sent.near:
        assert world.after(delay) >= wake_up.since
        assert delay <= 900
    for slot in sent.far:
        assert slot.since - world.now > NEAR


@pytest.mark.parametrize("ticks", [0, 1, MINUTE - 1])
def test_a_slot_has_every_moment_of_its_minute(ticks: int) -> None:
    world = World()
    due = Ticks((world.after(3_600) // MINUTE + 1) * MINUTE + ticks)
    timer = Armed(due=due, layout="pages", stream="Loan-1", place=0)
    slot = Wake.of_slot(timer)
    assert (slot.since, slot.until) == (due - ticks, due - ticks + MINUTE)
    world.streams.append("Loan-1", [later("reminder", [Event(type="Came")], at=format_ticks(due))])
    world.arm()
    world.time += 2 * 3_600 * SECOND
    assert world.engine.work([slot]).fired == 1


def test_many_of_a_slot_are_fired_page_by_page_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochal.contrib.timers.protocol.PAGE", 7)
    monkeypatch.setattr("epochal.contrib.timers.protocol.SHARDS", 1)
    world = World()
    for number in range(60):
        world.set(f"Loan-{number}", "reminder", 3_600 + number % 20)
    world.arm()
    came = world.advance(3_700)
    assert sum(each.fired for each in came) == 60
    assert world.items() == []
    assert all(op.limit == 7 for op in world.asked if isinstance(op, Reading) and op.table == TIMERS.kind)


def test_an_item_is_deleted_after_the_firing_and_a_death_between_fires_nothing_twice() -> None:
    world = World()
    world.set("Loan-1", "reminder", 60)
    world.arm()
    world.time += 61 * SECOND
    wake_ups = world.wake_ups.take()

    def die(op: Op) -> None:
        if isinstance(op, Delete):
            raise KeyboardInterrupt

    world.fails = die
    with pytest.raises(KeyboardInterrupt):
        world.engine.work(wake_ups)
    assert len(world.items()) == 1
    world.fails = lambda _: None
    came = world.engine.work(wake_ups)
    assert (came.fired, came.gone) == (0, 1)
    assert world.types("Loan-1") == ["$timer-set", "reminder came", "$timer-fired"]
    assert world.items() == []


def test_a_settings_item_is_put_before_it_is_to_be_woken() -> None:
    world = World()
    order = list[str]()
    world.engine = replace(world.engine, send=lambda _: order.append("sent"))
    world.fails = lambda op: order.append("put") if isinstance(op, Put) and op.table == TIMERS.kind else None
    world.set("Loan-1", "reminder", 60)
    world.arm()
    assert order == ["put", "sent"]


def test_wake_ups_are_the_same_after_their_way_through_a_queue() -> None:
    world = World()
    for timer in (
        Armed(due=world.after(5), layout="pages", stream="Loan-1", place=7),
        Armed(due=world.after(5), layout="pages", stream="", place="an-id", tags=("a:1", "b:#2")),
    ):
        assert 0 <= timer.shard < SHARDS
        for wake_up in (Wake.of(timer), Wake.of_slot(timer)):
            assert read_wake_up(wake_up.body) == wake_up
        assert Wake.of_slot(timer).since <= timer.due < Wake.of_slot(timer).until


def test_a_timers_life_asks_for_little() -> None:
    """Of the engine's own: the setting and its reaction come besides."""
    world = World()
    world.set("Loan-1", "reminder", DAY)
    world.feed.index()
    world.asked.clear()
    world.arm()
    world.advance(2 * DAY)
    assert world.types("Loan-1")[-1] == "$timer-fired"
    asked = [(type(op).__name__, getattr(op, "table", "")) for op in world.asked]
    assert asked[:5] == [
        ("Put", "timers"),
        ("Query", "timers"),
        ("Query", "streams"),
        ("Update", "streams"),
        ("Delete", "timers"),
    ]


def test_a_firing_whose_outcome_nothing_can_tell_is_looked_for_in_the_stream() -> None:
    """Its answer was lost, and before the second try others have hidden it, and pruned what would tell."""
    world = World()
    world.set("Loan-1", "reminder", 60, layout="tips")
    world.arm()
    world.time += 61 * SECOND
    lost = iter([True])
    real = world.tables.execute

    def losing(op: Op) -> Reply:
        reply = real(op)
        if isinstance(op, Put | Update) and op.table == "tips" and next(lost, False):
            world.tables.execute = real  # type: ignore[method-assign]
            world.feed.tips.append("Loan-1", [Event(type="N")] * 3)
            world.feed.tips.prune("Loan-1", 4)
            raise Lost("cut off")
        return reply

    world.tables.execute = losing  # type: ignore[method-assign]
    came = world.work()
    assert (came.fired, came.refused, came.gone, came.failures) == (0, 1, 1, [])
    assert world.items() == []


def test_timers_under_tags_fire_in_tables_of_another_library() -> None:
    world = World()
    dcb = replace(world.feed.dcb, now=lambda: world.time)
    world.engine = replace(world.engine, tagged={**world.engine.tagged, "dcb": dcb})
    tags = ("loan:17", "member:4")
    reminded = Event.json("Reminded", {}, tags=("loan:17",))
    dcb.append([later("reminder", [reminded], at=after(seconds=60), tags=tags)])
    dcb.append([later("other", [reminded], at=after(seconds=60), tags=tags)])
    world.arm()
    assert [each.layout for each in world.items()] == ["dcb", "dcb"]
    dcb.append([cancel("other", tags=tags)])
    world.advance(120)
    seen = dcb.read(Query(items=(QueryItem(tags=frozenset({"member:4"})),)))
    assert [each.type for each in seen.events] == [
        "$timer-set",
        "$timer-set",
        "$timer-cancelled",
        "$timer-fired",
    ]
    assert dcb.read(
        Query(items=(QueryItem(types=frozenset({"Reminded"}), tags=frozenset({"loan:17"})),))
    ).events
    assert world.items() == []


def test_timers_that_do_not_fit_one_append_fire_in_several_in_their_order() -> None:
    world = World()
    for number in range(5):
        tags = tuple(f"t{number}:{each}" for each in range(40))
        world.set("Loan-1", f"n{number}", 60 + number, Event.json("Made", number, tags=tags))
    world.arm()
    world.time += 70 * SECOND
    came = world.work()
    assert (came.fired, came.gone, came.failures) == (5, 0, [])
    fired = world.events("Loan-1")[5:]
    assert [each.json() for each in fired if each.type == "Made"] == [0, 1, 2, 3, 4]
    assert sum(each.append_id is not None for each in fired) == 3
    assert world.items() == []


@LAYOUTS
def test_a_setting_far_back_in_a_long_stream_is_pending_until_an_event_between_says_otherwise(
    layout: str,
) -> None:
    world = World()
    for name in ("kept", "cancelled"):
        world.set("Loan-1", name, 60, layout=layout)
    world.arm()
    others = [Event.json("Noted", {"text": "n" * 300})] * 100
    for number in range(15):
        world.stores[layout].append("Loan-1", others)
        if number == 7:
            world.stores[layout].append("Loan-1", [cancel("cancelled")])
    (*_, came) = world.advance(61)
    assert world.types("Loan-1", layout)[-2:] == ["kept came", "$timer-fired"]
    assert came.failures == []
    assert world.items() == []


@LAYOUTS
def test_a_firing_that_is_refused_reads_what_came_since_and_no_more(layout: str) -> None:
    """So a timer far back in a long stream gets in between those who write there all the time."""
    world = World()
    world.set("Loan-1", "reminder", 60, layout=layout)
    world.set("Loan-1", "cancelled", 60, layout=layout)
    for _ in range(60):
        world.stores[layout].append("Loan-1", [Event(type="Noted", data=Random(1).randbytes(40_000))])
    world.arm()
    world.time += 600 * SECOND
    asked = list[int]()

    def meddle(op: Op) -> None:
        if isinstance(op, Put | Update) and op.table == world.stores[layout].table and len(asked) < 9:
            asked.append(len(world.asked))
            again = [cancel("cancelled")] if len(asked) == 5 else LARGE
            getattr(world.feed, {"pages": "streams"}.get(layout, layout)).append("Loan-1", again)

    world.fails = meddle
    came = world.engine.sweep()
    assert (came.fired, came.gone, came.failures) == (1, 1, [])
    assert world.types("Loan-1", layout)[-2:] == ["reminder came", "$timer-fired"]
    assert asked[0] - SHARDS > 4
    assert max(after - before for before, after in pairwise(asked)) <= 3


def test_a_firing_under_tags_that_is_refused_reads_what_came_since() -> None:
    world = World()
    tags = ("loan:17",)
    for number in range(60):
        fresh = later(f"n{number}", [Event.json("New", {})], at=after(seconds=60 + 60 * (number > 0)))
        world.tagged.append([replace(fresh, tags=tags)])
    world.arm()
    world.time += 61 * SECOND
    off = iter([[replace(cancel(f"n{number}"), tags=tags)] for number in range(59, 54, -1)])
    read = list[object]()
    right = type(world.tagged).read

    def meddling(self: Any, query: Query, **how: Any) -> Any:
        seen = right(self, query, **how)
        read.append(len(seen.events))
        if events := next(off, None):
            world.feed.tagged.append(events)
        return seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.tagged), "read", meddling)
        came = world.engine.sweep(grace=Ticks(0))
    assert (came.fired, came.failures) == (1, [])
    assert read == [20, 61, 1, 1, 1, 1]
    assert timers_of(world.tagged).pending(tags)[-1].name == "n54"


def test_a_stream_that_is_emptied_between_two_attempts_has_no_timer() -> None:
    world = World()
    world.set("Loan-1", "reminder", 60)
    world.arm()
    world.time += 61 * SECOND
    emptied = iter([True])

    def meddle(op: Op) -> None:
        if isinstance(op, Update) and op.table == "streams" and next(emptied, False):
            world.feed.streams.delete("Loan-1", leave_open=True)
            world.feed.streams.append("Loan-1", [Event(type="Lent")])

    world.fails = meddle
    came = world.work()
    assert (came.fired, came.refused, came.gone) == (0, 1, 1)
    assert world.types("Loan-1") == ["Lent"]


@pytest.mark.slow
@LAYOUTS
@pytest.mark.parametrize("seed", range(10))
def test_replicas_that_lag_lose_no_timer_and_fire_none_twice_or_after_it_was_called_off(
    layout: str, seed: int
) -> None:
    luck, world = Random(seed), World()
    world.streams.append("Other-1", [Event.json("Made", {})])
    before, perform = [world.tables.copy()], world.tables.execute
    lagged = list[bool]()

    def lagging(op: Op) -> Reply:
        head = getattr(op, "table", "") in ("streams", "tips") and not getattr(op, "consistent", True)
        if head and isinstance(op, Reading | Get):
            lagged.append(True)
            return luck.choice(before).execute(op)
        return perform(op)

    world.tables.execute = lagging  # type: ignore[method-assign]
    called = set[str]()
    for number in range(6):
        stream = f"Loan-{number}"
        world.set(stream, "reminder", 60, layout=layout)
        before.append(world.tables.copy())
        if luck.random() < 0.5:
            world.stores[layout].append(stream, [cancel("reminder")])
            called.add(stream)
            if luck.random() < 0.5:
                before.append(world.tables.copy())
    world.arm()
    world.advance(120)
    world.advance(3_600)
    for number in range(6):
        came = world.types(f"Loan-{number}", layout).count("reminder came")
        assert came == (f"Loan-{number}" not in called)
    assert world.items() == []
    assert lagged


@LAYOUTS
def test_a_replica_that_has_everything_before_the_setting_and_lacks_that_loses_no_timer(layout: str) -> None:
    world = World()
    world.stores[layout].append("Loan-1", [Event(type="Lent")])
    before, perform = world.tables.copy(), world.tables.execute
    world.set("Loan-1", "reminder", 60, layout=layout)
    world.arm()

    def lagging(op: Op) -> Reply:
        stale = getattr(op, "table", "") in ("streams", "tips") and not getattr(op, "consistent", True)
        return (before.execute if stale else perform)(op)

    world.tables.execute = lagging  # type: ignore[method-assign]
    assert [each.fired for each in world.advance(120)] == [1]
    assert world.types("Loan-1", layout)[1:] == ["$timer-set", "reminder came", "$timer-fired"]


def test_a_timer_that_was_called_off_takes_half_a_read_unit_to_be_passed() -> None:
    world = World()
    world.set("Loan-1", "reminder", 60)
    world.streams.append("Loan-1", [cancel("reminder")])
    world.arm()
    before = world.meter.capacity.read
    (came,) = world.advance(61)
    assert (came.fired, came.gone) == (0, 1)
    assert world.meter.capacity.read - before == 0.5


@pytest.mark.parametrize("failing", [0, 2, 4])
def test_a_slot_comes_again_where_a_timer_of_any_of_its_pages_could_not_be_fired(
    failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochal.contrib.timers.protocol.PAGE", 2)
    monkeypatch.setattr("epochal.contrib.timers.protocol.SHARDS", 1)
    world = World()
    for number in range(6):
        world.set(f"Loan-{number}", "reminder", 60 + number)
    world.arm()
    world.wake_ups.take()
    world.time += 120 * SECOND

    def out(op: Op) -> None:
        if getattr(op, "table", "") != TIMERS.kind and f"Loan-{failing}" in repr(op):
            raise RequestNotApplied("throttled")

    world.fails = out
    slot = Wake(shard=0, since=BEGINNING, until=world.now)
    worked = world.engine.work([slot])
    assert (worked.fired, worked.failed, len(world.items())) == (5, [slot], 1)
    world.fails = lambda _: None
    again = world.engine.work(worked.failed)
    assert (again.fired, again.failed, world.items()) == (1, [], [])
