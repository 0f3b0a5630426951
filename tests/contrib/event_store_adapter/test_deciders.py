"""Deciders on aggregates: what is stored, what it costs, and that no update is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.contrib.event_store_adapter.model import AggregateEvent, Lock
from epochal.contrib.event_store_adapter.snapshot_policies import ONE_BATCH, Policy, Since, by_size, every
from epochal.contrib.event_store_adapter.state_codecs import json_state
from epochal.deciders.codecs import EventCodec, json_codec
from epochal.deciders.on_streams import Decider
from epochal.errors import Contended, CorruptData, InvalidInput, UnknownType
from epochal.model.events import Event
from epochal.plan.ops import QUICKEST, Op, Transact
from tests.contrib.event_store_adapter.world import ALICE, World, numbers


@dataclass(frozen=True, slots=True)
class Added:
    number: int


@dataclass(frozen=True, slots=True)
class Sum:
    total: int = 0
    count: int = 0


class Overdrawn(Exception):
    """The domain's own error."""


def evolve(state: Sum, event: Added) -> Sum:
    return Sum(state.total + event.number, state.count + 1)


def add(number: int, times: int = 1) -> Callable[[Sum], Sequence[Added]]:
    def decide(state: Sum) -> Sequence[Added]:
        if state.total + number < 0:
            raise Overdrawn(state.total)
        return [Added(number)] * times if number else []

    return decide


Sums = AggregateDeciders[Callable[[Sum], Sequence[Added]], Sum, Added]


@pytest.fixture
def world() -> World:
    return World()


def sums(world: World, policy: Policy = ONE_BATCH, **changes: Any) -> Sums:
    made: Sums = AggregateDeciders(
        store=world.store(),
        decider=Decider(initial=Sum, evolve=evolve, decide=lambda command, state: command(state)),
        codec=json_codec(Added),
        state=json_state(Sum),
        policy=policy,
    )
    return replace(made, **changes)


def requests(world: World, do: Callable[[], object]) -> int:
    before = world.meter.requests
    do()
    return world.meter.requests - before


def snapshot_at(world: World) -> int:
    found = world.store().latest_snapshot(ALICE)
    assert found is not None
    return found.seq_nr


def test_what_was_decided_is_stored_and_the_first_append_brings_the_snapshot(world: World) -> None:
    outcome = sums(world).handle(ALICE, add(5, times=2))
    assert (outcome.state, outcome.events, outcome.version) == (Sum(10, 2), (Added(5), Added(5)), 1)
    assert outcome.standing.lock == Lock(version=1, seq_nr=2)
    assert numbers(world.store()) == [5, 5]
    assert snapshot_at(world) == 2


def test_a_state_is_its_snapshot_and_the_events_after_it(world: World) -> None:
    for number in range(1, 6):
        sums(world).handle(ALICE, add(number))
    assert snapshot_at(world) == 1
    assert sums(world).query(ALICE, lambda state: state) == Sum(15, 5)


def test_nothing_decided_writes_nothing(world: World) -> None:
    assert sums(world).handle(ALICE, add(0)).version == 0
    assert list(world.tables.items("snapshot")) == []


def test_an_error_of_the_domain_passes_through_and_writes_nothing(world: World) -> None:
    with pytest.raises(Overdrawn):
        sums(world).handle(ALICE, add(-1))
    assert list(world.tables.items("journal")) == []


def test_a_replay_is_two_requests_and_one_where_nothing_follows_the_snapshot(world: World) -> None:
    sums(world).handle(ALICE, add(1))
    assert requests(world, lambda: sums(world).load(ALICE)) == 1
    sums(world).handle(ALICE, add(1, times=90))
    assert requests(world, lambda: sums(world).load(ALICE)) == 2


def test_a_transaction_on_a_known_standing_is_one_request(world: World) -> None:
    first = sums(world).handle(ALICE, add(1))
    before = world.meter.requests
    second = sums(world).handle(ALICE, add(1), known=first.standing)
    third = sums(world).handle(ALICE, add(1), known=second.standing)
    assert world.meter.requests == before + 2
    assert third.state == Sum(3, 3)


