"""What must hold of a consumer group, whatever happens (GUARANTEES G9): looked at before each delivery, and after each
write of its state.

at every delivery    it takes its stream no further than one event at a time
at every write       nothing lies behind a checkpoint that is neither handled nor parked; no checkpoint goes back
at rest              everything is handled, and nothing is parked
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.group_state import GroupState
from epochal.index.groups import group_stream, load
from epochal.plan.ops import Execute, Op, Put, Reply, Update
from epochal.reactions.definition import Delivery
from epochal.testing.memory import MemoryTables
from tests.simulation.index_checks import Reading, perform
from tests.simulation.scheduler import Killed

Place = tuple[int, str, int]
"""Partition, stream, index."""


EARLY = (0, 0, 1, 2, 3)
"""Where in a stream trouble awaits: most streams are short."""


class Violation(AssertionError):
    """A promise was broken."""


@dataclass(slots=True)
class Group:
    """A group, what its handler is to fail at, and what it has handled.

    Attributes:
        poison: events that handling fails over, and how often it does.
        deadly: an event that processes often die over.
        excused: whether an event need not have been handled before its successors.
        handled: in the order of handling.
        reached: the checkpoint of each partition.
        parked: how many streams each partition has parked.
        wrong: what a handler has seen that must never be. Whatever it raises is only a failure to the reactor.
        met: how often what the seeds are to bring about has come about.
    """

    name: str
    tables: MemoryTables
    luck: random.Random
    poison: dict[tuple[str, int], int] = field(default_factory=dict)
    deadly: tuple[str, int] | None = None
    excused: Callable[[str, int], bool] = lambda _stream, _index: False
    handled: list[Place] = field(default_factory=list)
    done: set[Place] = field(default_factory=set)
    reached: dict[int, Checkpoint] = field(default_factory=dict)
    parked: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    _feeds: dict[int, Reading] = field(default_factory=dict)

    @classmethod
    def drawn(cls, name: str, tables: MemoryTables, luck: random.Random, streams: Sequence[str]) -> Group:
        """Return a group whose handler will fail at random events of these streams."""
        poison = {
            (luck.choice(streams), luck.choice(EARLY)): luck.choice([1, 2, 3, 4, 8])
            for _ in range(luck.randrange(4))
        }
        deadly = (luck.choice(streams), luck.choice(EARLY)) if luck.random() < 0.3 else None
        return cls(name=name, tables=tables, luck=luck, poison=poison, deadly=deadly)

    def recover(self) -> None:
        """Let the handler succeed from now on."""
        self.poison.clear()
        self.deadly = None

    def handler(self, sleep: Callable[[float], object]) -> Callable[[Delivery], None]:
        """Return the group's handler, which is slow at times."""

        def handle(delivery: Delivery) -> None:
            sleep(self.luck.choice([0.0, 0.0, 0.0, 4.0]))
            places = [(delivery.partition, delivery.stream, event.index) for event in delivery.events]
            self._check_delivery(places)
            for _, stream, index in places:
                self._fail(stream, index)
            self.handled += places
            self.done.update(places)

        return handle

    def _check_delivery(self, places: list[Place]) -> None:
        partition, stream, first = places[0]
        followed = [index for _, _, index in places] == list(range(first, first + len(places)))
        missing = [
            at
            for at in range(first)
            if (partition, stream, at) not in self.done and not self.excused(stream, at)
        ]
        if missing or not followed:
            self.wrong.append(f"{self.name}: {places} was delivered before {missing} of {stream}")
            raise Violation(self.wrong[-1])

    def _fail(self, stream: str, index: int) -> None:
        if (stream, index) == self.deadly and self.luck.random() < 0.7:
            self.met["died in a handler"] += 1
            raise Killed
        if self.poison.get((stream, index), 0) > 0:
            self.poison[stream, index] -= 1
            self.met["failed in a handler"] += 1
            raise ValueError("poison")

    def feed(self, partition: int) -> Reading:
        """Return a reader that has read a partition of the feed so far."""
        reading = self._feeds.setdefault(partition, Reading(partition=partition))
        reading.to_the_tail(self.tables)
        return reading

    def state(self, partition: int) -> GroupState:
        """Return the stored state of the group."""
        held = perform(self.tables, load("index", group_stream(partition, self.name)))
        return held.state or GroupState()

    def watch(self, partition: int, execute: Execute, op: Op) -> Reply:
        """Perform a request, and check it if it changes the group's state in a partition."""
        reply = execute(op)
        key = op.item if isinstance(op, Put) else op.key if isinstance(op, Update) else {}
        if key.get("p", {}).get("S") == group_stream(partition, self.name):
            self.met["saved"] += 1
            self.judge(partition)
        return reply

    def judge(self, partition: int) -> None:
        """Check that everything before the checkpoint is handled or parked, and that it never moves back."""
        state, reached = self.state(partition), self.reached.get(partition, BEGINNING)
        if state.checkpoint < reached:
            raise Violation(f"{self.name}: the checkpoint went back from {reached!r} to {state.checkpoint!r}")
        self.reached[partition], self.parked[partition] = state.checkpoint, len(state.parked)
        for stream, index, after in places_of(self.feed(partition)):
            waits = stream in state.parked and state.parked[stream] <= index
            if after <= state.checkpoint and (partition, stream, index) not in self.done and not waits:
                raise Violation(f"{self.name}: checkpoint {state.checkpoint!r} passed {stream}@{index}")

    def check_rest(self, partition: int) -> None:
        """Check that everything is handled once nothing happens any more."""
        if self.wrong:
            raise Violation(self.wrong[0])
        there = {(partition, stream, index) for stream, index, _ in places_of(self.feed(partition))}
        if missing := there - self.done:
            raise Violation(f"{self.name}: never handled: {sorted(missing)}")


def places_of(reading: Reading) -> Iterator[tuple[str, int, Checkpoint]]:
    """Yield every event of the feed: stream, index, and the checkpoint after its entry."""
    for entry, after in reading.seen:
        for span in entry.spans:
            for index in range(span.index, span.next):
                yield span.stream, index, after
