"""Every interleaving of a few decisions whose models are kept as snapshots: the real calls, each state visited once.

A call cannot be copied, but it is a function of the replies it was sent. So an actor is its replies: it is called
again with them, and ends at the first request that none answers. While the budget lasts, a write's answer may be lost.
One who dies goes no further, and every state is one in which anybody may have died.

What is true is what was written. An event of a decision says what its model was, so each is held to the events before
it. Whoever reads a model from a snapshot, in any state of the table, is held to who reads all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from epochal.deciders.model_snapshots import ModelSnapshots
from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import Projection
from epochal.layout.tag_streams import TagStreams
from epochal.model.events import Event, Recorded
from epochal.model.tags import Query, QueryItem
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.failures import Lost
from epochal.plan.ops import Execute, Op, Put, Reply, Transact, Update
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables
from tests.simulation.exploring import explore, put

TABLE = "streams"
_WRITES = (Put, Update, Transact)

Model = tuple[tuple[str, str], ...]
"""Projections by name, each with the tags of which it lists the events."""

BOTH: Model = (("a", "a"), ("b", "b"))
WIDE: Model = (("x", "a b"),)
NARROW: Model = (("x", "a"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Appends one event, with a decision on a model or without one."""

    name: str
    tags: str
    model: Model = ()
    version: str = ""
    clock: int = 0


class Asked(BaseException):
    """A request whose reply is not known. Not an `Exception`, so that nothing handles it."""

    def __init__(self, op: Op) -> None:
        self.op = op


class State(NamedTuple):
    """A state of the world: the table by its number, and each actor's replies by theirs; None at its end."""

    table: int
    actors: tuple[tuple[int, ...] | None, ...]
    unheard: int


def listing(tags: str, version: str) -> Projection[list[str]]:
    """Return a projection of the names of the events that have one of these tags, as this version writes them."""

    def add(names: list[str], event: Recorded) -> list[str]:
        return [*names, event.json()["name"] + version]

    items = tuple(QueryItem(types=frozenset({"T"}), tags=frozenset({tag})) for tag in tags.split())
    return Projection(query=Query(items=items), initial=list, evolve=add)


def projections(model: Model, version: str) -> dict[str, Projection[list[str]]]:
    return {name: listing(tags, version) for name, tags in model}


def decisions(execute: Execute, actor: Actor, place: int, *, kept: bool) -> Decisions:
    """Return the decisions of an actor, whose clock and random numbers are the same in every call."""
    drawn = iter(range(10**6))

    def fresh(size: int) -> bytes:
        return hashlib.sha256(f"{actor.name} {next(drawn)}".encode()).digest()[:size]

    def now() -> int:
        return 10**18 + actor.clock

    driver = Driver(execute=execute, meter=Meter(), sleep=lambda _: None, luck=lambda: 1.0, place=place)
    streams = Streams(driver=driver, table=TABLE, layout=Pages(), now=now, fresh=fresh)
    snapshots = ModelSnapshots(
        streams=streams,
        name="Model",
        version=actor.version,
        dump=lambda states: json.dumps(dict(states)).encode(),
        load=json.loads,
        every=1,
    )
    events = TaggedEvents(driver=driver, site=TagStreams(table=TABLE), named=streams, now=now, fresh=fresh)
    return Decisions(store=events, snapshots=snapshots if kept else None)


def act(execute: Execute, actor: Actor, place: int) -> str:
    """Perform what an actor does, and return the name of its event."""
    own = decisions(execute, actor, place, kept=True)

    def event(states: Mapping[str, Any]) -> list[Event]:
        told = {"name": actor.name, "seen": dict(states)}
        return [Event.json("T", told, tags=tuple(actor.tags.split()))]

    if actor.model:
        own.handle(projections(actor.model, actor.version), event)
    else:
        own.store.append(event({}))
    return actor.name


