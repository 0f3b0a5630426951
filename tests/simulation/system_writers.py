"""Writers of a whole system: the simulations of the three layouts, played by the same processes over the same tables;
and all that they have written, to the byte.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.index.checkpoints import tip_key
from epochal.model.events import Event
from epochal.model.tags import is_reserved
from epochal.plan.ops import Execute, Get
from tests.simulation.aggregate_simulation import ALICE, Aggregates
from tests.simulation.dcb_simulation import TAGS, Tagged
from tests.simulation.dcb_world import Tables
from tests.simulation.dcb_world import World as TagWorld
from tests.simulation.histories import Simulation
from tests.simulation.scheduler import PAUSE, Body, mortal
from tests.simulation.stream_simulation import OneStream

FLIGHTS = ("Flight-1", "Flight-2")
STREAMS = (*FLIGHTS, str(ALICE), *TAGS)
"""Streams of the feed, of every layout."""


class Written(NamedTuple):
    """An event as its writer wrote it."""

    type: str
    data: bytes


def event(luck: random.Random, key: str | None) -> Event:
    """Return the next event of a stream; with a key always the same one."""
    own = luck if key is None else random.Random(key)
    data = own.choice((b"", own.randbytes(5), own.randbytes(2) * 40, own.randbytes(300)))
    return Event(type=own.choice(("Departed", "Landed")), data=data, timestamp="2026-01-01T00:00:00Z")


def aggregate_event(luck: random.Random) -> AggregateEvent:
    """Return the next event of an aggregate."""
    return AggregateEvent(type=luck.choice(("Renamed", "Moved")), data=json_of(luck).encode())


def json_of(luck: random.Random) -> str:
    """Return a small JSON text."""
    return f'"{luck.randbytes(luck.choice((1, 8, 60))).hex()}"'


@dataclass(slots=True)
class Writers:
    """Simulations of each layout over one set of tables."""

    seed: int
    tables: Tables
    flights: list[OneStream] = field(init=False)
    aggregate: Aggregates = field(init=False)
    tagged: Tagged = field(init=False)

    def __post_init__(self) -> None:
        self.flights = [OneStream(self.seed, self.tables, name, event=event) for name in FLIGHTS]
        self.aggregate = Aggregates(self.seed, tables=self.tables, event=aggregate_event)
        self.tagged = Tagged(self.seed, world=TagWorld(tables=self.tables), data=json_of)

    @property
    def simulations(self) -> list[Simulation]:
        """The simulation of each layout, which checks that layout's promises."""
        return [*self.flights, self.aggregate, self.tagged]

    def execute(self, luck: random.Random, rate: float) -> Execute:
        """Return an executor on the tables that injects a number of faults."""
        return self.tagged.execute(luck, rate)

    def writer(self, luck: random.Random, name: str, requests: int | None) -> Body:
        """Return the body of a process that makes a few calls in random layouts."""

        def body(execute: Execute) -> None:
            acting = mortal(execute, requests)
            desks: list[tuple[Simulation, Any]] = [
                (each, each.store(luck, f"{name} {at}", acting)) for at, each in enumerate(self.simulations)
            ]
            for _ in range(luck.randint(2, 6)):
                simulation, store = luck.choice(desks)
                simulation.act(luck, store)

        return body

    def pruner(self, luck: random.Random, name: str, requests: int | None) -> Body:
        """Return the body of a process that prunes a stream from time to time."""

        def body(execute: Execute) -> None:
            for at in range(luck.randint(0, 2)):
                for _ in range(luck.randrange(20)):
                    execute(PAUSE)
                world = luck.choice(self.flights).world
                store = world.store(f"{name} {at}", mortal(execute, requests))
                store.prune(world.stream, luck.randint(1, 4))

        return body

    def low_water(self, stream: str) -> int:
        """Return the index below which all events of a stream are pruned."""
        if stream not in FLIGHTS:
            return 0
        tip = self.tables.execute(Get(table="tips", key=tip_key(stream))).item  # type: ignore[union-attr]
        return 0 if tip is None else int(tip.get("l", {"N": "0"})["N"])

    # ---------------------------------------------------------------------------------------- what they have written

    def written(self) -> dict[str, list[Written]]:
        """Every event of every stream of the feed, as whoever asked for it had it."""
        found = {each.world.stream: _in_order(self._of_flight(each)) for each in self.flights}
        found[str(ALICE)] = _in_order(self._of_aggregate())
        events = {event.id: event for attempt in self.tagged.history.attempts for event in attempt.events}
        for tag, ids in self.tagged.world.places().items():
            if not tag or not is_reserved(tag):
                found[tag] = [Written(events[id_].type, events[id_].content) for id_ in ids]
        return {stream: events for stream, events in found.items() if events}

    def _of_flight(self, flight: OneStream) -> Iterator[tuple[int, Written]]:
        first = {identity: index for index, identity in flight.world.history().items() if identity}
        for attempt in flight.attempts:
            for identity in attempt.ids & first.keys():
                for at, each in enumerate(attempt.events, first[identity]):
                    yield at, Written(each.type, each.data)  # type: ignore[arg-type]  # no claims here

    def _of_aggregate(self) -> Iterator[tuple[int, Written]]:
        places, seen = self.aggregate.places(), set()
        for attempt in self.aggregate.attempts:
            for number in places.get(attempt.identity, []):
                for at, each in enumerate(attempt.events, number - 1):
                    seen.add(at)
                    yield at, Written(each.type, each.data)
        there = sum(item["aid"]["S"] == str(ALICE) for item in self.tables.items("journal"))
        elsewhere = set(range(there)) - seen
        assert len(elsewhere) == self.aggregate.elsewhere, "events that nobody wrote"
        yield from ((at, Written("Elsewhere", b'"Elsewhere"')) for at in elsewhere)


def _in_order(events: Iterator[tuple[int, Written]]) -> list[Written]:
    """Events from index 0 on: each is there, and is what everyone who asked for it had."""
    found: dict[int, Written] = {}
    for index, each in events:
        assert found.setdefault(index, each) == each, f"two different events asked for at {index}"
    assert sorted(found) == list(range(len(found))), "events that nobody wrote"
    return [each for _, each in sorted(found.items())]
