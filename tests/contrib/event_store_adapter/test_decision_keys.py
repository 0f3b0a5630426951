"""A decision on an aggregate under an idempotency key: a repeat is answered like the first, and stored once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from epochal.contrib.event_store_adapter.deciders import AggregateTransacted
from epochal.contrib.event_store_adapter.snapshot_policies import ONE_BATCH, Policy, every
from epochal.errors import InvalidInput
from epochal.model.expected_version import STREAM_EXISTS
from tests.contrib.event_store_adapter.test_deciders import Added, Overdrawn, Sum, Sums, add, sums
from tests.contrib.event_store_adapter.world import ALICE, World, event

POLICIES: dict[str, Policy] = {"each": every(1), "one batch": ONE_BATCH, "seldom": every(1_000)}


@pytest.fixture
def world() -> World:
    return World()


def drawn(numbers: Iterator[int]) -> Callable[[Sum], Sequence[Added]]:
    """A decision that is another one each time it is made, and more events the larger the state is."""
    return lambda state: [Added(next(numbers))] * (1 + state.count % 3)


def told(outcome: AggregateTransacted[Sum, Added]) -> tuple[Any, ...]:
    return outcome.state, outcome.events, outcome.standing.lock


def written(world: World) -> int:
    return len(world.store().events_after(ALICE))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("since", [0, 1, 7])
def test_a_repeat_is_answered_like_the_first_whatever_the_aggregate_is_by_then(
    world: World, policy: str, before: int, since: int
) -> None:
    deciders, numbers = sums(world, POLICIES[policy]), count(5)
    for _ in range(before):
        deciders.handle(ALICE, decide=add(1))
    first = deciders.handle(ALICE, decide=drawn(numbers), idempotency_key="a")
    for _ in range(since):
        deciders.handle(ALICE, decide=add(100))

    again = deciders.handle(ALICE, decide=drawn(numbers), idempotency_key="a")

    assert told(again) == told(first)
    assert (first.replayed, again.replayed) == (False, True)
    assert written(world) == before + since + len(first.events)
    # What it answers may be handed on.
    assert deciders.handle(ALICE, decide=add(1), known=again.standing).state.count == written(world)


def test_a_command_that_would_be_refused_by_now_is_answered_as_it_was(world: World) -> None:
    deciders = sums(world)
    deciders.handle(ALICE, decide=add(3))
    first = deciders.handle(ALICE, add(-3), idempotency_key="take")
    with pytest.raises(Overdrawn):
        deciders.handle(ALICE, add(-3))
    assert told(deciders.handle(ALICE, add(-3), idempotency_key="take")) == told(first)


def test_a_result_is_that_of_the_state_that_was_decided_on(world: World) -> None:
    def take(state: Sum) -> tuple[int, Sequence[Added]]:
        return state.total, [Added(1)]

    deciders = sums(world, every(1))
    deciders.handle(ALICE, decide=add(7))
    assert deciders.handle(ALICE, decide=take, idempotency_key="a", with_result=True)[0] == 7
    assert deciders.handle(ALICE, decide=take, with_result=True)[0] == 8
    assert deciders.handle(ALICE, decide=take, idempotency_key="a", with_result=True)[0] == 7
    assert written(world) == 3


def test_a_decision_that_stored_nothing_is_made_again(world: World) -> None:
    deciders = sums(world)
    assert deciders.handle(ALICE, decide=add(0), idempotency_key="a").events == ()
    with pytest.raises(Overdrawn):
        deciders.handle(ALICE, decide=add(-1), idempotency_key="a")
    assert deciders.handle(ALICE, decide=add(1), idempotency_key="a").events == (Added(1),)
    assert deciders.handle(ALICE, decide=add(0), idempotency_key="a").events == (Added(1),)


@pytest.mark.parametrize("overtakers", range(4))
@pytest.mark.parametrize("before", [0, 1])
def test_what_was_decided_elsewhere_under_the_key_while_this_was_is_what_is_answered(
    world: World, overtakers: int, before: int
) -> None:
    deciders, elsewhere, numbers = sums(world), sums(world), count(5)
    for _ in range(before):
        deciders.handle(ALICE, decide=add(1))
    rival, others = list[AggregateTransacted[Sum, Added]](), iter(range(overtakers))

    def overtaken(state: Sum) -> Sequence[Added]:
        if next(others, None) is not None:
            elsewhere.handle(ALICE, decide=add(3))
        elif not rival:
            rival.append(elsewhere.handle(ALICE, decide=drawn(numbers), idempotency_key="a"))
            for _ in range(overtakers):
                elsewhere.handle(ALICE, decide=add(3))
        return drawn(numbers)(state)

    mine = deciders.handle(ALICE, decide=overtaken, idempotency_key="a")

    assert (told(mine), mine.replayed) == (told(rival[0]), True)
    assert written(world) == before + 2 * overtakers + len(mine.events)


def test_an_old_standing_that_leads_to_nothing_is_not_decided_on_past_the_key(world: World) -> None:
    """The state is replayed, and the key looked for after that."""
    deciders: Sums = sums(world)
    known = deciders.handle(ALICE, decide=add(1)).standing
    made: list[AggregateTransacted[Sum, Added]] = []

    def take(state: Sum) -> Sequence[Added]:
        if not made:
            made.append(sums(world).handle(ALICE, decide=add(5), idempotency_key="a"))
            return []
        return [Added(1)]

    assert told(deciders.handle(ALICE, decide=take, known=known, idempotency_key="a")) == told(made[0])
    assert written(world) == 2


def test_a_lost_answer_is_the_one_that_the_repeat_gets(world: World) -> None:
    deciders, numbers = sums(world), count(5)
    deciders.handle(ALICE, decide=add(1))
    world.lose_next_append(meanwhile=lambda: sums(world).handle(ALICE, decide=add(1)))
    first = deciders.handle(ALICE, decide=drawn(numbers), idempotency_key="a")
    assert told(deciders.handle(ALICE, decide=drawn(numbers), idempotency_key="a")) == told(first)
    assert written(world) == 2 + len(first.events)


def test_a_key_of_an_append_is_refused_to_a_decision_and_the_other_way_round(world: World) -> None:
    deciders = sums(world)
    deciders.handle(ALICE, decide=add(1), idempotency_key="a")
    with pytest.raises(InvalidInput, match="was already used for an append with other contents"):
        world.store().append(ALICE, [event(1, "Added")], expected=STREAM_EXISTS, idempotency_key="a")
    world.store().append(ALICE, [event(1, "Added")], expected=STREAM_EXISTS, idempotency_key="b")
    with pytest.raises(InvalidInput, match="was already used for an append with other contents"):
        deciders.handle(ALICE, decide=add(1), idempotency_key="b")


def test_a_key_costs_two_write_units_and_one_request(world: World) -> None:
    deciders = sums(world, every(1))
    deciders.handle(ALICE, decide=add(1))
    plain = deciders.handle(ALICE, decide=add(1)).capacity
    keyed = deciders.handle(ALICE, decide=add(1), idempotency_key="a").capacity
    assert (keyed.write - plain.write, keyed.requests - plain.requests) == (2.0, 1)