def test_a_conflict_costs_the_append_and_one_read_of_what_came_between(world: World) -> None:
    known = sums(world).handle(ALICE, add(1)).standing
    for number in (10, 20, 30):
        sums(world).handle(ALICE, add(number))
    seen: list[Sum] = []

    def decide(state: Sum) -> Sequence[Added]:
        seen.append(state)
        return [Added(100)]

    # Refused with the head, the events since by key, appended.
    assert requests(world, lambda: sums(world).handle(ALICE, decide=decide, known=known)) == 3
    assert seen == [Sum(1, 1), Sum(61, 4)]
    assert numbers(world.store()) == [1, 10, 20, 30, 100]


def test_a_decision_for_nothing_on_an_old_standing_is_made_again_on_the_latest(world: World) -> None:
    old = sums(world).handle(ALICE, add(1)).standing
    sums(world).handle(ALICE, add(1))
    outcome = sums(world).handle(ALICE, decide=lambda state: [Added(7)] if state.count > 1 else [], known=old)
    assert outcome.state == Sum(9, 3)


def test_an_error_on_an_old_standing_is_not_the_last_word(world: World) -> None:
    old = sums(world).handle(ALICE, add(1)).standing
    sums(world).handle(ALICE, add(10))
    assert sums(world).handle(ALICE, add(-5), known=old).state == Sum(6, 3)
    latest = sums(world).load(ALICE)
    with pytest.raises(Overdrawn):
        sums(world).handle(ALICE, add(-50), known=latest)


def test_an_answer_is_given_with_the_decision_that_stands(world: World) -> None:
    old = sums(world).handle(ALICE, add(1)).standing
    sums(world).handle(ALICE, add(10))
    answer, outcome = sums(world).handle(
        ALICE, decide=lambda state: (f"was {state.total}", [Added(1)]), known=old, with_result=True
    )
    assert (answer, outcome.state.total) == ("was 11", 12)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [ONE_BATCH, every(1), every(3), by_size(40)])
def test_of_many_writers_none_loses_an_update(world: World, policy: Policy) -> None:
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        for _ in range(10):
            sums(world, policy, attempts=10_000).handle(ALICE, add(1))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums(world).query(ALICE, lambda state: state) == Sum(80, 80)
    assert numbers(world.store()) == [1] * 80


def test_a_writer_that_others_are_always_faster_than_gives_up(world: World) -> None:
    sums(world).handle(ALICE, add(1))
    seen: list[int] = []

    def decide(state: Sum) -> Sequence[Added]:
        seen.append(state.count)
        sums(world).handle(ALICE, add(1))
        return [Added(100)]

    with pytest.raises(Contended) as gave_up:
        sums(world, attempts=3).handle(ALICE, decide=decide)
    assert seen == [1, 2, 3]
    assert (gave_up.value.attempts, gave_up.value.stream) == (3, str(ALICE))
    assert numbers(world.store()) == [1, 1, 1, 1]


def test_who_is_refused_again_gives_way_and_from_the_second_time_on_reads_what_came_during_the_pause(
    world: World,
) -> None:
    seen: list[int] = []
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            sums(world).handle(ALICE, add(1))

    def decide(state: Sum) -> Sequence[Added]:
        seen.append(state.count)
        if len(seen) <= 3:
            sums(world).handle(ALICE, add(1))
        return [Added(100)]

    store = world.store()
    slow = replace(store, driver=replace(store.driver, luck=lambda: 1.0, clock=lambda: 0.0, sleep=pause))
    assert sums(world, store=slow).handle(ALICE, decide=decide).state == Sum(104, 5)
    assert seen == [0, 1, 2, 4]
    assert waited == [32 * QUICKEST, 48 * QUICKEST]


def test_a_decision_whose_answer_was_lost_is_stored_once(world: World) -> None:
    sums(world).handle(ALICE, add(1))
    world.lose_next_append(meanwhile=lambda: sums(world).handle(ALICE, add(1)))
    sums(world).handle(ALICE, add(1))
    assert sums(world).load(ALICE).state == Sum(3, 3)


def snapshots(world: World, policy: Policy, appends: int) -> list[int]:
    """Where the snapshot stands after each append."""
    found = []
    for _ in range(appends):
        sums(world, policy).handle(ALICE, add(1))
        found.append(snapshot_at(world))
    return found


def test_a_snapshot_every_n_events(world: World) -> None:
    assert snapshots(world, every(3), 8) == [1, 1, 1, 4, 4, 4, 7, 7]


