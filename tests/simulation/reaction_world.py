"""Writers, indexers, reactors of one group and an operator who replays, over one table, one request at a time.

A seed says who comes next, which requests are throttled, lost or left unanswered, which processes die and where, what
handlers fail at and when they take long. Two things are looked at: before each delivery, that it takes its stream no
further than one event at a time; and after each write of the group's state, that nothing lies behind its checkpoint
that is neither handled nor parked (GUARANTEES G9), and that it has not gone back.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from epochal.contrib.equinox.port import tips_source
from epochal.contrib.equinox.streams import Tips
from epochal.errors import InvalidInput, Unavailable
from epochal.feed.indexer import Indexer
from epochal.feed.reader import FeedReader
from epochal.feed.stream_history import StreamHistory
from epochal.feed.stream_records import Record
from epochal.index.epochs import EpochLimits
from epochal.model.events import Event
from epochal.plan.ops import Execute, Op, Reply
from epochal.reactions.definition import Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from epochal.store.driver import POOL, Driver
from epochal.store.streams import Streams
from epochal.testing.memory import Fault, Faults, Late, MemoryTables, Schedule
from epochal.testing.stores import memory_tables
from tests.simulation.group_checks import Group
from tests.simulation.scheduler import PAUSE, Killed, Process, alone
from tests.simulation.scheduler import run as take_turns
from tests.simulation.world import NOON, bytes_of, driver_on
from tests.support.inline import Inline

STREAMS = ("A-1", "A-2", "B-1")
GROUP = "board"
LIMITS = EpochLimits(entries=3)
"""An epoch is over soon, so that checkpoints cross its end."""


@dataclass
class ReactionWorld:
    """One seed's history."""

    seed: int
    tables: MemoryTables = field(default_factory=memory_tables)

    def __post_init__(self) -> None:
        self.luck = random.Random(self.seed)
        self.group = Group.drawn(GROUP, self.tables, self.luck, STREAMS)
        self.met = self.group.met

    def driver(self, name: str, execute: Execute) -> tuple[Driver, Callable[[int], bytes]]:
        """A process's driver, and its random bytes."""
        return driver_on(execute), bytes_of(f"{self.seed} {name}")

    def streams(self, name: str, execute: Execute) -> Streams:
        driver, fresh = self.driver(name, execute)
        return Streams(driver=driver, table="tips", layout=Tips(), now=lambda: NOON, fresh=fresh)

    def reactor(self, name: str, execute: Execute) -> Reactor:
        """A process of the group."""
        driver, fresh = self.driver(name, execute)
        reader = FeedReader(
            driver=driver, table="index", histories=(StreamHistory(self.streams(f"{name} reads", execute)),)
        )

        reaction = Reaction(
            name=GROUP,
            handler=self.group.handler(driver.sleep),
            max_events=2,
            attempts=2,
            parallel=1,
            in_order=self.seed % 2 == 0,
        )
        member = Member(reaction=reaction, reader=reader, now=lambda: NOON, fresh=fresh)
        return Reactor(member=member, executor=Inline)

    def watched(self, op: Op) -> Reply:
        """The tables, judged after each write of the group's state."""
        return self.group.watch(0, self.tables.execute, op)

    def faulty(self, execute: Execute) -> Execute:
        """A network, as the seed has it."""
        schedule: Schedule = {
            self.luck.randrange(60): self.luck.choice([*Fault, Late(self.luck.randrange(1, 9))])
            for _ in range(self.luck.randrange(4))
        }
        return Faults(execute, schedule).execute

    def write(self, execute: Execute) -> None:
        streams = self.streams("writer", self.faulty(execute))
        for number in range(8):
            kinds = ["x"] * self.luck.randrange(1, 4)
            with suppress(Unavailable):
                streams.append(
                    self.luck.choice(STREAMS), [Event(type=kind, data=b"%d" % number) for kind in kinds]
                )

    def index(self, execute: Execute) -> None:
        driver, fresh = self.driver("indexer", self.faulty(execute))
        indexer = Indexer(
            driver=driver,
            index_table="index",
            sources=(tips_source("tips"),),
            limits=LIMITS,
            now=lambda: NOON,
            fresh=fresh,
        )
        indexer.register()
        at = 0
        for _ in range(12):
            changes = self.tables.changes("tips")
            batch = [
                Record(table="tips", sequence_number=f"{number:021d}", image=changes[number])
                for number in range(at, min(len(changes), at + 3))
            ]
            if not indexer.index(batch).failed:
                at += len(batch)
            execute(PAUSE)

    def react(self, name: str, rounds: int) -> Callable[[Execute], None]:
        """A process of the group, and those that take its place when it dies."""

        def body(execute: Execute) -> None:
            POOL.set(Inline)
            for life in range(rounds):
                with suppress(Killed, Unavailable):
                    reactor = self.reactor(f"{name} {life}", self.faulty(self.mortal(execute)))
                    reactor.run(
                        0, seconds=self.luck.choice([1.0, 5.0, 100.0]), careful=self.luck.random() < 0.4
                    )
                execute(PAUSE)

        return body

    def mortal(self, execute: Execute) -> Execute:
        """A process that dies before one of its requests, sometimes."""
        left = self.luck.randrange(1, 40) if self.luck.random() < 0.4 else None
        requests = count()

        def perform(op: Op) -> Reply:
            if left is not None and next(requests) >= left:
                self.met["died before a request"] += 1
                raise Killed
            return execute(op)

        return perform

    def operate(self, execute: Execute) -> None:
        """Replays whatever is parked, now and then."""
        for life in range(20):
            with suppress(Killed, Unavailable, InvalidInput):
                parking = Parking(reactor=self.reactor(f"operator {life}", self.faulty(self.mortal(execute))))
                for parked in parking.streams(0):
                    replayed = parking.replay(0, parked.stream, seconds=self.luck.choice([1.0, 100.0]))
                    self.met["unparked" if replayed.unparked else "parked again"] += 1
            execute(PAUSE)

    def settle(self) -> None:
        """Everything is well again: in the end every event of the feed is handled, and nothing is parked."""
        self.group.recover()
        self.index(alone(self.tables.execute))
        for life in range(40):
            reactor = self.reactor(f"settler {life}", self.watched)
            ran = reactor.run(0, seconds=1_000.0)
            for parked in Parking(reactor=reactor).streams(0):
                Parking(reactor=reactor).replay(0, parked.stream, seconds=1_000.0)
            if ran.at_tail and not self.group.state(0).parked:
                break
        self.group.check_rest(0)


def run(seed: int) -> ReactionWorld:
    """Live one seed's history; raises what went wrong."""
    world = ReactionWorld(seed)
    bodies = {
        "writer": world.write,
        "indexer": world.index,
        "reactor 1": world.react("reactor 1", 8),
        "reactor 2": world.react("reactor 2", 5),
        "operator": world.operate,
    }
    processes = {name: Process(name, world.watched, body) for name, body in bodies.items()}
    take_turns(processes, world.luck.choice)
    world.settle()
    return world
