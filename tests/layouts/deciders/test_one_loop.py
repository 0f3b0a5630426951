"""A decision on a stream, on several, on a query or on an aggregate is made in one loop, and goes by the same rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import pytest

from epochal.codec import json
from epochal.contrib.event_store_adapter import AggregateDeciders, aggregate_id
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, Deciders, handle_all
from epochal.deciders.projections import projection
from epochal.deployment import Deployment
from epochal.errors import Contended
from epochal.model.events import Event
from epochal.plan.ops import QUICKEST, Op, Put, Reply, Transact, Update
from epochal.store.driver import Driver
from epochal.testing.stores import memory_deployment

Answers: TypeAlias = Callable[[int], tuple[str, Sequence[int]]]
"""Decides on a sum, and answers, too."""

CODEC = EventCodec[int](
    encode=lambda number: Event(type="Added", data=b"%d" % number), decode=lambda stored: int(stored.data)
)
RULES = Decider[int, int, int](
    initial=int, evolve=lambda total, added: total + added, decide=lambda added, _: [added]
)
SUM = projection(
    tags=["sum:1"], initial=0, on={"Added": lambda total, event: total + int(json.loads(event.data))}
)


def tagged(numbers: Sequence[int]) -> list[Event]:
    return [Event(type="Added", data=str(number).encode(), tags=["sum:1"]) for number in numbers]


@dataclass
class World:
    """Stores in memory as one process opens them; what pauses it makes, and who is faster than it."""

    on: Deployment = field(default_factory=memory_deployment)
    waited: list[float] = field(default_factory=list)
    faster: Callable[[], object] = lambda: None

    def driver(self, given: Driver) -> Driver:
        def execute(op: Op) -> Reply:
            if isinstance(op, Put | Update | Transact):
                faster, self.faster = self.faster, lambda: None
                faster()
            return given.execute(op)

        return replace(given, execute=execute, luck=lambda: 1.0, clock=lambda: 0.0, sleep=self.waited.append)


class OneStream:
    def __init__(self, world: World, **options: Any) -> None:
        streams = world.on.streams
        streams = replace(streams, driver=world.driver(streams.driver))
        self.deciders = Deciders(streams=streams, decider=RULES, codec=CODEC, **options)

    def add(self, number: int) -> None:
        self.deciders.handle("Sum-1", number)

    def decide(self, decide: Answers, key: str | None = None) -> tuple[str, Any]:
        return self.deciders.handle("Sum-1", decide=decide, idempotency_key=key, with_result=True)

    def decide_without(self, decide: Answers) -> Any:
        return self.deciders.handle("Sum-1", decide=lambda total: decide(total)[1])


class SeveralStreams(OneStream):
    def __init__(self, world: World, *, attempts: int = 10) -> None:
        super().__init__(world)
        self.attempts = attempts
        self.parties = self.deciders.on("Sum-1"), self.deciders.on("Sum-2")

    def decide(self, decide: Answers, key: str | None = None) -> tuple[str, Any]:
        def both(one: int, _: int) -> tuple[str, tuple[Sequence[int], Sequence[int]]]:
            answer, events = decide(one)
            return answer, (events, events)

        answer, outcome = handle_all(
            self.parties, both, attempts=self.attempts, idempotency_key=key, with_result=True
        )
        return answer, replace(outcome.parties[0], capacity=outcome.capacity)

    def decide_without(self, decide: Answers) -> Any:
        outcome = handle_all(self.parties, lambda one, _: (decide(one)[1], []))
        return replace(outcome.parties[0], capacity=outcome.capacity)


class Aggregates:
    def __init__(self, world: World, **options: Any) -> None:
        store = world.on.aggregates
        store = replace(store, driver=world.driver(store.driver))
        state = StateCodec[int](encode=json.dumps, decode=json.loads)
        self.deciders = AggregateDeciders(store=store, decider=RULES, codec=CODEC, state=state, **options)
        self.id = aggregate_id("sum", "1")

    def add(self, number: int) -> None:
        self.deciders.handle(self.id, number)

    def decide(self, decide: Answers, key: str | None = None) -> tuple[str, Any]:
        return self.deciders.handle(self.id, decide=decide, idempotency_key=key, with_result=True)

    def decide_without(self, decide: Answers) -> Any:
        return self.deciders.handle(self.id, decide=lambda total: decide(total)[1])


class OnQuery:
    def __init__(self, world: World, **options: Any) -> None:
        store = world.on.tagged
        self.decisions = Decisions(store=replace(store, driver=world.driver(store.driver)), **options)

    def add(self, number: int) -> None:
        self.decisions.store.append(tagged([number]))

    def decide(self, decide: Answers, key: str | None = None) -> tuple[str, Any]:
        def on_states(states: Any) -> tuple[str, list[Event]]:
            answer, numbers = decide(states["sum"])
            return answer, tagged(numbers)

        return self.decisions.handle({"sum": SUM}, on_states, idempotency_key=key, with_result=True)

    def decide_without(self, decide: Answers) -> Any:
        return self.decisions.handle({"sum": SUM}, lambda states: tagged(decide(states["sum"])[1]))


Kind: TypeAlias = type[OneStream] | type[Aggregates] | type[OnQuery]

every_kind = pytest.mark.parametrize("kind", [OneStream, SeveralStreams, Aggregates, OnQuery])


def shown(number: int) -> Answers:
    return lambda total: (f"saw {total}", [number] if number else [])


@every_kind
def test_an_answer_comes_with_the_outcome_and_what_it_took(kind: Kind) -> None:
    it = kind(World())
    it.add(7)
    answer, outcome = it.decide(shown(1))
    assert (answer, len(outcome.events), outcome.replayed) == ("saw 7", 1, False)
    assert (outcome.capacity.requests >= 2, outcome.capacity.write >= 1) == (True, True)
    assert len(it.decide_without(shown(2)).events) == 1
    answer, outcome = it.decide(shown(0))
    assert (answer, outcome.events, outcome.capacity.write) == ("saw 10", (), 0)


@every_kind
def test_a_repeat_is_answered_like_the_first_its_answer_too(kind: Kind) -> None:
    it = kind(World())
    it.add(7)
    first = it.decide(shown(1), key="a")
    it.add(100)
    again = it.decide(shown(1), key="a")
    assert (again[0], len(again[1].events)) == (first[0], 1) == ("saw 7", 1)
    assert (first[1].replayed, again[1].replayed) == (False, True)
    assert it.decide(shown(0))[0] == "saw 108"


@every_kind
def test_who_is_overtaken_decides_on_what_is_there_and_pauses_from_the_second_time_on(kind: Kind) -> None:
    world = World()
    it, other = kind(world), kind(World(on=world.on))
    it.add(7)
    overtaking = iter([partial(other.add, amount) for amount in (1, 2, 3)])
    saw: list[int] = []

    def decide(total: int) -> tuple[str, list[int]]:
        saw.append(total)
        world.faster = next(overtaking, lambda: None)
        return "done", [50]

    assert it.decide(decide)[0] == "done"
    assert saw == [7, 8, 10, 13]
    assert world.waited == [32 * QUICKEST, 48 * QUICKEST]
    assert it.decide(shown(0))[0] == "saw 63"


@every_kind
def test_who_is_overtaken_at_every_attempt_gives_up_and_has_stored_nothing(kind: Kind) -> None:
    world = World()
    it, other = kind(world, attempts=2), kind(World(on=world.on))

    def decide(_: int) -> tuple[str, list[int]]:
        world.faster = lambda: other.add(1)
        return "done", [50]

    with pytest.raises(Contended):
        it.decide(decide)
    assert it.decide(shown(0))[0] == "saw 2"


@every_kind
def test_an_error_of_the_domain_passes_through_and_nothing_is_stored(kind: Kind) -> None:
    it = kind(World())

    def refuse(_: int) -> tuple[str, list[int]]:
        raise LookupError

    with pytest.raises(LookupError):
        it.decide(refuse)
    assert it.decide(shown(0))[0] == "saw 0"


@every_kind
@pytest.mark.parametrize("attempts", [0, -1])
def test_no_attempt_at_all_is_refused(kind: Kind, attempts: int) -> None:
    with pytest.raises(ValueError, match="attempts: must be at least 1"):
        kind(World(), attempts=attempts).decide(shown(1))
