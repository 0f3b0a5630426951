"""After whatever failure a reaction goes on within a minute, and an outage of an hour costs it none of its wake-ups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from epochal.errors import Unavailable
from epochal.hosting.wakeup_queue import Queue, steered_wake_ups
from epochal.plan.ops import Op
from epochal.reactions.definition import Delivery
from tests.simulation.wakeup_world import Life, WakeUpWorld

WITHIN = 60.0
HOUR = 3_600.0
TIMEOUTS = (5, 60, 900)

Failure = Callable[[WakeUpWorld, float], None]


def out_of_memory(world: WakeUpWorld, until: float) -> None:
    """The kernel kills the process over the first event."""

    def does(_: Delivery, life: Life) -> None:
        if world.clock() < until:
            life.kill()

    world.does = does


def slow_death(world: WakeUpWorld, until: float) -> None:
    """Something kills the process when half of its time is over."""

    def does(_: Delivery, life: Life) -> None:
        if world.clock() < until:
            world.clock.sleep(world.timeout / 2)
            life.kill()

    world.does = does


def hang(world: WakeUpWorld, until: float) -> None:
    """The handler does not return, until Lambda ends the process."""

    def does(_: Delivery, __: Life) -> None:
        if world.clock() < until:
            world.clock.sleep(100 * HOUR)

    world.does = does


def store_is_out(world: WakeUpWorld, until: float) -> None:
    """The function raises."""

    def fault(_: Op) -> None:
        if world.clock() < until:
            raise Unavailable("the table does not answer")

    world.fault = fault


def process_exits(world: WakeUpWorld, until: float) -> None:
    """The handler ends its process, as a library does that gives up."""

    def does(_: Delivery, __: Life) -> None:
        if world.clock() < until:
            raise SystemExit(1)

    world.does = does


def partition_blocks(world: WakeUpWorld, until: float) -> None:
    """The handler raises, and the reaction parks nothing."""
    world.reaction = {"on_failure": "block", "attempts": 1}

    def does(_: Delivery, __: Life) -> None:
        if world.clock() < until:
            raise ValueError("what it calls is out")

    world.does = does


DEADLY = (out_of_memory, slow_death, hang, process_exits)
FAILURES = (*DEADLY, store_is_out, partition_blocks)


@pytest.mark.parametrize("timeout", TIMEOUTS)
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
def test_a_reaction_goes_on_within_a_minute_after_a_run_that_failed(failure: Failure, timeout: int) -> None:
    world = WakeUpWorld(timeout=timeout)
    failure(world, 0.5)
    world.append("A-1")
    world.append("B-1")
    world.poll(timeout + 2 * WITHIN)
    first, second, *_ = world.invocations
    assert first.failed
    assert second.began - first.ended <= WITHIN
    assert sorted(world.handled()) == [("A-1", 0), ("B-1", 0)]
    assert world.queue.messages == []


@pytest.mark.slow
@pytest.mark.parametrize("timeout", TIMEOUTS)
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
def test_an_outage_of_an_hour_sets_no_wake_up_aside_and_the_reaction_goes_on_when_it_is_over(
    failure: Failure, timeout: int
) -> None:
    world = WakeUpWorld(timeout=timeout)
    failure(world, HOUR)
    world.append("A-1")
    world.append("A-2")
    world.poll(HOUR)
    ended = world.invocations[-1].ended
    world.poll(max(0.0, ended + 3 * WITHIN + timeout - world.clock()))
    assert world.queue.dead == []
    gaps = [
        after.began - before.ended
        for before, after in zip(world.invocations, world.invocations[1:], strict=False)
    ]
    assert max(gaps) <= WITHIN
    assert world.queue.messages == []
    # What a process has died over as often as the reaction attempts an event is parked.
    parked = world.world.state().parked
    assert sorted(world.handled()) == [(name, 0) for name in ("A-1", "A-2") if name not in parked]
    assert not parked or failure in DEADLY


@pytest.mark.slow
@pytest.mark.parametrize("timeout", TIMEOUTS)
def test_an_hour_without_a_process_to_spare_sets_no_wake_up_aside(timeout: int) -> None:
    """Lambda gives a throttled batch up when the queue shows it again."""
    world = WakeUpWorld(timeout=timeout, throttled=lambda now: now < HOUR)
    world.append("A-1")
    world.poll(HOUR + max(timeout, WITHIN))
    assert world.queue.dead == []
    assert world.handled() == [("A-1", 0)]


def steer(world: WakeUpWorld) -> None:
    """What a command of an operator or a deployment of other code sends."""
    queue = Queue(cast("Any", world.queue), "queue")
    queue.send(steered_wake_ups(world.world.feeds.reader().partitions(), f"now-{world.clock()}"))


@pytest.mark.parametrize("timeout", TIMEOUTS)
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
def test_a_command_or_a_deployment_takes_effect_in_seconds_though_a_run_has_failed(
    failure: Failure, timeout: int
) -> None:
    world = WakeUpWorld(timeout=timeout)
    failure(world, 1_000.0)
    world.append("A-1")
    while not any(each.failed for each in world.invocations):
        world.poll(1.0)
    for message in world.queue.messages:  # as after many failures
        message.visible = world.clock() + WITHIN
    world.does, world.fault = (lambda *_: None), (lambda _: None)
    steer(world)
    began = world.clock()
    world.poll(10.0)
    assert world.handled() == [("A-1", 0)]
    assert world.clock() - began <= 11.0
    world.poll(WITHIN)
    assert world.queue.messages == []
    assert world.handled() == [("A-1", 0)]


def test_a_wake_up_that_comes_aside_leaves_a_partition_that_is_run_to_its_run() -> None:
    world = WakeUpWorld()
    world.append("A-1")
    world.poll(1.0)
    world.world.append("B-1")
    steer(world)
    world.queue.messages = [each for each in world.queue.messages if "!" in each.group]
    member = world.world.reactor().member

    def save() -> None:
        held = member.load(0)
        assert held.state is not None
        member.save(held, replace(held.state, trying={"B-1": 1}))

    world.clock.at(world.clock() + 3.0, save)
    world.poll(10.0)
    assert world.queue.messages == []
    assert world.handled() == [("A-1", 0)]
