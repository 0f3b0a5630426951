"""Running a reaction over a partition: what is handled, in which order, and what is on record afterwards."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from epochal.errors import InvalidInput, Unavailable
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM
from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import Op, Put, Update
from epochal.reactions.definition import Delivery
from tests.core.feed.feeds import Feeds, streams_of
from tests.core.reactions.world import Told, World, is_save


def test_every_event_is_handled_in_the_order_of_its_stream_and_the_checkpoint_is_the_tail() -> None:
    world = World()
    for _ in range(3):
        world.append("A-1", "x", "y")
        world.append("B-1")
    ran = world.reactor().run(0, seconds=60)
    assert world.told.of("A-1") == [0, 1, 2, 3, 4, 5]
    assert world.told.of("B-1") == [0, 1, 2]
    assert (ran.at_tail, ran.events, ran.blocked, ran.parked) == (True, 9, None, ())
    assert world.state() == GroupState(checkpoint=Checkpoint.of(0, 6))


def test_what_is_handled_does_not_come_again() -> None:
    world = World()
    world.append("A-1")
    world.reactor().run(0, seconds=60)
    ran = world.reactor().run(0, seconds=60)
    assert world.told.handled == [("A-1", 0)]
    assert (ran.events, ran.moved) == (0, False)


def test_a_run_that_finds_nothing_writes_nothing() -> None:
    world = World()
    world.append("A-1")
    world.reactor().run(0, seconds=60)
    world.feeds.ops.clear()
    world.reactor().run(0, seconds=60)
    assert not [op for op in world.feeds.ops if isinstance(op, Put | Update)]


def test_only_what_is_wanted_is_delivered_and_the_checkpoint_passes_the_rest() -> None:
    world = World()
    world.append("A-1", "x", "y")
    world.append("B-1", "x")
    world.append("A-2", "z")
    ran = world.reactor(categories=frozenset({"A"}), types=frozenset({"y", "z"})).run(0, seconds=60)
    assert world.told.handled == [("A-1", 1), ("A-2", 0)]
    assert ran.checkpoint == Checkpoint.of(0, 3)


@pytest.mark.parametrize(
    ("start", "handled"),
    [("beginning", [0, 1]), ("tail", [1]), ({0: Checkpoint.of(0, 1)}, [1]), ({}, [0, 1])],
)
def test_a_new_group_begins_where_it_says(start: object, handled: list[int]) -> None:
    world = World()
    world.append("A-1")
    world.reactor(start=start).run(0, seconds=60)
    world.append("A-1")
    world.reactor(start=start).run(0, seconds=60)
    assert world.told.of("A-1") == handled


@pytest.mark.parametrize("by_partition", [False, True], ids=["everywhere", "in the partition"])
def test_a_new_group_begins_at_a_moment_and_goes_on_from_its_checkpoint(by_partition: bool) -> None:
    now = [0.0]
    world = World(feeds=Feeds(now=lambda: int(now[0] * 1e9)))
    for now[0] in (1_000.0, 2_000.0, 3_000.0):
        world.append("A-1")
    moment = datetime.fromtimestamp(2_000, UTC)
    start = {0: moment} if by_partition else moment
    world.reactor(start=start).run(0, seconds=60)
    world.append("A-1")
    requests = len(world.feeds.ops)
    world.reactor(start=start).run(0, seconds=60)
    assert world.told.of("A-1") == [1, 2, 3]
    assert "$AppendsIndex-0" not in streams_of(world.feeds.ops[requests:])


def test_a_start_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="start: must be beginning, tail, .* or a moment"):
        World().reactor(start="now")
    with pytest.raises(InvalidInput, match="start: must name the partition of a checkpoint"):
        World().reactor(start=Checkpoint(7))


def test_a_group_that_begins_at_the_tail_keeps_to_the_tail_it_found_first() -> None:
    world = World()
    world.append("A-1")
    world.reactor(start="tail").run(0, seconds=60)
    world.append("A-1")
    world.append("A-1")
    world.reactor(start="tail").run(0, seconds=60)
    assert world.told.of("A-1") == [1, 2]


def test_a_partition_that_is_not_on_record_has_no_tail_to_begin_at() -> None:
    with pytest.raises(InvalidInput, match="not in the index"):
        World().reactor(start="tail").run(0, seconds=60)


def test_a_delivery_holds_no_more_events_than_asked_for() -> None:
    world = World()
    world.append("A-1", *"abcde")
    world.reactor(max_events=2).run(0, seconds=60)
    assert [len(call.events) for call in world.told.calls] == [2, 2, 1]


def test_keys_are_the_same_however_the_events_are_delivered() -> None:
    world = World()
    world.append("A-1", "x", "y")
    world.reactor(max_events=2).run(0, seconds=60)
    other = World(told=Told(), feeds=world.feeds, indexed=world.indexed)
    other.reactor(max_events=1, name="board2").run(0, seconds=60)
    assert [call.key(event) for call in world.told.calls for event in call.events] == [
        "board/0/A-1@0",
        "board/0/A-1@1",
    ]
    assert [call.key(event) for call in other.told.calls for event in call.events] == [
        "board2/0/A-1@0",
        "board2/0/A-1@1",
    ]


def test_a_failed_delivery_is_repeated_one_by_one_and_goes_on() -> None:
    failures = iter([True, False, True, False])
    world = World(told=Told(fails=lambda _: next(failures, False)))
    world.append("A-1", "x", "y", "z")
    ran = world.reactor().run(0, seconds=60)
    assert [(len(call.events), call.events[0].index, call.attempt) for call in world.told.calls] == [
        (3, 0, 1),
        (1, 0, 1),
        (1, 1, 1),
        (1, 1, 2),
        (1, 2, 1),
    ]
    assert world.told.of("A-1") == [0, 1, 2]
    assert ran.parked == ()


def test_pauses_between_attempts_grow() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1")
    clock = world.feeds.clock
    at: list[float] = []
    world.told.during = lambda _: at.append(clock.now)
    world.reactor(attempts=5).run(0, seconds=60)
    pauses = [round(b - a, 3) for a, b in pairwise(at)]
    assert pauses == [0.2, 0.4, 0.8, 1.6]


def test_time_that_runs_out_leaves_the_checkpoint_and_keeps_what_is_done() -> None:
    world = World()
    world.feeds.append("A-1", "x")
    world.feeds.append("B-1", "x")
    world.index()
    clock = world.feeds.clock
    world.told.during = lambda _: clock.sleep(10)
    ran = world.reactor().run(0, seconds=5)
    assert world.told.handled == [("A-1", 0)]
    assert (ran.at_tail, ran.moved, ran.checkpoint) == (False, True, 0)
    assert world.state() == GroupState(ahead={"A-1": 1})
    world.reactor().run(0, seconds=60)
    assert world.told.handled == [("A-1", 0), ("B-1", 0)]
    assert world.state() == GroupState(checkpoint=Checkpoint.of(0, 1))


def test_a_stream_that_is_stopped_midway_goes_on_from_there() -> None:
    world = World()
    world.append("A-1", *"abcd")
    clock = world.feeds.clock
    world.told.during = lambda _: clock.sleep(3)
    world.reactor(max_events=1).run(0, seconds=5)
    assert world.state() == GroupState(ahead={"A-1": 2})
    world.append("A-1", "e")
    world.reactor(max_events=1).run(0, seconds=60)
    assert world.told.of("A-1") == [0, 1, 2, 3, 4]


def test_a_handler_that_dies_brings_its_events_again() -> None:
    world = World()
    world.append("A-1")

    def dies(_: Delivery) -> None:
        raise KeyboardInterrupt

    world.told.during = dies
    with pytest.raises(KeyboardInterrupt):
        world.reactor().run(0, seconds=60)
    assert world.state().checkpoint == 0
    world.told.during = lambda _: None
    world.reactor().run(0, seconds=60)
    assert world.told.handled == [("A-1", 0)]


def test_when_another_process_was_here_its_state_counts() -> None:
    world = World()
    world.append("A-1")
    other = World(told=Told(), feeds=world.feeds, indexed=world.indexed)

    def interfere(_: Delivery) -> None:
        world.told.during = lambda _: None
        other.reactor().run(0, seconds=60)
        world.append("A-1")

    world.told.during = interfere
    ran = world.reactor().run(0, seconds=60)
    assert world.told.of("A-1") == [0, 1]
    assert other.told.of("A-1") == [0]
    assert (ran.at_tail, world.state().checkpoint) == (True, Checkpoint.of(0, 2))


def test_a_save_whose_answer_is_lost_is_known_for_our_own() -> None:
    world = World()
    world.append("A-1")
    world.reactor().run(0, seconds=60)
    world.append("A-1")
    lost = 0

    def lose(op: Op) -> None:
        nonlocal lost
        if is_save(op) and not lost:
            lost += 1
            world.feeds.tables.execute(op)
            raise Lost("reset")

    world.feeds.fault = lose
    world.reactor().run(0, seconds=60)
    assert lost == 1
    assert world.told.of("A-1") == [0, 1]


def test_a_store_that_keeps_failing_is_told_and_nothing_is_passed() -> None:
    world = World()
    world.append("A-1")
    world.reactor().run(0, seconds=60)
    world.append("A-1")

    def refuse(op: Op) -> None:
        if is_save(op):
            raise RequestNotApplied("throttled")

    world.feeds.fault = refuse
    with pytest.raises(Unavailable):
        world.reactor().run(0, seconds=60)
    world.feeds.fault = lambda _: None
    assert world.state().checkpoint == Checkpoint.of(0, 1)
    world.reactor().run(0, seconds=60)
    assert world.told.of("A-1") == [0, 1, 1]


def test_a_caller_waits_until_a_position_of_the_feed_has_been_handled() -> None:
    world = World()
    world.append("A-1")
    member = world.reactor().member
    tail = member.reader.partitions()[0].tail
    assert not member.wait_for(0, tail, seconds=1)
    runs = [lambda: world.reactor().run(0, seconds=60)]
    world.feeds.clock.at_sleep = lambda: runs.pop()() if runs else None
    assert member.wait_for(0, tail, seconds=10)
    assert world.told.of("A-1") == [0]


def test_a_handler_that_dies_after_its_append_and_reloads_its_stream_writes_once() -> None:
    """As the guide advises: `delivery.key` is the key of what a handler appends elsewhere."""
    world = World()
    world.append("A-1")
    world.append("A-1")
    streams = world.feeds.streams
    deaths = iter([True, True])

    def bill(delivery: Delivery) -> None:
        for event in delivery.events:
            state = streams.load("Bill-1")
            streams.append(
                "Bill-1",
                [Event(type="Billed", data=str(event.index).encode())],
                expected=NO_STREAM if state is None else state.token,
                idempotency_key=delivery.key(event),
            )
            if next(deaths, False):
                raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            world.reactor(handler=bill, categories=frozenset({"A"})).run(0, seconds=60)
    world.reactor(handler=bill, categories=frozenset({"A"})).run(0, seconds=60)

    assert [event.data for event in streams.read("Bill-1")] == [b"0", b"1"]
