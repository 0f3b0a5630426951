"""What the test suite of dcb.events asks of an event store, on DynamoDB Local and in memory.

Its three scenarios are played with threads: conditions hold under parallel writes; events that were read keep their
order; unrelated appends do not fail. Queries may ask by type alone or for everything, so the store has type heads; the
same scenarios with tags in every item are played without them.

The suite judges a condition by the position of the last matching event that a writer had seen. With type heads all
events are in one order, and so can we. Without them there is no such order, so the judge there is stricter: whoever saw
an event comes after it, whoever should have but did not comes before it, and these must have no cycle.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from threading import Barrier
from threading import Event as Flag

import pytest

from epochal.model.events import Event, Recorded
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tags import Query, QueryItem
from epochal.store.tagged import TaggedStore
from tests.contract.tagged import Opens, every_event

# Fewer than seven ask for nothing in common.
several = pytest.mark.parametrize("writers", [8, pytest.param(20, marks=pytest.mark.proof)])
ROUNDS = 2
"""Where all events share one head, writers wait for one another: each round takes as long as the one before."""

EVERYTHING = Query(items=(QueryItem(),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variety:
    """What events and queries are drawn from.

    Attributes:
        tagged: every item names tags.
    """

    types: int
    tags: int
    events: tuple[int, int]
    tagged: bool

    def query(self, dice: random.Random) -> Query:
        """As the suite draws them: up to three items of up to four types and three tags; none means everything."""
        items = tuple(self._item(dice) for _ in range(dice.randint(1 if self.tagged else 0, 3)))
        return Query(items=items) if items else EVERYTHING

    def batch(self, dice: random.Random, name: str, saw: Sequence[Recorded], query: Query) -> list[Event]:
        """Events that name their batch; the first also tells what its writer asked for and saw."""
        told = {
            "saw": [event.id for event in saw],
            "query": [[sorted(item.types), sorted(item.tags)] for item in query.items],
        }
        return [
            Event(
                type=f"type{dice.randrange(self.types)}",
                data=json.dumps({"batch": name} | (told if number == 0 else {})).encode(),
                tags=tuple(self._some("tag", self.tags, dice.randint(0, 3), dice)),
            )
            for number in range(dice.randint(*self.events))
        ]

    def _item(self, dice: random.Random) -> QueryItem:
        types = self._some("type", self.types, dice.randint(0, 4), dice)
        tags = self._some("tag", self.tags, dice.randint(1 if self.tagged or not types else 0, 3), dice)
        return QueryItem(types=frozenset(types), tags=frozenset(tags))

    def _some(self, prefix: str, choices: int, count: int, dice: random.Random) -> list[str]:
        return [f"{prefix}{number}" for number in dice.sample(range(choices), count)]


@pytest.fixture(
    params=[True, pytest.param(False, marks=pytest.mark.proof)], ids=["with type heads", "tags only"]
)
def type_heads(request: pytest.FixtureRequest) -> bool:
    found: bool = request.param
    return found


def write(
    store: TaggedStore, variety: Variety, seed: int, times: int, meeting: Barrier | None = None
) -> list[Appended | Conflict]:
    """Read by a query, then append under it, again and again; what is read first is what all at the meeting read."""
    dice = random.Random(seed)
    answers = []
    for time in range(times):
        query = variety.query(dice)
        seen = store.read(query)
        if meeting and time == 0:
            meeting.wait()
        batch = variety.batch(dice, f"{seed}-{time}", seen.events, query)
        answers.append(store.try_append(batch, fail_if=query, after=seen.position))
    return answers


@several
def test_conditions_hold_under_parallel_writes(opened: Opens, type_heads: bool, writers: int) -> None:
    store = opened(type_heads=type_heads)
    variety = Variety(types=10, tags=10, events=(1, 2), tagged=not type_heads)
    meeting = Barrier(writers)

    def writer(seed: int) -> list[Appended | Conflict]:
        return write(store, variety, seed, ROUNDS, meeting)

    with ThreadPoolExecutor(writers) as pool:
        answers = [answer for some in pool.map(writer, range(writers)) for answer in some]

    committed = sum(len(answer.events) for answer in answers if isinstance(answer, Appended))
    events = every_event(store)
    assert len(events) == committed
    assert any(isinstance(answer, Conflict) for answer in answers), "nobody met anybody"
    assert_serializable(events)
    if type_heads:
        assert_met_in_order(events)


@pytest.mark.parametrize("times", [3, pytest.param(5, marks=pytest.mark.proof)])
def test_events_that_were_read_keep_their_order(opened: Opens, type_heads: bool, times: int) -> None:
    store = opened(type_heads=type_heads)
    variety = Variety(types=5, tags=5, events=(2, 5), tagged=not type_heads)
    every = EVERYTHING if type_heads else Query(items=(QueryItem(tags=frozenset({"tag1"})),))
    done = Flag()
    reads: list[list[str]] = []

    def reader() -> None:
        while not done.is_set():
            reads.append([event.id for event in store.read(every).events])

    with ThreadPoolExecutor(6) as pool:
        reading = pool.submit(reader)
        list(pool.map(lambda seed: write(store, variety, seed, times), range(5)))
        done.set()
        reading.result()

    reads.append([event.id for event in store.read(every).events])
    assert len(reads) > 2
    assert len(reads[-1]) > times
    for earlier, later in pairwise(reads):
        assert later[: len(earlier)] == earlier, "what had been read came in another order, or lay behind"


@several
def test_unrelated_appends_in_parallel_never_fail(opened: Opens, type_heads: bool, writers: int) -> None:
    store = opened(type_heads=type_heads)

    def writer(number: int) -> list[Appended | Conflict]:
        return [append_alone(store, f"writer{number}-{time}") for time in range(ROUNDS)]

    with ThreadPoolExecutor(writers) as pool:
        answers = [answer for some in pool.map(writer, range(writers)) for answer in some]

    assert len(answers) == writers * ROUNDS
    assert all(isinstance(answer, Appended) for answer in answers)


def append_alone(store: TaggedStore, tag: str) -> Appended | Conflict:
    """An event under a tag of its own, if it is the first there."""
    alone = Query(items=(QueryItem(types=frozenset({"Happened"}), tags=frozenset({tag})),))
    return store.try_append([Event(type="Happened", data=b"{}", tags=(tag,))], fail_if=alone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A batch: where it begins in the order of all events, what its writer asked for, and what that had shown."""

    name: str
    place: int
    query: Query
    saw: set[str]


