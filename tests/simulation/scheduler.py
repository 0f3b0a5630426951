"""Several processes over one table, one request at a time, in an order that a test chooses.

Each process is a greenlet that stops before every request until its turn comes, so ordinary blocking code is
interleaved at exactly the points where a network would interleave it, and nowhere else. A thread would do the same for
five times the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import Done, Execute, Op, Reply
from tests.simulation.stories import told

Body = Callable[[Execute], None]
"""What a process does, given its interpreter."""

NOTHING = Done()
"""What a pause is answered."""


@dataclass(frozen=True, slots=True)
class Pause:
    """What a process asks for to let the others go on: no request at all.

    Attributes:
        until: its turn does not come before this is so.
    """

    until: Callable[[], bool] | None = None


PAUSE: Any = Pause()


class Killed(BaseException):
    """The process has died. Not an `Exception`, so that nothing it runs handles it."""


def failing(perform: Execute, rng: Random, faults: float) -> Execute:
    """An interpreter of which this share of requests is throttled, as many are cut off, and a third as many kill."""

    def execute(op: Op) -> Reply:
        fate = rng.random()
        if fate < faults:
            raise RequestNotApplied("throttled")
        reply = perform(op)
        if fate < 2 * faults:
            raise Lost("cut off")
        if fate < 2.3 * faults:
            raise Killed
        return reply

    return execute


class Process:
    """A greenlet that runs only between two requests of its own."""

    def __init__(self, name: str, execute: Execute, body: Body) -> None:
        self.name = name
        self.done = False
        self.error: BaseException | None = None
        self._until: Callable[[], bool] | None = None
        telling, self._tell = told(name, execute)
        self._execute = alone(telling)
        self._greenlet = greenlet(self._run)
        self._greenlet.switch(body)

    @property
    def waiting(self) -> bool:
        """Whether it could go on now."""
        return not self.done and (self._until is None or self._until())

    def step(self) -> None:
        """Perform the request that the process stands before, and run to the next, or to the end."""
        self._greenlet.parent = getcurrent()
        self._greenlet.switch()

    def _perform(self, op: Op) -> Reply:
        self._until = op.until if isinstance(op, Pause) else None
        self._greenlet.parent.switch()
        return self._execute(op)

    def _run(self, body: Body) -> None:
        try:
            body(self._perform)
        except Killed:
            self._tell("dies")
        except Exception as error:  # noqa: BLE001  it is raised again once all are done; Ctrl-C goes to who steps
            self.error = error
        self.done = True


def alone(execute: Execute) -> Execute:
    """The interpreter of a process that is alone: there is nobody to pause for."""
    return lambda op: NOTHING if isinstance(op, Pause) else execute(op)


def mortal(execute: Execute, requests: int | None) -> Execute:
    """An interpreter whose process dies before the request that follows so many."""
    left = requests

    def perform(op: Op) -> Reply:
        nonlocal left
        if left is not None:
            if left == 0:
                raise Killed
            left -= 1
        return execute(op)

    return perform


def run(processes: Mapping[str, Process], choose: Callable[[list[str]], str]) -> list[str]:
    """Let processes take turns until all are done; the order in which they did.

    Raises whatever a process raised.
    """
    order = []
    while waiting := [name for name, process in processes.items() if process.waiting]:
        name = choose(waiting)
        order.append(name)
        processes[name].step()
    for process in processes.values():
        if process.error is not None:
            raise process.error
    assert all(process.done for process in processes.values()), "everyone waits for someone else"
    return order


def every_order(run_in_order: Callable[[Callable[[list[str]], str]], None]) -> Iterator[int]:
    """Run again and again, until every order in which processes can take turns has been taken; yields the count.

    Depth first: each run repeats a prefix of the one before and takes the next branch at its end.
    """
    trail: list[tuple[int, int]] = []
    count = 0
    while True:
        depth = 0

        def choose(waiting: list[str]) -> str:
            nonlocal depth
            if depth == len(trail):
                trail.append((0, len(waiting)))
            taken, _ = trail[depth]
            depth += 1
            return waiting[taken]

        run_in_order(choose)
        count += 1
        yield count
        while trail and trail[-1][0] + 1 == trail[-1][1]:
            trail.pop()
        if not trail:
            return
        taken, width = trail[-1]
        trail[-1] = (taken + 1, width)
