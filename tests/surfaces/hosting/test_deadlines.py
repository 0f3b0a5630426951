"""A function that runs out of time says over what: Lambda's own line says nothing but that it did."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from epochal.hosting.deadline import Deadline, in_timer
from epochal.hosting.reaction_function import ReactionFunction
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from tests.core.reactions.world import Told, World
from tests.surfaces.hosting.test_wakeups import Context, function, message

STILL = "a handler is still at work, and Lambda is about to end the function"
SLOW = "a call of a handler took more than a fifth of the function's timeout"


class Log:
    """A log that keeps its lines: level, words and fields."""

    log_level = 20

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def error(self, line: str, *, extra: dict[str, Any] | None = None, **fields: Any) -> None:
        self.lines.append(("error", line, fields | (extra or {})))

    def warning(self, line: str, *, extra: dict[str, Any] | None = None, **fields: Any) -> None:
        self.lines.append(("warning", line, fields | (extra or {})))

    def of(self, line: str) -> list[dict[str, Any]]:
        return [fields for _, said, fields in self.lines if said == line]


class Alarms:
    """An alarm that goes off when a test says so."""

    def __init__(self) -> None:
        self.set: list[tuple[float, Callable[[], object]]] = []
        self.cancelled = 0

    def __call__(self, seconds: float, act: Callable[[], object]) -> Callable[[], object]:
        self.set.append((seconds, act))
        return self._cancel

    def _cancel(self) -> None:
        self.cancelled += 1

    def go_off(self) -> None:
        """As if time had come."""
        self.set[-1][1]()


def watched(world: World, **reaction: Any) -> tuple[ReactionFunction, Log, Alarms]:
    log, alarms = Log(), Alarms()
    return replace(function(world, **reaction), logger=log, alarm=alarms), log, alarms  # type: ignore[arg-type]


def woken(one: ReactionFunction, seconds: float) -> None:
    one.handle({"Records": [message(0, 1)]}, Context(seconds))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("timeout", "notice", "logged"), [(59.99, 2.0, 60), (900.0, 2.0, 900), (5.0, 0.5, 5)]
)
def test_shortly_before_its_timeout_a_function_names_handler_stream_events_and_the_limit(
    timeout: float, notice: float, logged: int
) -> None:
    world = World()
    world.append("Cart-ann", "Opened", "Paid", "Opened")
    one, log, alarms = watched(world)
    took = timeout - notice

    def hang(_: Delivery) -> None:
        world.feeds.clock.sleep(took)
        alarms.go_off()

    world.told.during = hang
    woken(one, timeout)
    assert [seconds for seconds, _ in alarms.set] == [pytest.approx(took)]
    assert log.of(STILL) == [
        {
            "handler": "tests.core.reactions.world.Told",
            "partition": 0,
            "stream": "Cart-ann",
            "index": 0,
            "events": 3,
            "types": ["Opened", "Paid"],
            "seconds": round(took, 1),
            "timeout": logged,
        }
    ]
    assert alarms.cancelled == 1


def test_a_function_that_is_between_calls_at_its_end_names_none() -> None:
    world = World()
    world.append("A-1")
    one, log, alarms = watched(world)
    woken(one, 60.0)
    alarms.go_off()
    assert log.lines == []


def test_of_a_handler_that_raises_no_call_is_left_under_way() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1")
    one, log, alarms = watched(world, attempts=2)
    woken(one, 60.0)
    alarms.go_off()
    assert log.of(STILL) == []


def test_of_a_removal_the_line_has_its_kind() -> None:
    world = World()
    world.append("A-1", "x", "y")
    log, alarms = Log(), Alarms()
    made = function(world, removed=lambda _: alarms.go_off())
    one = replace(made, logger=log, alarm=alarms)  # type: ignore[arg-type]
    woken(one, 60.0)
    world.feeds.streams.delete("A-1")
    world.index()
    one.handle({"Records": [message(0, 9)]}, Context(60.0))  # type: ignore[arg-type]
    ((line),) = log.of(STILL)
    assert (line["stream"], line["index"], line["removal"]) == ("A-1", 2, "deleted")


def test_a_replay_that_runs_out_of_time_says_so_too() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1")
    one, log, alarms = watched(world, attempts=1)
    woken(one, 60.0)
    world.told.fails = lambda _: False
    world.told.during = lambda _: alarms.go_off()
    one.handle({"command": "replay", "partition": 0, "stream": "A-1"}, Context(60.0))  # type: ignore[arg-type]
    assert [(line["stream"], line["timeout"]) for line in log.of(STILL)] == [("A-1", 60)]
    assert alarms.cancelled == 2


@pytest.mark.parametrize(("took", "warned"), [(12.0, False), (12.5, True), (40.0, True)])
@pytest.mark.parametrize("fails", [False, True])
def test_a_call_that_takes_more_than_a_fifth_of_the_timeout_is_warned_of(
    took: float, warned: bool, fails: bool
) -> None:
    world = World(told=Told(fails=lambda _: fails))
    world.append("A-1")
    one, log, _ = watched(world, attempts=1)
    world.told.during = lambda _: world.feeds.clock.sleep(took)
    woken(one, 60.0)
    lines = log.of(SLOW)
    assert [(line["stream"], line["seconds"], line["timeout"]) for line in lines] == (
        [("A-1", took, 60)] if warned else []
    )


@pytest.mark.slow
def test_of_calls_side_by_side_each_is_named() -> None:
    world = World()
    for name in "ABC":
        world.append(f"{name}-1")
    started, over = threading.Barrier(4), threading.Event()

    async def wait(_: Delivery) -> None:
        await asyncio.to_thread(started.wait)
        await asyncio.to_thread(over.wait)

    member = Member(
        reaction=Reaction(name="board", handler=wait), reader=world.feeds.reader(world.feeds.streams)
    )
    one, log, alarms = watched(world)
    one = replace(one, reactor=Reactor(member=member))
    running = threading.Thread(target=woken, args=(one, 60.0))
    running.start()
    started.wait(60)
    alarms.go_off()
    over.set()
    running.join(60)
    assert sorted(line["stream"] for line in log.of(STILL)) == ["A-1", "B-1", "C-1"]
    assert all(
        line["handler"].endswith("test_of_calls_side_by_side_each_is_named.<locals>.wait")
        for line in log.of(STILL)
    )


def test_a_timer_goes_off_in_a_thread_that_ends_with_its_process_and_not_once_it_is_cancelled() -> None:
    threads = list[threading.Thread]()
    rang = threading.Event()

    def ring() -> None:
        threads.append(threading.current_thread())
        rang.set()

    in_timer(0.0, ring)
    assert rang.wait(60)
    assert threads[0].daemon
    cancel = in_timer(3_600.0, ring)
    (timer,) = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
    cancel()
    timer.join(60)
    assert not timer.is_alive()
    assert len(threads) == 1


def test_the_deadline_is_over_when_an_invocation_raises() -> None:
    alarms = Alarms()
    with (
        pytest.raises(KeyboardInterrupt),
        Deadline("h", 60.0, logger=Log(), clock=lambda: 0.0, alarm=alarms) as deadline,  # type: ignore[arg-type]
    ):
        deadline.call(_interrupted, Delivery(group="g", partition=0, stream="A-1", events=()))
    assert alarms.cancelled == 1


def _interrupted(_: Delivery) -> None:
    raise KeyboardInterrupt


class Board:
    def __call__(self, _: Delivery) -> None: ...

    def show(self, _: Delivery) -> None: ...


def test_a_handler_is_named_by_where_its_code_is() -> None:
    def show(_: str, __: Delivery) -> None: ...

    names = [
        Reaction(name="x", handler=handler).handler_name.removeprefix(f"{__name__}.")
        for handler in (_interrupted, Board(), Board().show, partial(partial(show), "a"))
    ]
    here = "test_a_handler_is_named_by_where_its_code_is.<locals>"
    assert names == ["_interrupted", "Board", "Board.show", f"{here}.show"]