def judged(events: Sequence[Recorded]) -> Iterator[Judged]:
    for place, event in enumerate(events):
        told = json.loads(event.data)
        if "query" in told:
            items = (QueryItem(types=frozenset(types), tags=frozenset(tags)) for types, tags in told["query"])
            query = Query(items=tuple(items))
            yield Judged(name=told["batch"], place=place, query=query, saw=set(told["saw"]))


def assert_met_in_order(events: Sequence[Recorded]) -> None:
    """Of the events before its batch, in the order of all events, a writer's query matched what it had seen."""
    for batch in judged(events):
        before = {each.id for each in events[: batch.place] if batch.query.matches(each.type, each.tags)}
        assert before == batch.saw, f"the condition of {batch.name} was not met"


def assert_serializable(events: Sequence[Recorded]) -> None:
    """There is an order of batches in which every writer had seen exactly what matched before it."""
    batch_of = {event.id: json.loads(event.data)["batch"] for event in events}
    after: dict[str, set[str]] = {name: set() for name in batch_of.values()}
    for batch in judged(events):
        for event in events:
            other = batch_of[event.id]
            if other != batch.name and batch.query.matches(event.type, event.tags):
                later, earlier = (batch.name, other) if event.id in batch.saw else (other, batch.name)
                after[later].add(earlier)
    try:
        TopologicalSorter(after).prepare()
    except CycleError as cycle:
        raise AssertionError(f"conditions contradict one another: {cycle.args[1]}") from cycle
