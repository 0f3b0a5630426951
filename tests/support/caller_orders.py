"""Callers that wait for each other, run in every order of what they do.

Callers are greenlets of one thread. Each goes on until it waits for its turn or lets others go on, and then whoever is
chosen goes on; every choice is made once. So a caller whom nobody wakes is found at once: nobody is left to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from greenlet import getcurrent, greenlet

Play = TypeVar("Play")

MOST_STEPS = 100
"""More than any order of the callers takes."""


class Interrupted(BaseException):
    """Interrupts a caller that waits, as a signal interrupts a thread, or the end of a loop a task."""


class Pending:
    """A turn for which a caller waits by letting others go on."""

    def __init__(self) -> None:
        self.come = False

    def set(self) -> None:
        self.come = True

    def is_set(self) -> bool:
        return self.come

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        if not self.come:
            let_others_go_on(self)
        return self.come


def let_others_go_on(waits_for: Pending | None = None) -> None:
    """Pause the current caller until it is chosen again; raise `Interrupted` if it is interrupted instead."""
    parent = getcurrent().parent
    assert parent is not None
    if parent.switch(waits_for) == "interrupt":
        raise Interrupted


def run_callers(
    calls: Iterable[Callable[[], None]], choices: Iterable[int], *, interrupts: int = 0, at_work: bool = False
) -> list[int]:
    """Run callers to their ends in one order.

    Args:
        calls: what each caller does.
        choices: of the callers who can go on, which one does, for each step; the first one where there are no more.
        interrupts: number of interrupts of callers that wait.
        at_work: whether callers that let others go on without waiting are interrupted, too.

    Returns:
        How many there were to choose from, at each step.
    """
    waits: dict[int, tuple[greenlet, Pending | None]] = {
        number: (greenlet(call), None) for number, call in enumerate(calls)
    }
    options: list[int] = []
    rest = iter(choices)
    for _ in range(MOST_STEPS):
        able = [(number, "") for number, (_, turn) in waits.items() if turn is None or turn.come]
        assert able or not waits, f"nobody wakes {sorted(waits)}"
        if not waits:
            return options
        if interrupts:
            able += [
                (number, "interrupt")
                for number, (caller, turn) in waits.items()
                if caller and (at_work or turn is not None)
            ]
        options.append(len(able))
        number, how = able[next(rest, 0)]
        interrupts -= how == "interrupt"
        caller, _ = waits.pop(number)
        turn = caller.switch(*([how] if caller else []))
        if not caller.dead:
            waits[number] = (caller, turn)
    raise AssertionError("callers go on without end")


def every_order(begin: Callable[[], Play], run: Callable[[Play, list[int]], list[int]]) -> Iterator[Play]:
    """Iterate over plays that have run, one for each order, with every choice made once.

    Args:
        begin: makes a play that has not run.
        run: runs a play by choices, and returns how many there were to choose from, as `run_callers` does.
    """
    choices: list[int] = []
    while True:
        play = begin()
        options = run(play, choices)
        yield play
        choices = [*choices, *[0] * (len(options) - len(choices))]
        while choices and choices[-1] + 1 == options[len(choices) - 1]:
            choices.pop()
        if not choices:
            return
        choices[-1] += 1
