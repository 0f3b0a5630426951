"""Processes that share a reaction: who runs what, and what happens when one goes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from epochal.errors import Unavailable
from epochal.hosting.runner import ALIVE_SECONDS, BLOCKED_SECONDS, FORGOTTEN_SECONDS, Runner
from epochal.index.failed_runs import FailedRun
from epochal.index.live_members import Sign, assign_units, read_signs, write_sign
from epochal.model.moments import PER_SECOND, parse_time
from epochal.plan.ops import Op
from epochal.reactions.reactor import RunResult
from epochal.reactions.steering import Groups
from tests.core.feed.feeds import Feeds
from tests.core.reactions.world import Told, World


def world_of(partitions: int) -> World:
    return World(feeds=Feeds(partitions=partitions))


def runner(
    world: World, owner: str = "one", on_turn: Callable[[int, RunResult], None] | None = None, **reaction: Any
) -> Runner:
    found = Runner(reactor=world.reactor(**reaction), owner=owner, now=world.feeds.clock)
    if on_turn is not None:
        found.on_turn = on_turn
    return found


def blocked_runs(world: World) -> list[FailedRun]:
    (figures,) = Groups(world.feeds.reader(world.feeds.streams)).standing("board")
    return list(figures.blocked)


def signs(world: World) -> dict[str, int]:
    return {sign.owner: sign.until for sign in world.feeds.driver.run(read_signs("index", "board"))}


def test_a_process_alone_runs_every_partition_and_leaves_no_sign_behind() -> None:
    world = world_of(4)
    for number in range(20):
        world.append(f"A-{number}")
    runner(world).run(until_done=True)
    assert len(world.told.handled) == 20
    assert signs(world) == {}


def test_two_processes_share_the_partitions_without_overlap() -> None:
    both = [assign_units(name, ["one", "two"], range(100)) for name in ("one", "two")]
    assert sorted(both[0] + both[1]) == list(range(100))
    assert all(len(part) > 25 for part in both)


def test_whoever_goes_leaves_only_his_own_partitions_to_the_others() -> None:
    before = {name: set(assign_units(name, ["one", "two", "three"], range(100))) for name in ("one", "two")}
    after = {name: set(assign_units(name, ["one", "two"], range(100))) for name in ("one", "two")}
    assert all(before[name] <= after[name] for name in before)


def test_what_another_living_process_takes_is_left_to_it() -> None:
    world = world_of(8)
    for number in range(40):
        world.append(f"A-{number}")
    alive = Sign(owner="two", until=int((world.feeds.clock() + ALIVE_SECONDS) * 1000))
    world.feeds.driver.run(write_sign("index", "board", alive))
    ran: list[int] = []
    runner(world, on_turn=lambda partition, _: ran.append(partition)).run(until_done=True)
    assert set(ran) == set(assign_units("one", ["one", "two"], range(8)))
    assert 0 < len(world.told.handled) < 40


def test_a_process_that_fell_silent_is_replaced_and_its_work_done_carefully(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_of(2)
    world.append("A-1")
    world.feeds.driver.run(write_sign("index", "board", Sign(owner="dead", until=1)))
    world.feeds.clock.now = 100.0
    found = runner(world)
    careful: list[bool] = []
    run = type(found.reactor).run

    def noted(self: Any, partition: int, *, seconds: float, careful_: bool = False, **more: Any) -> RunResult:
        careful.append(more.get("careful", careful_))
        return run(self, partition, seconds=seconds, **more)

    monkeypatch.setattr(type(found.reactor), "run", noted)
    found.run(until_done=True)
    assert world.told.of("A-1") == [0]
    assert careful[:2] == [True, True]
    assert not any(careful[2:])
    assert set(signs(world)) == {"dead"}


def test_a_sign_that_is_an_hour_old_is_swept_away() -> None:
    world = world_of(1)
    world.append("A-1")
    world.feeds.driver.run(write_sign("index", "board", Sign(owner="dead", until=1)))
    world.feeds.clock.now = FORGOTTEN_SECONDS + 10
    runner(world).run(until_done=True)
    assert signs(world) == {}


def test_a_blocked_partition_is_told_and_left_alone_for_a_while() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1")
    blocked: list[RunResult] = []
    runner(world, on_turn=lambda _, ran: blocked.append(ran), on_failure="block", attempts=1).run(
        until_done=True
    )
    assert len(blocked) == 1
    assert blocked[0].blocked is not None


def test_while_a_process_goes_on_its_next_run_is_expected_after_the_pause() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1")
    found, runs = runner(world, on_failure="block", attempts=1), list[FailedRun]()

    def look(*_: object) -> None:
        runs.extend(blocked_runs(world))
        found.stop.set()

    found.on_turn = look
    found.run()
    (run,) = runs
    assert parse_time(run.due) - parse_time(run.last) == BLOCKED_SECONDS * PER_SECOND
    assert (run.stream, run.index, run.cause) == ("A-1", 0, "ValueError")


@pytest.mark.parametrize("members", [1, 2])
def test_of_a_process_that_was_stopped_no_next_run_is_expected(members: int) -> None:
    world = World(told=Told(fails=lambda _: True))
    for number in range(6):
        world.append(f"A-{number}")
    found = runner(world, on_failure="block", attempts=1, members=members)
    found.on_turn = lambda *_: found.stop.set() if len(blocked_runs(world)) == members else None
    found.run()
    ended = blocked_runs(world)
    assert [(run.member, run.due, run.cause) for run in ended] == [
        (member, "", "ValueError") for member in range(members)
    ]
    assert all("its process has ended" in run.words for run in ended)
    assert all(run.last and run.runs == 1 for run in ended)


def test_a_process_whose_failure_cannot_be_recorded_says_so_and_fails_as_before() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1")

    def fail(op: Op) -> None:
        if "$ReaderFailure-" in repr(op):
            raise Unavailable("an outage")

    world.feeds.fault = fail
    found, said = runner(world, on_failure="block", attempts=1), list[str]()
    found.on_unrecorded = said.append
    assert not found.run(until_done=True)
    assert said == ["Unavailable: the store is unavailable: an outage"]


def test_a_blocked_partition_is_tried_again_after_a_pause_and_not_at_every_look() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1")
    clock, turns = world.feeds.clock, []

    class Looks(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            clock.now += timeout or 0.0
            if clock.now > 2.5 * BLOCKED_SECONDS:
                self.set()
            return self.is_set()

    found = runner(world, on_turn=lambda *_: turns.append(clock.now), on_failure="block", attempts=1)
    found.stop = Looks()
    found.run()
    assert len(turns) == 3
    assert min(later - former for former, later in itertools.pairwise(turns)) >= BLOCKED_SECONDS


def test_a_process_that_is_stopped_ends_and_leaves() -> None:
    world = world_of(1)
    for number in range(5):
        world.append(f"A-{number}")
    found = runner(world, max_events=1)
    world.told.during = lambda _: found.stop.set()
    found.run()
    assert signs(world) == {}


def test_sources_that_are_not_wanted_are_nobodys() -> None:
    world = world_of(2)
    world.append("A-1")
    runner(world, sources=frozenset({"dcb"})).run(until_done=True)
    assert world.told.handled == []
