"""Orders, customers and a clock that appends what is due, two runners of a process and an operator, over one table, one
request at a time.

A seed says who comes next, which requests are throttled, lost or left unanswered, which runners die and where, what the
outside fails at, and when an operator replays what is parked or sets a group back to the beginning. After each write to
a stream, outputs that have had an effect are the first ones of their instance. In the end each output has had one
effect, and each event was taken once, unless its instance was done.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count

from epochal.codec import json
from epochal.contrib.processes import Process as Rules
from epochal.contrib.processes.process import Instance
from epochal.contrib.timers.stores import timers_of
from epochal.deployment import Deployment
from epochal.errors import ConflictError, GroupMissing, InvalidInput, Unavailable
from epochal.feed.reader import FeedReader
from epochal.feed.stream_records import Record
from epochal.layout.registry import base_of
from epochal.model.events import Event, Recorded
from epochal.plan.ops import Execute, Op, Reply
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from epochal.reactions.steering import Groups
from epochal.store.driver import POOL
from epochal.store.streams import Streams
from epochal.testing.memory import Fault, Faults, Late, MemoryTables, Schedule
from epochal.testing.stores import memory_deployment, memory_tables
from tests.contrib.processes.world import CODEC, Outside, Placed, Ship, Shipped, checkout
from tests.simulation.scheduler import PAUSE, Killed, Process
from tests.simulation.scheduler import run as take_turns
from tests.simulation.world import NOON, bytes_of, driver_on
from tests.support.inline import Inline

KEYS = ("1", "2")
PAGES = base_of("pages")
OUTPUTS = ("$send", "$append", "$publish", "$call")


class Wrong(BaseException):
    """A promise is broken. Not an `Exception`, or it would be a handler's failure."""


class Hostile(Outside):
    """The outside, which fails now and then, and kills who calls it."""

    def __init__(self, world: ProcessWorld) -> None:
        super().__init__()
        self.world = world

    def carrier(self, message: Ship, key: str) -> Shipped:
        self._may_fail()
        answer = super().carrier(message, key)
        self.world.check()
        self._may_fail()
        return replace(answer, parcel=f"{answer.parcel}, call {len(self.calls)}")

    def news(self, messages: object) -> None:
        self._may_fail()
        super().news(messages)  # type: ignore[arg-type]
        self.world.check()
        self._may_fail()

    def _may_fail(self) -> None:
        if self.world.well:
            return
        if self.world.luck.random() < 0.5:
            self.world.met["the outside failed"] += 1
            raise OSError("nobody answers")
        if self.world.luck.random() < 0.3:
            self.world.met["died outside"] += 1
            raise Killed


