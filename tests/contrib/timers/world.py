"""Stores of every layout in memory, with timers, under a clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from epochal.contrib.timers.engine import Engine
from epochal.contrib.timers.protocol import Armed, Worked, read_armed
from epochal.layout.tables import TIMERS, every_table
from epochal.model.events import Event, Recorded
from epochal.model.moments import PER_SECOND, Ticks, from_unix_nanoseconds
from epochal.plan.ops import Op, Reply, Scan
from epochal.scheduling import after, later
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables
from tests.support.wake_ups import WakeUps

BEGIN = 1_790_000_000 * 10**9
"""A second of 2026, in nanoseconds since 1970."""


def tables() -> MemoryTables:
    return MemoryTables({spec.kind: spec for spec in every_table()})


@dataclass
class World:
    """A feed, an engine on its stores, and a queue in memory."""

    tables: MemoryTables = field(default_factory=tables)
    time: int = BEGIN
    fails: Callable[[Op], None] = lambda _: None
    asked: list[Op] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.feed = MemoryStore(tables=self.tables)
        self.meter = Meter()
        driver = Driver(
            execute=self.execute,
            meter=self.meter,
            patience=Patience(retries=2),
            sleep=lambda _: None,
            clock=lambda: self.time / 1e9,
        )
        self.stores: dict[str, Streams] = {
            name: replace(store, driver=driver, now=lambda: self.time)
            for name, store in (("pages", self.feed.streams), ("tips", self.feed.tips))
        }
        self.tagged = replace(self.feed.tagged, driver=driver, now=lambda: self.time)
        self.wake_ups = WakeUps(now=lambda: self.time)
        self.engine = Engine(
            driver=driver,
            table=TIMERS.kind,
            streams=self.stores,
            tagged={"pages": self.tagged},
            send=self.wake_ups.send,
            now=lambda: self.time,
            at_once=1,
        )

    def execute(self, op: Op) -> Reply:
        self.fails(op)
        self.asked.append(op)
        return self.tables.execute(op)

    @property
    def streams(self) -> Streams:
        return self.stores["pages"]

    @property
    def now(self) -> Ticks:
        return from_unix_nanoseconds(self.time)

    def after(self, seconds: float) -> Ticks:
        """A moment from now."""
        return Ticks(self.now + round(seconds * PER_SECOND))

    def set(self, stream: str, name: str, seconds: float, *events: Event, **more: Any) -> int:
        """Set a timer; the index of its setting."""
        given = events or (Event.json(f"{name} came", {}),)
        return (
            self.stores[more.pop("layout", "pages")]
            .append(stream, [later(name, given, at=after(seconds=seconds))], **more)
            .first
        )

    def arm(self) -> None:
        """Let the reaction run."""
        for ran in self.feed.react(self.engine.reaction()):
            assert ran.at_tail, ran
            assert not ran.parked, ran

    def work(self) -> Worked:
        """Do what has come by now."""
        return self.engine.work(self.wake_ups.take(most=10_000))

    def advance(self, seconds: float) -> list[Worked]:
        """Let time pass: at each moment that something wakes the engine, it works."""
        ends, came = self.time + round(seconds * 10**9), list[Worked]()
        while (at := self.wake_ups.next) is not None and at <= from_unix_nanoseconds(ends):
            self.time = max(self.time, (at - from_unix_nanoseconds(0)) * 100)
            came.append(self.work())
        self.time = ends
        return came

    def items(self) -> list[Armed]:
        """What waits in the table of timers."""
        return sorted(read_armed(each) for each in self.tables.execute(Scan(table=TIMERS.kind)).items)  # type: ignore[union-attr]

    def types(self, stream: str, layout: str = "pages") -> list[str]:
        """Of a stream's events."""
        return [each.type for each in self.events(stream, layout)]

    def events(self, stream: str, layout: str = "pages") -> Sequence[Recorded]:
        return list(self.stores[layout].read(stream))