def test_a_snapshot_with_every_append(world: World) -> None:
    assert snapshots(world, every(1), 3) == [1, 2, 3]


def test_a_snapshot_by_the_size_of_the_events_since(world: World) -> None:
    """Each is `{"number":1}`: 12 bytes."""
    assert snapshots(world, by_size(36), 8) == [1, 1, 1, 4, 4, 4, 7, 7]
    assert snapshots(World(), by_size(37), 6) == [1, 1, 1, 1, 5, 5]


def test_a_snapshot_by_whatever_a_predicate_says(world: World) -> None:
    def even(since: Since[Sum]) -> bool:
        return since.state.total % 2 == 0

    assert snapshots(world, even, 5) == [1, 2, 2, 4, 4]


def test_a_policy_sees_the_same_whether_the_state_was_read_handed_on_or_caught_up(world: World) -> None:
    seen: list[tuple[int, int]] = []

    def watching(since: Since[Sum]) -> bool:
        seen.append((since.events, since.size))
        return False

    first = sums(world).handle(ALICE, add(1)).standing
    second = sums(world, watching).handle(ALICE, add(1), known=first).standing
    sums(world, watching).handle(ALICE, add(1))
    sums(world, watching).handle(ALICE, add(1), known=second)
    assert seen == [(1, 12), (2, 24), (2, 24), (3, 36)]


def test_events_before_a_snapshot_taken_meanwhile_are_counted_no_more(world: World) -> None:
    seen: list[tuple[int, int]] = []

    def watching(since: Since[Sum]) -> bool:
        seen.append((since.events, since.size))
        return False

    known = sums(world).handle(ALICE, add(1)).standing
    sums(world).handle(ALICE, add(1))
    sums(world, every(1)).handle(ALICE, add(1))
    sums(world).handle(ALICE, add(1))
    sums(world, watching).handle(ALICE, add(1), known=known)
    assert seen == [(1, 12), (2, 24)]


def test_an_event_that_the_codec_does_not_know_is_an_error_unless_skipped(world: World) -> None:
    lock = sums(world).handle(ALICE, add(1)).standing.lock
    assert lock is not None
    world.store().append(ALICE, [AggregateEvent(type="Foreign", data=b"{}")], expected=lock)
    with pytest.raises(UnknownType, match="Foreign"):
        sums(world).load(ALICE)
    assert sums(world, codec=json_codec(Added, skips_unknown=True)).load(ALICE).state == Sum(1, 1)


def test_events_stand_in_for_a_snapshot_that_its_codec_cannot_read(world: World) -> None:
    world.store().append(
        ALICE, [AggregateEvent(type="Added", data=b'{"number":5}')], snapshot=b'{"total":"x"}'
    )
    trusting = sums(world, state=json_state(Sum, trust_unmarked=True))
    assert trusting.load(ALICE).state == Sum(5, 1)
    with pytest.raises(CorruptData, match="a snapshot of Sum"):
        trusting.state.decode(b'{"total":"x"}')


@pytest.mark.parametrize(
    "event",
    [
        Event(type="A", data=b"1", meta=b"1"),
        Event(type="A", data=b"1", correlation_id="c"),
        Event(type="A", data=b"1", causation_id="c"),
    ],
)
def test_what_an_aggregate_cannot_keep_of_an_event_is_refused_not_dropped(world: World, event: Event) -> None:
    codec: EventCodec[Added] = EventCodec(encode=lambda _: event, decode=lambda _: None)
    with pytest.raises(InvalidInput, match="events of aggregates have only a type, data and a timestamp"):
        sums(world, codec=codec).handle(ALICE, add(1))
    assert list(world.tables.items("journal")) == []


def test_limits_that_make_no_sense_are_refused(world: World) -> None:
    for make in (lambda: every(0), lambda: by_size(0), lambda: sums(world, attempts=0)):
        with pytest.raises(InvalidInput, match="must be at least 1"):
            make()


def test_a_transaction_is_one_write_whatever_it_decides(world: World) -> None:
    writes: list[Op] = []
    world.after = lambda op: writes.append(op) if isinstance(op, Transact) else None
    sums(world).handle(ALICE, add(1, times=50))
    assert len(writes) == 1