@dataclass
class ProcessWorld:
    """One seed's history."""

    seed: int
    tables: MemoryTables = field(default_factory=memory_tables)
    well: bool = False
    met: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.luck = random.Random(self.seed)
        self.outside = Hostile(self)
        self.place: Deployment = memory_deployment(self.tables)
        self.indexer = replace(self.place.indexer, now=lambda: NOON, fresh=bytes_of("indexer"))
        self.indexer.register()
        self.indexed = self.seen = 0
        self.orders = {key: self.luck.choice((10, 10, 1_000)) for key in KEYS}

    @property
    def rules(self) -> Rules:
        return checkout(self.outside, attempts=1)

    def streams(self, name: str, execute: Execute) -> Streams:
        driver = driver_on(execute)
        return replace(
            self.place.streams, driver=driver, now=lambda: NOON, fresh=bytes_of(f"{self.seed} {name}")
        )

    def runner(self, name: str, execute: Execute) -> list[Reactor]:
        """A runner of the process: its inbox and its outbox."""
        streams = self.streams(name, execute)
        reader: FeedReader = self.place.feed.on(streams.driver)
        fresh = bytes_of(f"{self.seed} groups {name}")
        return [
            Reactor(
                member=Member(
                    reaction=replace(each, parallel=1), reader=reader, now=lambda: NOON, fresh=fresh
                ),
                executor=Inline,
            )
            for each in self.rules.reactions(streams)
        ]

    def watched(self, op: Op) -> Reply:
        """The tables, judged after each write to a stream."""
        reply = self.tables.execute(op)
        if len(self.tables.changes("streams")) > self.seen:
            self.seen = len(self.tables.changes("streams"))
            self.check()
        return reply

    def faulty(self, execute: Execute) -> Execute:
        """A network, as the seed has it."""
        schedule: Schedule = {
            self.luck.randrange(60): self.luck.choice([*Fault, Late(self.luck.randrange(1, 9))])
            for _ in range(self.luck.randrange(4))
        }
        return Faults(execute, schedule).execute

    def mortal(self, execute: Execute) -> Execute:
        """A runner that dies before one of its requests, or right after it, sometimes."""
        left = self.luck.randrange(1, 50) if self.luck.random() < 0.5 else None
        requests = count()

        def perform(op: Op) -> Reply:
            if left is not None and next(requests) >= left:
                self.met["died at a request"] += 1
                if self.luck.random() < 0.5:
                    execute(op)
                raise Killed
            return execute(op)

        return perform

    def order(self, execute: Execute) -> None:
        """Customers, and somebody who says the same again."""
        streams = self.streams("customers", self.faulty(execute))
        for key, total in self.orders.items():
            placed = [CODEC.encode(Placed(total))]
            for _ in range(self.luck.randrange(1, 3)):
                with suppress(Unavailable):
                    streams.append(f"Order-{key}", placed, idempotency_key=key)

    def fire(self, execute: Execute) -> None:
        """The clock: what is pending is due."""
        streams = self.streams("waker", execute)
        for _ in range(12):
            key = self.luck.choice(KEYS)
            if self.luck.random() < 0.6:
                self._fire(streams, f"checkout-{key}")
            execute(PAUSE)

    def _fire(self, streams: Streams, stream: str) -> None:
        state = streams.load(stream)
        for timer in timers_of(streams).pending(stream) if state else ():
            assert state is not None
            with suppress(ConflictError):
                streams.append(stream, timer.firing(), expected=state.token)
                self.met["fired"] += 1

    def index(self, execute: Execute) -> None:
        for _ in range(60):
            self._index(3)
            execute(PAUSE)

    def _index(self, most: int) -> None:
        changes = self.tables.changes("streams")
        end = min(len(changes), self.indexed + most)
        report = self.indexer.index(
            Record(table="streams", sequence_number=f"{number:021d}", image=changes[number])
            for number in range(self.indexed, end)
        )
        assert not report.failed
        self.indexed = end

    def react(self, name: str, rounds: int) -> Callable[[Execute], None]:
        """A runner, and those that take its place when it dies."""

        def body(execute: Execute) -> None:
            POOL.set(Inline)
            for life in range(rounds):
                with suppress(Killed, Unavailable):
                    reactors = self.runner(f"{name} {life}", self.faulty(self.mortal(execute)))
                    for reactor in self.luck.sample(reactors, 2):
                        reactor.run(PAGES, seconds=100.0, careful=self.luck.random() < 0.3)
                execute(PAUSE)

        return body

    def operate(self, execute: Execute) -> None:
        """Replays what is parked, and sets groups back to the beginning."""
        for life in range(16):
            with suppress(Killed, Unavailable, InvalidInput, GroupMissing):
                for reactor in self.runner(f"operator {life}", self.mortal(execute)):
                    parking = Parking(reactor=reactor)
                    for parked in parking.streams(PAGES):
                        parking.replay(PAGES, parked.stream, seconds=100.0)
                        self.met["replayed"] += 1
                    if self.luck.random() < 0.1:
                        groups = Groups(reader=reactor.member.reader)
                        groups.reset(reactor.member.reaction.name, "beginning")
                        self.met["set back"] += 1
            execute(PAUSE)

    def settle(self) -> None:
        """Everything is well again: in the end all that follows has followed, and what was to fire has fired."""
        self.well = True
        self._come_to_rest("settler")
        for key in KEYS:
            self.check_inputs(key, self.read(f"checkout-{key}"))
            self._fire(self.streams(f"waker of {key}", self.watched), f"checkout-{key}")
        self._come_to_rest("last")
        for key in KEYS:
            self.check_whole(key)

    def _come_to_rest(self, name: str) -> None:
        for life in range(60):
            self._index(1_000)
            ran = []
            for reactor in self.runner(f"{name} {life}", self.watched):
                ran.append(reactor.run(PAGES, seconds=1_000.0))
                for parked in Parking(reactor=reactor).streams(PAGES):
                    Parking(reactor=reactor).replay(PAGES, parked.stream, seconds=1_000.0)
            if not any(each.moved for each in ran) and self.indexed == len(self.tables.changes("streams")):
                return
        raise Wrong("it does not come to rest")

    # What is judged.

    def read(self, stream: str) -> list[Recorded]:
        return list(self.place.streams.read(stream))

    def effects(self, key: str) -> list[tuple[Recorded, int]]:
        """The outputs of an instance, and how many effects others can tell that each has had."""
        own = self.read(f"checkout-{key}")
        caused = Counter(
            each.causation_id for name in ("Order", "Payment") for each in self.read(f"{name}-{key}")
        )
        refused = Counter(each.causation_id for each in own if each.type == "$refused")
        called = Counter({key for _, key in self.outside.calls})
        found = []
        for each in own:
            if each.type in OUTPUTS:
                name = f"checkout-{key}@{each.index}"
                found.append((each, caused[name] + refused[name] + called[name]))
        return found

    def check(self) -> None:
        """Of each instance, the outputs that have had an effect are the first ones, and none has had two."""
        for key in KEYS:
            effects = [effects for _, effects in self.effects(key)]
            if max(effects, default=0) > 1:
                raise Wrong(f"an output of {key} has had {max(effects)} effects")
            if effects != sorted(effects, reverse=True):
                raise Wrong(f"outputs of {key} are out of order: {effects}")

    def check_whole(self, key: str) -> None:
        """Each output has had its effect, each input was taken once, and the state is what its inputs make."""
        own = self.read(f"checkout-{key}")
        if idle := [f"{each.type}@{each.index}" for each, effects in self.effects(key) if effects == 0]:
            raise Wrong(f"outputs of {key} were not performed: {idle}")
        answers = Counter(each.causation_id for each in own if each.type == "Shipped")
        if answers.total() > len(answers):
            raise Wrong(f"an answer to {key} has come twice")
        done = [each.index for each in own if each.type == "$done"]
        if not done:
            raise Wrong(f"{key} does not end")
        after = {each.type for each in own if each.index > done[0]}
        if after & {"$done", "$input", "$timer-fired"}:
            raise Wrong(f"{key} was done, and has {after} since")
        self.check_inputs(key, own)
        self.check_state(key, own)

    def check_inputs(self, key: str, own: list[Recorded]) -> None:
        """No input was taken twice, nor left out, unless it came after the last one of an instance that is done."""
        taken = [str(json.loads(each.content)["of"]) for each in own if each.type == "$input"]
        if len(taken) > len({*taken}):
            raise Wrong(f"an input of {key} was taken again: {taken}")
        reached = {name: int(index) for name, _, index in (each.rpartition("@") for each in taken)}
        done = any(each.type == "$done" for each in own)
        for stream in ("Order", "Payment", "checkout"):
            name = f"pages/{stream}-{key}"
            inputs = {
                f"{name}@{each.index}"
                for each in self.read(f"{stream}-{key}")
                if (not done or each.index <= reached.get(name, -1))
                and (each.type == "$refused" or not each.type.startswith("$"))
            }
            if missed := inputs - {*taken}:
                raise Wrong(f"inputs of {key} were not taken: {missed}")

    def check_state(self, key: str, own: list[Recorded]) -> None:
        """What is loaded is what is folded from all events."""
        rules, folded = self.rules, Instance()
        for each in own:
            if each.type.startswith("$"):
                folded = rules.fold(folded, Event(type=each.type, data=each.data))
        loaded = rules.instances(self.place.streams).query(f"checkout-{key}", lambda found: found)
        if loaded != folded:
            raise Wrong(f"{key} is {loaded}, and its inputs make {folded}")


def run(seed: int) -> ProcessWorld:
    """Live one seed's history; raises what went wrong."""
    world = ProcessWorld(seed)
    bodies = {
        "customers": world.order,
        "waker": world.fire,
        "indexer": world.index,
        "runner 1": world.react("runner 1", 20),
        "runner 2": world.react("runner 2", 16),
        "operator": world.operate,
    }
    try:
        processes = {name: Process(name, world.watched, body) for name, body in bodies.items()}
        take_turns(processes, world.luck.choice)
        world.settle()
    except Wrong as wrong:
        raise AssertionError(f"seed {seed}: {wrong}") from wrong
    return world
