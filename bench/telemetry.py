"""Telemetry: 1,000 events a second to one stream of pages, by the writers of one process, joined where they meet.

Time is modelled: an event comes each millisecond, and a request takes five. So a run is the same on any machine, and
takes only what its work takes. Writers that are not joined could append 100 events a second, a read and a write each
after the other; more of them at once would be in conflict.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from bench.corpus import Kind, body
from bench.report import Report
from epochal.model.events import Event
from epochal.model.outcomes import Appended
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.ops import Op, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.joined import Line, Waiting, Writes
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables

STREAM: Final = "Sensor-1"
EVENTS: Final = 2_000
EVERY: Final = 0.001
LATENCY: Final = 0.005

_BEGAN: Final = 1_357_000_000_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Figures of one event.

    Attributes:
        slowest: largest number of modelled seconds from the arrival of an event until its writer got the response.
    """

    write: float
    read: float
    requests: float
    slowest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kind of events, with the bounds of one event's figures."""

    size: int
    kind: Kind
    write: float
    requests: float = 0.21
    slowest: float = 3 * LATENCY

    def allows(self, took: Took) -> bool:
        """Return whether figures are within the bounds."""
        return (
            took.write <= self.write
            and took.requests <= self.requests
            and took.slowest <= self.slowest + 1e-9
        )


CASES: Final = (
    Case(size=100, kind="json", write=0.21),
    Case(size=300, kind="json", write=0.41),
    Case(size=1000, kind="json", write=0.61),
)


@dataclass
class Run:
    """A store whose requests take modelled time, while further events arrive."""

    bodies: list[bytes]
    tables: MemoryTables = field(default_factory=lambda: MemoryTables({"streams": STREAMS}))
    now: float = 0.0
    line: Line = field(default_factory=Line)
    came: list[Waiting] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.streams = Streams(
            driver=Driver(execute=self.execute, meter=Meter(), clock=lambda: self.now),
            table="streams",
            layout=Pages(),
            now=lambda: _BEGAN + round(self.now * 1e9),
            fresh=random.Random(1).randbytes,
        )

    def execute(self, op: Op) -> Reply:
        """Perform a request while events arrive."""
        self.now += LATENCY
        return self.tables.execute(op)

    def play(self) -> Took:
        """Append all events."""
        writes, slowest = Writes(self.streams), 0.0
        while self._come():
            batch = self.line.take()
            first = len(self.came) - self.line.waiting - len(batch)
            writes.write(STREAM, batch)
            slowest = max(slowest, self.now - first * EVERY)
        spent, events = self.streams.driver.meter, len(self.bodies)
        self._check()
        return Took(
            write=spent.units.write / events,
            read=spent.units.read / events,
            requests=spent.requests / events,
            slowest=slowest,
        )

    def _come(self) -> bool:
        """Let events that have arrived wait; if there are none, wait for the next. Return False if none is left."""
        while len(self.came) < len(self.bodies):
            if len(self.came) * EVERY > self.now:
                if self.line.waiting:
                    break
                self.now = len(self.came) * EVERY
            event = Event(type="Measured", data=self.bodies[len(self.came)])
            self.came.append(Waiting(batch=self.streams.batch(STREAM, [event])))
            self.line.join(self.came[-1])
        return self.line.waiting > 0

    def _check(self) -> None:
        indices = [waiter.result.first for waiter in self.came if isinstance(waiter.result, Appended)]
        there = [
            event.data
            for event in self.streams.on(Driver(execute=self.tables.execute, meter=Meter())).read(STREAM)
        ]
        if indices != list(range(len(self.bodies))) or there != self.bodies:
            raise SystemExit("events are not there once, in the order in which they came")


def telemetry(size: int, kind: Kind, *, events: int = EVENTS) -> Took:
    """Simulate a run with a number of events of `size` bytes."""
    dice = random.Random(1)
    return Run([body(dice, size, kind) for _ in range(events)]).play()


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded."""
    results = {case: telemetry(case.size, case.kind) for case in CASES}
    Report(
        title="Telemetry, 1,000 events a second to one stream, requests of 5 ms: what an event takes",
        columns=["event", "write units", "bound", "requests", "bound", "told after at most"],
        rows=[
            (
                f"{case.size:,} B",
                f"{took.write:.3f}",
                f"{case.write}",
                f"{took.requests:.3f}",
                f"{case.requests}",
                f"{took.slowest * 1000:.0f} ms",
            )
            for case, took in results.items()
        ],
    ).print()
    if over := [case for case, took in results.items() if not case.allows(took)]:
        raise SystemExit(f"over the bound: {over}")


if __name__ == "__main__":
    main()
