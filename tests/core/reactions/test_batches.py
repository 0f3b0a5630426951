"""Reactions read new streams in batches: all is delivered once and in order, and nothing is read that is not needed."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from epochal.errors import Unavailable
from epochal.model.events import Event
from epochal.pages.layout import Pages
from epochal.plan.failures import RequestNotApplied
from epochal.plan.ops import BatchGet, Op, Query
from epochal.reactions.definition import Delivery
from epochal.reactions.reactor import Reactor, RunResult
from tests.core.feed.feeds import Feeds
from tests.core.reactions.world import World


def batches(world: World, since: int = 0) -> list[int]:
    """Numbers of streams in the batches that were read."""
    return [
        len(op.keys) for op in world.feeds.ops[since:] if isinstance(op, BatchGet) and op.table == "streams"
    ]


def queries(world: World, since: int = 0) -> int:
    """Number of queries of streams."""
    return sum(isinstance(op, Query) and op.table == "streams" for op in world.feeds.ops[since:])


def reactor_of(world: World, **reaction: Any) -> Reactor:
    """A process of the group `board`, whose reads of streams are on record, too."""
    reactor = world.reactor(**reaction)
    reader = reactor.member.reader.on(world.feeds.driver)
    return replace(reactor, member=replace(reactor.member, reader=reader))


def run(world: World, **reaction: Any) -> RunResult:
    """A run of the group."""
    return reactor_of(world, **reaction).run(0, seconds=60)


def grown(world: World, streams: int, *types: str) -> None:
    """Append to so many streams, and index all of it together."""
    for number in range(streams):
        world.feeds.append(f"A-{number}", *(types or ("happened",)))
    world.index()


class Unbatched(Pages):
    """The layout of pages without batches."""

    begin_batch = None  # type: ignore[assignment]  # a protocol's method that a class does not have


@pytest.mark.parametrize("parallel", [1, 8])
def test_new_streams_are_read_in_batches_and_delivered_in_the_order_of_the_feed(parallel: int) -> None:
    world = World()
    grown(world, 60)
    world.feeds.ops.clear()
    ran = run(world, parallel=parallel)
    assert world.told.handled == [(f"A-{number}", 0) for number in range(60)]
    assert (ran.at_tail, ran.events) == (True, 60)
    assert (batches(world), queries(world)) == ([2, 8, 32, 18], 0)


def test_in_order_windows_are_read_in_batches_too() -> None:
    world = World()
    grown(world, 60)
    world.feeds.ops.clear()
    run(world, in_order=True)
    assert world.told.handled == [(f"A-{number}", 0) for number in range(60)]
    assert (batches(world), queries(world)) == ([2, 8, 32, 18], 0)


@pytest.mark.parametrize(("streams", "singly"), [(1, 1), (7, 7), (8, 0)])
def test_a_few_streams_are_read_one_by_one(streams: int, singly: int) -> None:
    world = World()
    grown(world, streams)
    world.feeds.ops.clear()
    run(world)
    assert queries(world) == singly
    assert len(world.told.handled) == streams


def test_later_events_of_streams_are_read_one_by_one() -> None:
    world = World()
    grown(world, 20)
    run(world)
    grown(world, 20)
    since = len(world.feeds.ops)
    run(world)
    assert (batches(world, since), queries(world, since)) == ([], 20)
    assert Counter(world.told.handled) == {
        (f"A-{number}", index): 1 for number in range(20) for index in (0, 1)
    }


def test_streams_that_have_grown_since_cost_two_guesses_a_page() -> None:
    world = World()
    streams = world.feeds.streams
    for number in range(30):
        for _ in range(3):
            streams.append(f"A-{number}", [Event(type="happened", data=random.randbytes(900))])
    world.index()
    world.feeds.ops.clear()
    run(world)
    assert batches(world) == [2]
    assert world.told.handled == [(f"A-{number}", index) for number in range(30) for index in range(3)]


def test_nothing_is_read_once_time_is_over() -> None:
    world = World()
    grown(world, 60)
    world.feeds.ops.clear()

    def wait(_: Delivery) -> None:
        world.feeds.clock.now += 100 if len(world.told.calls) == 5 else 0

    world.told.during = wait
    ran = run(world, parallel=1)
    assert (ran.at_tail, ran.events) == (False, 5)
    assert (batches(world), queries(world)) == ([2, 8], 0)
    run(world)
    assert world.told.handled == [(f"A-{number}", 0) for number in range(60)]


def test_a_stream_that_fails_is_parked_and_the_others_of_its_batch_are_delivered() -> None:
    world = World()
    grown(world, 40)
    world.told.fails = lambda delivery: delivery.stream in ("A-5", "A-20")
    ran = run(world, attempts=1)
    assert {failure.stream for failure in ran.parked} == {"A-5", "A-20"}
    assert world.told.handled == [(f"A-{number}", 0) for number in range(40) if number not in (5, 20)]


def test_a_batch_that_cannot_be_read_fails_the_run_and_the_next_run_delivers_all() -> None:
    world = World()
    grown(world, 60)

    def fault(op: Op) -> None:
        if isinstance(op, BatchGet) and len(op.keys) == 32:
            raise RequestNotApplied("throttled")

    world.feeds.fault = fault
    with pytest.raises(Unavailable, match="throttled"):
        run(world)
    world.feeds.fault = lambda _: None
    run(world)
    assert set(world.told.handled) == {(f"A-{number}", 0) for number in range(60)}


def test_pruned_and_deleted_streams_are_delivered_as_they_are_when_they_are_read() -> None:
    world = World()
    grown(world, 30, "x", "y", "z")
    streams = world.feeds.streams
    streams.prune("A-11", before=2)
    streams.delete("A-12", leave_open=False)
    streams.delete("A-13", leave_open=True)
    run(world)
    gone = {
        call.stream: [event.index for event in call.events if event.gone]
        for call in world.told.calls
        if any(event.gone for event in call.events)
    }
    assert gone == {"A-11": [0, 1], "A-12": [0, 1, 2], "A-13": [0, 1, 2]}


def test_threads_take_every_stream_of_batches_once() -> None:
    world = World()
    grown(world, 900)
    replace(reactor_of(world, parallel=8), executor=ThreadPoolExecutor).run(0, seconds=600)
    assert Counter(world.told.handled) == {(f"A-{number}", 0): 1 for number in range(900)}
    assert queries(world) == 0


def test_a_layout_without_batches_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    unbatched = replace(world.feeds.streams, layout=Unbatched())
    monkeypatch.setattr(Feeds, "streams", unbatched)
    grown(world, 60)
    world.feeds.ops.clear()
    run(world)
    assert world.told.handled == [(f"A-{number}", 0) for number in range(60)]
    assert (batches(world), queries(world)) == ([], 60)


def test_streams_of_which_no_event_is_taken_are_not_read() -> None:
    world = World()
    grown(world, 30, "x")
    world.feeds.ops.clear()
    run(world, types=frozenset({"y"}), skipped=world.told)
    assert (batches(world), queries(world)) == ([], 0)
    assert len(world.told.calls) == 30


def generated(seed: int) -> World:
    """A world in which streams are begun, go on, are pruned and are deleted, all of it indexed together."""
    chance = random.Random(seed)
    world = World()
    for number in range(chance.randint(10, 40)):
        stream = f"A-{number}"
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            world.feeds.append(stream, *chance.choices("xyz", k=chance.choice((1, 1, 2, 4))))
            if chance.random() < 0.2:
                world.feeds.streams.prune(stream, before=chance.randint(1, 2))
        if chance.random() < 0.1:
            world.feeds.streams.delete(stream, leave_open=chance.random() < 0.5)
        if chance.random() < 0.1:
            world.index()
    world.index()
    return world


@pytest.mark.parametrize("parallel", [1, 8])
@pytest.mark.parametrize("seed", range(20))
def test_handlers_are_called_as_they_are_without_batches(
    monkeypatch: pytest.MonkeyPatch, seed: int, parallel: int
) -> None:
    world = generated(seed)
    options = {
        "parallel": parallel,
        "types": frozenset("xy"),
        "removed": world.told,
        "skipped": world.told,
        "max_events": 3,
        "attempts": 1,
    }
    world.told.fails = lambda delivery: delivery.stream == "A-7"
    assert run(world, **options).at_tail
    in_batches, world.told.calls = world.told.calls, []
    monkeypatch.setattr(Feeds, "streams", replace(world.feeds.streams, layout=Unbatched()))
    assert run(world, name="panel", **options).at_tail
    assert [replace(call, group="panel") for call in in_batches] == world.told.calls
