"""Writers on one stream in a simulated schedule: what they cost each other, the same on every machine.

8 writers make 20 decisions each, one after another, with caches of their own. A request takes 5 or 50 ms of simulated
time, a third more or less, in two parts, and comes to pass between them; a decision takes up to half a millisecond.
So what is measured is the rule for going on after a conflict, and not how the threads of a machine meet;
`bench.workloads` has them, too.

Bounds: 400 write units of refused appends and 200 read units for 160 events.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, get_args

from greenlet import getcurrent, greenlet

from bench.corpus import Kind, body
from bench.report import Report
from bench.workloads import CODEC, DECIDER, counting
from epochal.layout.pages.items import STREAMS
from epochal.layout.pages.streams import Pages
from epochal.plan.ops import Execute, Op, Reply
from epochal.store.cache import Cache
from epochal.store.deciders import Deciders
from epochal.store.driver import Driver, Meter
from epochal.store.loading import AllowStale
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables

WASTED: Final = 400
READ: Final = 200

SEEDS: Final = (1, 2, 3)
WRITERS, EACH, SIZE = 8, 20, 300
STREAM: Final = "Bench-1"

QUICK: Final = 0.005
SLOW: Final = 0.05
"""Seconds that a request takes: of DynamoDB close by, and far away or on a busy machine."""

_THOUGHT: Final = 0.0005
_NOW: Final = 1_357_000_000_000_000_000


@dataclass(slots=True)
class Schedule:
    """Simulated time, in which ordinary code waits."""

    now: float = 0.0
    _waiting: list[tuple[float, int, greenlet]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def begin(self, work: Callable[[], None]) -> None:
        """Have some work done, from now on."""
        heappush(self._waiting, (self.now, next(self._numbers), greenlet(work)))

    def sleep(self, seconds: float) -> None:
        """Let simulated time pass, in some work."""
        mine = getcurrent()
        assert mine.parent is not None
        heappush(self._waiting, (self.now + seconds, next(self._numbers), mine))
        mine.parent.switch()

    def run(self) -> None:
        """Until all is done."""
        while self._waiting:
            self.now, _, work = heappop(self._waiting)
            work.switch()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """What writers took.

    Attributes:
        kept: events that are there in the end.
        wasted: write units of appends that were refused.
        seconds: of simulated time.
        longest: that a decision took.
    """

    kept: int
    wasted: float
    read: float
    seconds: float
    longest: float


def contend(seed: int, kind: Kind, request: float = QUICK) -> Contention:
    """All writers, until each has made its decisions. `request`: seconds that one takes."""
    dice, schedule, refused = random.Random(seed), Schedule(), Meter()
    tables = MemoryTables({"streams": STREAMS})

    def carried(op: Op) -> Reply:
        schedule.sleep(request * dice.uniform(0.35, 0.65))
        reply = tables.execute(op)
        schedule.sleep(request * dice.uniform(0.35, 0.65))
        return reply

    driver = Driver(
        execute=counting(carried, refused),
        meter=Meter(),
        clock=lambda: schedule.now,
        sleep=schedule.sleep,
        luck=dice.random,
    )
    took: list[float] = []

    def write() -> None:
        deciders = Deciders(
            streams=_streams(driver, dice, schedule),
            decider=DECIDER,
            codec=CODEC,
            cache=Cache(),
            attempts=WRITERS * EACH,
        )
        for _ in range(EACH):
            began = schedule.now
            schedule.sleep(_THOUGHT * dice.random())
            deciders.handle(STREAM, body(dice, SIZE, kind), load=AllowStale())
            took.append(schedule.now - began)

    for _ in range(WRITERS):
        schedule.begin(write)
    schedule.run()
    kept = sum(1 for _ in _streams(_plain(tables.execute), dice, schedule).read(STREAM))
    units = driver.meter.units
    return Contention(
        kept=kept, wasted=refused.units.write, read=units.read, seconds=schedule.now, longest=max(took)
    )


def _streams(driver: Driver, dice: random.Random, schedule: Schedule) -> Streams:
    return Streams(
        driver=driver,
        table="streams",
        layout=Pages(),
        now=lambda: _NOW + int(schedule.now * 1e9),
        fresh=dice.randbytes,
    )


def _plain(execute: Execute) -> Driver:
    return Driver(execute=execute, meter=Meter())


def main() -> None:
    """Measure, print, fail beyond a bound."""
    found = {
        (kind, request, seed): contend(seed, kind, request)
        for kind in get_args(Kind)
        for request in (QUICK, SLOW)
        for seed in SEEDS
    }
    Report(
        title="8 writers × 20 appends of 300 B to one stream, with caches; simulated",
        columns=["", "events kept", "wasted write units", "read units", "seconds", "longest decision"],
        rows=[
            (
                f"{kind}, requests of {request * 1000:.0f} ms, seed {seed}",
                f"{took.kept}",
                f"{took.wasted:,.0f}",
                f"{took.read:,.0f}",
                f"{took.seconds:.2f}",
                f"{took.longest:.2f} s",
            )
            for (kind, request, seed), took in found.items()
        ],
    ).print()
    if not all(map(within, found.values())):
        raise SystemExit(f"events lost, or over {WASTED} write units or {READ} read units")


def within(took: Contention) -> bool:
    """Whether nothing was lost, and the bounds are kept."""
    return took.kept == WRITERS * EACH and took.wasted <= WASTED and took.read <= READ


if __name__ == "__main__":
    main()
