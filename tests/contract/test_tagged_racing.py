"""G3 and G11 for tagged events, with real threads, on DynamoDB Local and in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from epochal.deciders.on_queries import Decided, Decisions
from epochal.deciders.projections import projection
from epochal.model.events import Event
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tags import Query
from epochal.plan.ops import Execute, Op, Put, Reply, Transact, Update
from epochal.store.tagged import TaggedStore
from tests.contract.tagged import BOTH, COURSE, PAIR, SUBSCRIBED, Opens, asks, event, every_event, of_tag

MANY = tuple(pytest.param(racers, marks=pytest.mark.proof) for racers in (16, 32, 64))


def race(racers: int, run: Callable[[int], Appended | Conflict]) -> list[Appended | Conflict]:
    """All start together."""
    barrier = Barrier(racers)

    def start(number: int) -> Appended | Conflict:
        barrier.wait()
        return run(number)

    with ThreadPoolExecutor(racers) as pool:
        return list(pool.map(start, range(racers)))


def winners(answers: list[Appended | Conflict]) -> int:
    return sum(isinstance(answer, Appended) for answer in answers)


@pytest.mark.parametrize("racers", [2, 8, pytest.param(4, marks=pytest.mark.proof), *MANY])
def test_of_racers_on_overlapping_conditions_exactly_one_commits(store: TaggedStore, racers: int) -> None:
    """Each condition overlaps with every other, and each winner's event matches them all."""
    store.append([event("Renamed", "course:1", "student:7")])
    queries = (COURSE, BOTH, PAIR)
    positions = [store.read(query).position for query in queries]
    begun = positions[2]
    after = {0: positions[0], 1: positions[1], 2: begun}

    answers = race(
        racers,
        lambda number: store.try_append([SUBSCRIBED], fail_if=queries[number % 3], after=after[number % 3]),
    )

    assert winners(answers) == 1
    (winner,) = store.read(COURSE).events
    lost = [answer for answer in answers if isinstance(answer, Conflict)]
    assert len(lost) == racers - 1
    assert all([found.id for found in answer.events][-1:] == [winner.id] for answer in lost)


@pytest.mark.parametrize("racers", [2, *MANY])
def test_of_racers_who_read_for_themselves_exactly_one_commits(store: TaggedStore, racers: int) -> None:
    answers = race(racers, lambda number: store.try_append([SUBSCRIBED], fail_if=(COURSE, BOTH)[number % 2]))

    assert winners(answers) == 1
    assert len(store.read(BOTH).events) == 1


@pytest.mark.parametrize("racers", [2, *MANY[:1]])
def test_racers_who_have_all_read_before_any_writes_do_not_lose_updates(opened: Opens, racers: int) -> None:
    """The barrier stands between the reads and each racer's first transaction."""
    barrier = Barrier(racers)

    def meeting(execute: Execute) -> Execute:
        met: set[str] = set()

        def perform(op: Op) -> Reply:
            if isinstance(op, Transact | Put | Update) and not met:
                met.add("here")
                barrier.wait()
            return execute(op)

        return perform

    stores = [opened(wrap=meeting) for _ in range(racers)]
    answers = race(racers, lambda number: stores[number].try_append([SUBSCRIBED], fail_if=BOTH))

    assert winners(answers) == 1
    assert len(opened().read(BOTH).events) == 1


@pytest.mark.parametrize("racers", [4, *MANY[:1]])
def test_racers_with_one_id_write_it_once_and_all_are_told_so(store: TaggedStore, racers: int) -> None:
    own = "00000000-0000-4000-8000-000000000001"

    answers = race(racers, lambda _: store.try_append([event("Counted", "all:1", id_=own)], fail_if=None))

    assert winners(answers) == racers
    assert {found.place for answer in answers for found in answer.events} == {
        store.read(Query(items=(asks("", "all:1"),))).events[0].place
    }
    assert len(every_event(store)) == 1


@pytest.mark.parametrize(
    ("appends", "writers"), [(8, 4), *(pytest.param(each, 8, marks=pytest.mark.proof) for each in (16, 40))]
)
def test_appends_without_condition_lose_nothing_and_keep_each_tag_in_order(
    store: TaggedStore, appends: int, writers: int
) -> None:
    def append(number: int) -> None:
        answer = store.try_append([event("Counted", "all:1", f"third:{number % 3}", data=str(number))])
        assert isinstance(answer, Appended)

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(append, range(appends)))
    found = of_tag(store, "all:1")
    assert sorted(int(each.data) for each in found) == list(range(appends))
    ids = [each.place for each in found]
    assert ids == sorted(set(ids))
    for third in range(3):
        numbers = [int(each.data) for each in of_tag(store, f"third:{third}")]
        assert numbers == [int(each.data) for each in found if int(each.data) % 3 == third]
    assert [each.id for each in every_event(store)] == [each.id for each in found]


def test_of_decisions_under_one_key_one_is_made_and_all_are_answered_the_same(store: TaggedStore) -> None:
    class Full(Exception):
        pass

    taken = projection(tags=["course:1"], on={SUBSCRIBED.type: lambda total, _: total + 1}, initial=0)

    def decide(model: Mapping[str, int]) -> list[Event]:
        if model["taken"]:
            raise Full
        return [SUBSCRIBED]

    def ask(_: int) -> Decided:
        return Decisions(store=store).handle({"taken": taken}, decide, idempotency_key="request-1")

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(ask, range(8)))

    (stored,) = store.read(COURSE).events
    assert {each.events[0].id for each in told} == {stored.id}
    assert [each.replayed for each in told].count(False) == 1
    assert all(each.model.states == {"taken": 0} for each in told)
