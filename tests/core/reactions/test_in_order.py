"""Reactions that get a partition's events one after another, in the order of the feed."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState
from epochal.layout.changes import Span
from epochal.reactions.definition import Delivery
from epochal.reactions.page_tasks import Task, tasks_of
from epochal.reactions.reactor import RunResult
from tests.core.reactions.world import World, is_save

A, B = "A-1", "B-1"

IN_TURN = [(A, 0), (B, 0), (A, 1), (A, 2), (B, 1)]


def interleaved() -> World:
    """Appends of two streams in turn, indexed together."""
    world = World()
    for stream in (A, B, A, A, B):
        world.feeds.append(stream, "happened")
    world.index()
    return world


def run(world: World, *, careful: bool = False, seconds: float = 60.0, **reaction: Any) -> RunResult:
    reactor = world.reactor(**{"in_order": True, "attempts": 1, **reaction})
    return reactor.run(0, seconds=seconds, careful=careful)


def test_runs_of_streams_are_tasks_in_the_order_of_the_feed() -> None:
    spans = [
        Span(A, 0, ("x",)),
        Span(B, 0, ("x", "x")),
        Span(A, 1, ("x",)),
        Span(A, 2, ("x",)),
        Span("C", 0, ("x",)),
    ]
    state = GroupState(ahead={B: 1}, parked={"C": 0})
    found = tasks_of(spans, Checkpoint.of(0, 1), state, in_order=True).tasks
    assert found == (
        Task(stream=A, first=0, end=1),
        Task(stream=B, first=1, end=2),
        Task(stream=A, first=1, end=3),
    )


@pytest.mark.parametrize("careful", [False, True])
def test_deliveries_come_in_the_order_of_the_feed_whatever_their_streams(careful: bool) -> None:
    world = interleaved()
    ran = run(world, careful=careful)
    assert world.told.handled == IN_TURN
    assert (ran.at_tail, ran.events) == (True, 5)
    assert (world.state().checkpoint, world.state().ahead) == (Checkpoint.of(0, 1), {})


def test_without_it_they_come_stream_by_stream() -> None:
    world = interleaved()
    run(world, in_order=False)
    assert world.told.handled == [(A, 0), (A, 1), (A, 2), (B, 0), (B, 1)]


def test_it_costs_no_request_more() -> None:
    spent = []
    for in_order in (False, True):
        world = interleaved()
        start = len(world.feeds.ops)
        run(world, in_order=in_order)
        spent.append(len(world.feeds.ops) - start)
        assert sum(map(is_save, world.feeds.ops[start:])) == 2
    assert spent[0] == spent[1]


@pytest.mark.parametrize("careful", [False, True])
def test_a_stream_that_fails_is_parked_and_its_later_runs_wait_while_others_go_on(careful: bool) -> None:
    world = interleaved()
    world.told.fails = lambda delivery: (delivery.stream, delivery.events[0].index) == (A, 0)
    run(world, careful=careful)
    assert world.told.handled == [(B, 0), (B, 1)]
    assert world.state().parked == {A: 0}
    assert world.state().checkpoint == Checkpoint.of(0, 1)


def test_what_blocks_lets_nothing_after_it_come_before() -> None:
    world = interleaved()
    world.told.fails = lambda delivery: (delivery.stream, delivery.events[0].index) == (A, 1)
    ran = run(world, on_failure="block")
    assert world.told.handled == IN_TURN[:2]
    assert ran.blocked is not None
    assert world.state().checkpoint == Checkpoint.of(0, 0)
    world.told.fails = lambda _: False
    run(world, on_failure="block")
    assert world.told.handled == IN_TURN


def test_a_run_that_is_out_of_time_goes_on_where_it_stopped() -> None:
    world = interleaved()

    def passes(_: Delivery) -> None:
        world.feeds.clock.now += 10

    world.told.during = passes
    for _ in range(3):
        run(world, seconds=15)
    assert world.told.handled == IN_TURN
    assert world.state().checkpoint == Checkpoint.of(0, 1)


def test_a_long_page_is_saved_in_part() -> None:
    world = interleaved()
    ahead: list[dict[str, int]] = []

    def passes(_: Delivery) -> None:
        world.feeds.clock.now += 6
        ahead.append(dict(world.state().ahead))

    world.told.during = passes
    run(world)
    assert ahead == [{}, {A: 1}, {A: 1, B: 1}, {A: 3, B: 1}]
