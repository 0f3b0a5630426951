"""Decisions of one process on one aggregate take turns: none refuses another, however each knows the state."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.event_store_adapter.aio import AsyncAggregateDeciders, AsyncAggregates
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders, Standing
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.snapshot_policies import every
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_streams import Decider
from epochal.model.events import Event
from epochal.plan.ops import Op, Transact
from epochal.store import queueing
from epochal.store.driver import Driver, Meter
from epochal.testing.stores import pause
from tests.support.counted_stores import EACH, SOON, WRITERS, CountedStores, at_once

pytestmark = pytest.mark.usefixtures("no_queue_stays")

CART, OTHER = AggregateId(type="cart", value="1"), AggregateId(type="cart", value="2")
RULES = Decider[int, int, int](
    initial=int, evolve=lambda total, added: total + added, decide=lambda added, _: [added]
)
CODEC = EventCodec[int](
    encode=lambda number: Event(type="Added", data=b"%d" % number), decode=lambda stored: int(stored.data)
)

STATE = StateCodec[int](encode=lambda total: b"%d" % total, decode=int, made_with="1")

Sums = AggregateDeciders[int, int, int]


@pytest.fixture
def world() -> CountedStores:
    return CountedStores()


def store(world: CountedStores) -> AggregateStore:
    driver = Driver(execute=world.execute, meter=Meter())
    return replace(world.plain, driver=driver).aggregates


def sums(world: CountedStores, **options: Any) -> Sums:
    return Sums(store=store(world), decider=RULES, codec=CODEC, state=STATE, policy=every(10), **options)


def total(world: CountedStores, aggregate: AggregateId = CART) -> int:
    return sums(world).load(aggregate).state


def test_no_decision_refuses_another_whoever_opened_its_store(world: CountedStores) -> None:
    at_once(lambda _: [sums(world).handle(CART, 1) for _ in range(EACH)])

    assert total(world) == WRITERS * EACH
    assert not world.refusals


def test_decisions_on_a_state_that_their_caller_knows_notice_that_it_is_old(world: CountedStores) -> None:
    def work(_: int) -> None:
        known: Standing[int] | None = None
        for _ in range(EACH):
            known = sums(world).handle(CART, 1, known=known).standing

    at_once(work)

    assert total(world) == WRITERS * EACH
    assert world.refusals <= WRITERS


def test_decisions_of_one_decider_hand_on_the_state_and_take_a_request_each(world: CountedStores) -> None:
    deciders = sums(world)

    def work(_: int) -> None:
        known = deciders.load(CART)
        for _ in range(EACH):
            known = deciders.handle(CART, 1, known=known).standing

    at_once(work)

    assert total(world) == WRITERS * EACH
    assert world.requests <= WRITERS * (EACH + 4)


def test_a_state_that_other_rules_have_made_is_not_handed_on(world: CountedStores) -> None:
    twice = Decider[int, int, int](
        initial=int, evolve=lambda total, added: total + 2 * added, decide=lambda added, _: [added]
    )
    ones, twos = sums(world), replace(sums(world), decider=twice, state=replace(STATE, made_with="2"))

    def work(number: int) -> None:
        deciders = twos if number % 2 else ones
        known = deciders.load(CART)
        for _ in range(EACH):
            known = deciders.handle(CART, 1, known=known).standing
            assert known.lock is not None
            assert known.state == known.lock.seq_nr * (1 + number % 2)

    at_once(work)


def test_a_decision_that_stores_nothing_reads_the_state_that_it_was_handed(world: CountedStores) -> None:
    """Another process may have written since."""
    deciders, others, states = sums(world), replace(sums(world), store=world.plain.aggregates), list[int]()
    old = deciders.handle(CART, 1).standing

    def decide(state: int) -> list[int]:
        states.append(state)
        return []

    def first(_: int) -> list[int]:
        while not any(queue.waiting for queue in [*queueing._QUEUES.values()]):  # noqa: SLF001  it shows nowhere else
            pause(0.001)
        return [1]

    def behind() -> int:
        return deciders.handle(CART, decide=decide, known=old).state

    def after_the_write(op: Op) -> None:
        if not isinstance(op, Transact) and len(states) == 1:
            others.handle(CART, 1)

    with ThreadPoolExecutor(2) as pool:
        ahead = pool.submit(deciders.handle, CART, decide=first)
        until_at_work()
        world.before = after_the_write
        assert pool.submit(behind).result(SOON) == 3
        ahead.result(SOON)
    assert states == [2, 3]


def until_at_work() -> None:
    while not queueing._QUEUES:  # noqa: SLF001  it shows nowhere else
        pause(0.001)


def test_decisions_under_keys_take_turns_and_are_made_once(world: CountedStores) -> None:
    def work(number: int) -> None:
        for turn in range(EACH):
            sums(world).handle(CART, 1, idempotency_key=f"{number}-{turn}")

    at_once(work)
    assert not world.refusals
    at_once(work)

    assert total(world) == WRITERS * EACH


def test_decisions_on_other_aggregates_do_not_wait(world: CountedStores) -> None:
    def decide(state: int) -> list[int]:
        if not state:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(sums(world).handle, OTHER, 1).result(SOON)
        return [1]

    assert sums(world).handle(CART, decide=decide).state == 1
    assert total(world, OTHER) == 1


def test_a_decision_that_raises_lets_the_next_one_begin(world: CountedStores) -> None:
    class SoldOut(Exception):
        pass

    def decide(state: int) -> list[int]:
        if state % 2:
            raise SoldOut
        return [1]

    def work(_: int) -> None:
        for _ in range(EACH):
            try:
                sums(world).handle(CART, decide=decide)
            except SoldOut:
                sums(world).handle(CART, decide=lambda state: [state % 2])

    at_once(work)


def test_a_decision_that_decides_on_its_own_aggregate_is_made_again(world: CountedStores) -> None:
    calls: list[int] = []

    def decide(state: int) -> list[int]:
        calls.append(state)
        if len(calls) == 1:
            sums(world).handle(CART, 10)
        return [1]

    assert sums(world).handle(CART, decide=decide).state == 11
    assert calls == [0, 10]


def test_decisions_of_tasks_take_turns(world: CountedStores) -> None:
    plain = sums(world)
    deciders = AsyncAggregateDeciders(
        store=AsyncAggregates(plain.store),
        decider=RULES,
        codec=CODEC,
        state=plain.state,
        policy=plain.policy,
    )

    async def work() -> None:
        for _ in range(EACH):
            await deciders.handle(CART, 1)

    async def main() -> None:
        await asyncio.wait_for(asyncio.gather(*(work() for _ in range(WRITERS))), SOON)

    asyncio.run(main())

    assert total(world) == WRITERS * EACH
    assert not world.refusals
