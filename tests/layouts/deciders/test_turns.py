"""Decisions of one process on one stream take turns: none refuses another, whatever the functions do meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from epochal.aio.stores import AsyncDeciders, AsyncStreams
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import EventCodec
from epochal.deciders.loading import ALLOW_LAG, ASSUME_EMPTY, REQUIRE_LOAD, AllowStale, Load
from epochal.deciders.on_streams import Decider, Deciders, handle_all
from epochal.errors import Unavailable
from epochal.model.events import Event
from epochal.store import queueing
from tests.support.counted_stores import EACH, SOON, WRITERS, CountedStores, at_once

pytestmark = pytest.mark.usefixtures("no_queue_stays")


S, OTHER = "Sum-1", "Sum-2"

CODEC = EventCodec[int](
    encode=lambda number: Event(type="Added", data=b"%d" % number), decode=lambda stored: int(stored.data)
)
RULES = Decider[int, int, int](
    initial=int, evolve=lambda total, added: total + added, decide=lambda added, _: [added]
)


class World(CountedStores):
    """Stores in memory that count requests and refusals, with deciders."""

    def deciders(self, **options: Any) -> Deciders[int, int, int]:
        return Deciders(streams=self.streams, decider=RULES, codec=CODEC, **options)

    def total(self, stream: str = S) -> int:
        return sum(int(event.data) for event in self.plain.streams.read(stream))


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("load", [REQUIRE_LOAD, ALLOW_LAG, ASSUME_EMPTY, AllowStale()], ids=str)
@pytest.mark.parametrize("caches", ["none", "one", "one for each"])
def test_no_decision_refuses_another(world: World, load: Load | AllowStale, caches: str) -> None:
    one = world.deciders(cache=Cache() if caches == "one" else None)

    def work(_: int) -> None:
        mine = world.deciders(cache=Cache()) if caches == "one for each" else one
        for _ in range(EACH):
            mine.handle(S, 1, load=load)

    at_once(work)

    assert world.total() == WRITERS * EACH
    assert world.refusals <= (WRITERS if load is ASSUME_EMPTY or caches == "one for each" else 0)


def test_deciders_with_one_cache_take_one_request_a_decision(world: World) -> None:
    deciders = world.deciders(cache=Cache())

    at_once(lambda _: [deciders.handle(S, 1, load=AllowStale()) for _ in range(EACH)])

    assert world.requests <= WRITERS * EACH + 1


def test_stores_that_are_opened_apart_over_one_client_take_turns_too(world: World) -> None:
    at_once(lambda _: [world.deciders().handle(S, 1) for _ in range(EACH)])

    assert not world.refusals


def test_a_decision_that_raises_lets_the_next_one_begin(world: World) -> None:
    class SoldOut(Exception):
        pass

    def decide(total: int) -> list[int]:
        if total % 2:
            raise SoldOut
        return [1]

    def work(_: int) -> None:
        for _ in range(EACH):
            try:
                world.deciders().handle(S, decide=decide)
            except SoldOut:
                world.deciders().handle(S, decide=lambda total: [total % 2])

    at_once(work)


def test_a_decision_that_appends_to_its_own_stream_is_made_again(world: World) -> None:
    deciders, calls = world.deciders(), 0

    def decide(_: int) -> list[int]:
        nonlocal calls
        calls += 1
        if calls == 1:
            deciders.handle(S, 10)
            world.streams.append(S, [Event(type="Added", data=b"100")])
        return [1]

    assert deciders.handle(S, decide=decide).state == 111
    assert calls == 2


def test_decisions_within_each_others_decisions_do_not_wait_for_each_other(world: World) -> None:
    both, deciders = threading.Barrier(2), world.deciders()

    def work(number: int) -> None:
        first, second = (S, OTHER) if number else (OTHER, S)
        met = False

        def decide(_: int) -> list[int]:
            nonlocal met
            if not met:
                met = True
                both.wait(SOON)
                deciders.handle(second, 1)
            return [1]

        deciders.handle(first, decide=decide)

    at_once(work, 2)

    assert world.total(S) == world.total(OTHER) == 2


def test_a_decision_that_waits_for_a_thread_which_decides_on_its_stream_goes_on_in_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queueing, "STUCK_SECONDS", 0.05)
    deciders, done = world.deciders(), []

    def decide(_: int) -> list[int]:
        if not done:
            with ThreadPoolExecutor(1) as pool:
                done.append(pool.submit(deciders.handle, S, 10).result(SOON))
        return [1]

    assert deciders.handle(S, decide=decide).state == 11


def test_joint_decisions_in_either_order_and_decisions_on_one_take_turns(world: World) -> None:
    deciders = world.deciders()

    def work(number: int) -> None:
        pair = (S, OTHER) if number % 2 else (OTHER, S)
        for turn in range(EACH):
            if (number + turn) % 3:
                handle_all([deciders.on(stream) for stream in pair], lambda *_: ([1], [1]))
            else:
                for stream in pair:
                    deciders.handle(stream, 1)

    at_once(work)

    assert world.total(S) == world.total(OTHER) == WRITERS * EACH
    assert not world.refusals


def test_joint_decisions_on_states_in_caches_of_their_own_know_that_those_are_old(world: World) -> None:
    def work(_: int) -> None:
        deciders = world.deciders(cache=Cache())
        for _ in range(EACH):
            parties = [deciders.on(stream) for stream in (S, OTHER)]
            handle_all(parties, lambda *_: ([1], [1]), load=AllowStale())

    at_once(work)

    assert world.total(S) == world.total(OTHER) == WRITERS * EACH
    assert world.refusals <= WRITERS


def test_decisions_that_store_nothing_go_on_together(world: World) -> None:
    inside, most, lock, deciders = 0, 0, threading.Lock(), world.deciders()
    begins = threading.Barrier(16)

    def decide(_: int) -> Sequence[int]:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.005)
        with lock:
            inside -= 1
        return []

    def work(_: int) -> None:
        begins.wait(SOON)
        deciders.handle(S, decide=decide)

    at_once(work, 16)

    assert most >= 4


def test_a_decision_whose_deadline_passes_while_it_waits_says_so(world: World) -> None:
    entered, over = threading.Event(), threading.Event()

    def slow(_: int) -> list[int]:
        entered.set()
        assert over.wait(SOON)
        return [1]

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(world.deciders().handle, S, decide=slow)
        assert entered.wait(SOON)
        hurried = replace(world.deciders(), streams=world.streams.within(0.05))
        with pytest.raises(Unavailable, match="time limit of the call has passed") as error:
            hurried.handle(S, 1)
        assert not error.value.maybe_applied
        over.set()
        first.result(SOON)

    assert world.total() == 1


def test_decisions_of_tasks_take_turns(world: World) -> None:
    deciders = AsyncDeciders(streams=AsyncStreams(world.streams), decider=RULES, codec=CODEC)

    async def work() -> None:
        for _ in range(EACH):
            await deciders.handle(S, 1)

    async def main() -> None:
        await asyncio.wait_for(asyncio.gather(*(work() for _ in range(WRITERS))), SOON)

    asyncio.run(main())

    assert world.total() == WRITERS * EACH
    assert not world.refusals
