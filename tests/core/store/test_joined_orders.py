"""Callers who join their appends, in every order of what they do: each is answered, and nobody waits for ever.

A caller goes on until it waits for its turn or is about to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from epochal import Appended, Event
from epochal.layout.streams import Batch
from epochal.plan.ops import Op, Put, Reply, Update
from epochal.store import joined
from epochal.store.joined import JoinedAppends, Waiting
from epochal.testing.stores import memory_streams
from tests.support.caller_orders import Interrupted, Pending, every_order, let_others_go_on, run_callers

S = "Sensor-1"


@dataclass
class Play:
    """One order of what callers do."""

    callers: int
    interrupts: int
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

    def run(self, choices: list[int]) -> list[int]:
        return run_callers(map(self._call, range(self.callers)), choices, interrupts=self.interrupts)

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
    return every_order(lambda: Play(callers, interrupts), Play.run)


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