@dataclass(slots=True)
class Explorer:
    """Explores all that may happen to `actors`, after others have acted alone, one after the other.

    Attributes:
        models: what each event was decided on, in one state or another.
    """

    actors: tuple[Actor, ...]
    before: tuple[Actor, ...] = ()
    unheard: int = 0
    tables: list[MemoryTables] = field(default_factory=list)
    replies: list[Reply | Lost] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    asked: dict[tuple[int, tuple[int, ...]], Op | str] = field(default_factory=dict)
    performed: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    models: dict[str, set[str]] = field(default_factory=dict)

    def explore(self) -> int:
        """Visit every state and return their number; a failure shows the steps that led to it."""
        tables = MemoryTables({TABLE: STREAMS})
        for place, actor in enumerate(self.before, len(self.actors)):
            act(tables.execute, actor, place + 1)
        first = State(self._number(tables, self.tables), ((),) * len(self.actors), self.unheard)
        self._check(tables)
        return explore(first, self._steps)

    def _steps(self, state: State) -> Iterator[tuple[str, State]]:
        for who, past in enumerate(state.actors):
            if past is None:
                continue
            found = self._goes_on(who, past)
            if isinstance(found, str):
                names = [told["name"] for told, _ in self._events(self.tables[state.table])]
                assert names.count(found) == 1, (
                    f"{found} was told of an append that is there {names.count(found)} times"
                )
                yield f"{found}: appended", state._replace(actors=put(state.actors, who, None))
                continue
            after, reply = self._perform(state.table, found)
            what = f"{self.actors[who].name}: {type(found).__name__}"
            told = put(state.actors, who, (*past, reply))
            yield what, state._replace(table=after, actors=told)
            if state.unheard and isinstance(found, _WRITES):
                lost = put(state.actors, who, (*past, self._number(Lost("unheard"), self.replies)))
                left = state.unheard - 1
                yield f"{what}, unheard", State(table=after, actors=lost, unheard=left)

    def _goes_on(self, who: int, past: tuple[int, ...]) -> Op | str:
        """Return the next request of an actor after these replies, or the event that it has appended."""
        if (who, past) not in self.asked:
            replies = iter(past)

            def execute(op: Op) -> Reply:
                number = next(replies, None)
                if number is None:
                    raise Asked(op)
                reply = self.replies[number]
                if isinstance(reply, Lost):
                    raise reply
                return reply

            try:
                self.asked[who, past] = act(execute, self.actors[who], who + 1)
            except Asked as asked:
                self.asked[who, past] = asked.op
        return self.asked[who, past]

    def _perform(self, table: int, op: Op) -> tuple[int, int]:
        key = (table, repr(op))
        if key not in self.performed:
            tables = self.tables[table].copy() if isinstance(op, _WRITES) else self.tables[table]
            reply = tables.execute(op)
            known = len(self.tables)
            after = self._number(tables, self.tables)
            if after == known:
                self._check(tables)
            self.performed[key] = after, self._number(reply, self.replies)
        return self.performed[key]

    def _check(self, tables: MemoryTables) -> None:
        events = self._events(tables)
        names = [told["name"] for told, _ in events]
        assert len(set(names)) == len(names), f"appended twice: {names}"
        known = {actor.name: actor for actor in (*self.before, *self.actors)}
        for place, (told, _) in enumerate(events):
            actor = known[told["name"]]
            self.models.setdefault(actor.name, set()).add(str(told["seen"]))
            for name, tags in actor.model:
                truth = _named(events[:place], tags, actor.version)
                seen = told["seen"][name]
                assert seen == truth, f"{actor.name} was decided on {seen} where there was {truth}"
        for actor in self.actors:
            if actor.model:
                asked = projections(actor.model, actor.version)
                model = decisions(tables.copy().execute, actor, 99, kept=True).model(asked).states
                truths = {name: _named(events, tags, actor.version) for name, tags in actor.model}
                assert model == truths, f"a snapshot tells {model} where there is {truths}"

    def _events(self, tables: MemoryTables) -> list[tuple[Any, tuple[str, ...]]]:
        asked = listing("a b", "").query
        reader = decisions(tables.execute, self.actors[0], 98, kept=False)
        return [(event.json(), event.tags) for event in reader.store.read(asked).events]

    def _number(self, value: Any, values: list[Any]) -> int:
        shown = sorted(map(repr, value.items(TABLE))) if isinstance(value, MemoryTables) else repr(value)
        digest = hashlib.sha256(f"{id(values)} {shown}".encode()).hexdigest()
        if digest not in self.numbers:
            self.numbers[digest] = len(values)
            values.append(value)
        return self.numbers[digest]


def _named(events: Sequence[tuple[Any, tuple[str, ...]]], tags: str, version: str) -> list[str]:
    wanted = set(tags.split())
    return [told["name"] + version for told, own in events if wanted.intersection(own)]
