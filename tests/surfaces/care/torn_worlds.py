"""Replicas as a failover finds them: each item as it was at some moment of the last writes, of its own.

A world writes to a few streams whatever writes there are, and remembers every state of every item; a replica of it has
each item as of a moment that is drawn for it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from epochal import Event, StreamAppend, Unfold
from epochal.care.partial_replication import Replica
from epochal.care.torn import Torn
from epochal.errors import EpochalError
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.ops import BatchGet, Get, Op, Put, Query, Reply, TransactGet
from epochal.plan.values import Item
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables

TABLE = STREAMS.kind
NAMES = ("Cart-1", "Cart-2", "Cart-3")
SECOND = 1_000_000_000
WRITES = ("append",) * 6 + ("state", "only state", "all", "all", "prune", "prune", "empty")
LAG = 12
"""Writes by which an item may be behind another."""

Key = tuple[str, int]


def key_of(item: Item) -> Key:
    return item["p"]["S"], int(item["i"]["N"])


@dataclass
class Clock:
    """A fifth of a second later whenever it is asked."""

    at: int = 1_795_000_000 * SECOND

    def __call__(self) -> int:
        self.at += SECOND // 5
        return self.at


def driver_of(tables: MemoryTables) -> Driver:
    return Driver(execute=tables.execute, meter=Meter(), sleep=lambda _: None)


def streams_of(tables: MemoryTables, clock: Clock) -> Streams:
    return Streams(driver=driver_of(tables), table=TABLE, layout=Pages(), now=clock)


def torn(tables: MemoryTables, clock: Clock, *, mend: bool = False) -> list[Torn]:
    """What is found, and mended."""
    replica = Replica(driver=driver_of(tables), table=TABLE, mend=mend, now=clock.at + 60 * SECOND)
    return list(replica.findings())


def copied(items: Iterable[Item]) -> MemoryTables:
    """A table of these items."""
    tables = MemoryTables({TABLE: STREAMS})
    for item in items:
        tables.execute(Put(table=TABLE, item=item))
    return tables


@dataclass
class World:
    """The first region.

    Attributes:
        states: of every item, each with the number of the write that left it.
        events: what each stream has been given, pruned or not.
        keyed: appends under keys, by these.
    """

    seed: int
    writes: int = 30
    clock: Clock = field(default_factory=Clock)
    states: dict[Key, list[tuple[int, Item]]] = field(default_factory=dict)
    events: dict[str, list[bytes]] = field(default_factory=lambda: {name: [] for name in NAMES})
    keyed: dict[str, list[StreamAppend]] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.tables = copied(())
        self._plain, self._known = self.tables.execute, dict[Key, Item]()
        self.tables.execute = self._execute  # type: ignore[method-assign]
        self.streams = streams_of(self.tables, self.clock)
        for number in range(self.writes):
            with suppress(EpochalError):  # there may be no such stream yet
                self._write(number, self.draw.choice(NAMES))

    def replica(self, number: int) -> MemoryTables:
        """A table of the second region."""
        draw = random.Random(10 * self.seed + number)
        lost = draw.randint(max(1, self.count - 20), self.count)
        found: list[Item] = []
        for states in self.states.values():
            until = lost - draw.randint(0, LAG)
            found += [item for count, item in states if count <= until][-1:]
        return copied(found)

    def _execute(self, op: Op) -> Reply:
        reply = self._plain(op)
        if isinstance(op, Get | BatchGet | Query | TransactGet):
            return reply
        self.count += 1
        for item in self.tables.items(TABLE):
            key = key_of(item)
            if self._known.get(key) != item:
                self._known[key] = item
                self.states.setdefault(key, []).append((self.count, item))
        return reply

    def _write(self, number: int, stream: str) -> None:
        key, there = f"k{number}", self.events[stream]
        match self.draw.choice(WRITES):
            case "append":
                self._made(StreamAppend(stream=stream, events=self._events(number)))
            case "state":
                state = Unfold(type="S", data=self.draw.randbytes(self.draw.choice((40, 900))))
                self._made(StreamAppend(stream=stream, events=self._events(number), unfolds=[state]))
            case "only state":
                self._made(
                    StreamAppend(stream=stream, unfolds=[Unfold(type="S", data=b"%d" % number)]), key=key
                )
            case "all":
                both = self.draw.sample(NAMES, 2)
                self._made(
                    *(StreamAppend(stream=each, events=self._events(number)) for each in both), key=key
                )
            case "prune":
                self.streams.prune(stream, max(0, len(there) - self.draw.randint(0, 4)))
            case _:
                self.streams.delete(stream, leave_open=True)

    def _made(self, *appends: StreamAppend, key: str | None = None) -> None:
        self.streams.append_all(appends, idempotency_key=key)
        for each in appends:
            self.events[each.stream] += [event.data for event in each.events]
        if key is not None:
            self.keyed[key] = list(appends)

    def _events(self, number: int) -> list[Event]:
        draw = self.draw
        bodies = (
            b"%d.%d." % (number, each) + draw.randbytes(draw.choice((50, 300, 450)))
            for each in range(draw.randint(1, 3))
        )
        return [Event(type="E", data=each) for each in bodies]
