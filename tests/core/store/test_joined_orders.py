"""Callers who join their appends, in every order of what they do: each is answered, and nobody waits for ever.

Callers are greenlets of one thread. Each goes on until it waits for its turn or is about to write, and then whoever is
chosen goes on; every choice is made once. So a caller whom nobody wakes is found at once: nobody is left to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from greenlet import getcurrent, greenlet

from epochal import Appended, Event
from epochal.layout.streams import Batch
from epochal.plan.ops import Op, Put, Reply, Update
from epochal.store import joined
from epochal.store.joined import JoinedAppends, Waiting
from epochal.testing.stores import memory_streams

S = "Sensor-1"
MOST_STEPS = 100
"""More than any order of these callers takes."""


class Interrupted(BaseException):
    """As a signal interrupts a thread, or the end of a loop a task."""


class Pending:
    """A turn for which a caller waits by letting others go on."""

    def __init__(self) -> None:
        self.come = False

    def set(self) -> None:
        self.come = True

    def is_set(self) -> bool:
        return self.come

    def wait(self) -> None:
        if not self.come and let_others_go_on(self) == "interrupt":
            raise Interrupted


def let_others_go_on(waits_for: Pending | None = None) -> Any:
    parent = getcurrent().parent
    assert parent is not None
    return parent.switch(waits_for)


@dataclass
class Play:
    """One order of what callers do: of those who can go on, the one whom the next of `choices` names, else the first.

    Attributes:
        options: how many there were to choose from, each time.
    """

    callers: int
    interrupts: int
    choices: list[int]
    options: list[int] = field(default_factory=list)
    writing: int = 0
    writes: int = 0
    ends: dict[int, Appended | BaseException] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plain = memory_streams()
        driver = replace(self.plain.driver, execute=self._execute)
        self.appends = JoinedAppends(replace(self.plain, driver=driver))

    def _execute(self, op: Op) -> Reply:
        if not isinstance(op, Put | Update):
            return self.plain.driver.execute(op)
        self.writing += 1
        self.writes += 1
        assert self.writing == 1, "two callers write to one stream at once"
        let_others_go_on()
        self.writing -= 1
        return self.plain.driver.execute(op)

    def _call(self, number: int) -> Callable[[], None]:
        def call() -> None:
            try:
                self.ends[number] = self.appends.append(S, [Event(type="Measured", data=b"%d" % number)])
            except Interrupted as interrupted:
                self.ends[number] = interrupted

        return call

    def run(self) -> None:
        waits: dict[int, tuple[greenlet, Pending | None]] = {
            number: (greenlet(self._call(number)), None) for number in range(self.callers)
        }
        choices = iter(self.choices)
        for _ in range(MOST_STEPS):
            able = [(number, "") for number, (_, turn) in waits.items() if turn is None or turn.come]
            assert able or not waits, f"nobody wakes {sorted(waits)}"
            if not waits:
                return
            if self.interrupts:
                able += [(number, "interrupt") for number, (_, turn) in waits.items() if turn is not None]
            self.options.append(len(able))
            number, how = able[next(choices, 0)]
            self.interrupts -= how == "interrupt"
            caller, _ = waits.pop(number)
            turn = caller.switch(*([how] if caller else []))
            if not caller.dead:
                waits[number] = (caller, turn)
        raise AssertionError("callers go on without end")

    def check(self) -> None:
        """Each event is stored once, where its caller was told, and none of a caller who has given up before."""
        stored = [event.data for event in self.plain.read(S)]
        assert len(stored) == len(set(stored))
        for number, end in self.ends.items():
            if isinstance(end, Appended):
                assert stored[end.first] == b"%d" % number
        assert not self.appends._lines, "a line is left behind"  # noqa: SLF001  it shows nowhere else


def orders(callers: int, interrupts: int) -> Iterator[Play]:
    """Every order, each once."""
    choices: list[int] = []
    while True:
        play = Play(callers, interrupts, choices)
        play.run()
        yield play
        choices = [*choices, *[0] * (len(play.options) - len(choices))]
        while choices and choices[-1] + 1 == play.options[len(choices) - 1]:
            choices.pop()
        if not choices:
            return
        choices[-1] += 1


@pytest.fixture(autouse=True)
def pending(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(batch: Batch) -> Waiting:
        return Waiting(batch=batch, turn=Pending())

    monkeypatch.setattr(joined, "Waiting", made)


@pytest.mark.slow
@pytest.mark.parametrize(("callers", "interrupts"), [(2, 0), (3, 0), (2, 1), (3, 1)])
def test_in_every_order_each_caller_is_answered_and_each_event_is_stored_once(
    callers: int, interrupts: int
) -> None:
    fewest, given_up = callers, 0
    for play in orders(callers, interrupts):
        play.check()
        assert len(play.ends) == callers
        interrupted = sum(isinstance(each, Interrupted) for each in play.ends.values())
        written = {end.version: end for end in play.ends.values() if isinstance(end, Appended)}
        assert len(written) == callers - interrupted
        fewest, given_up = min(fewest, play.writes + interrupted), max(given_up, interrupted)
    assert fewest == 2, "the first writes for itself, and the next for all who have come meanwhile"
    assert given_up == min(interrupts, callers - 1)
