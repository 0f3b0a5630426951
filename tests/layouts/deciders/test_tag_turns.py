"""Decisions of one process on the same tags, or whose events carry them, take turns, also with appends."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from epochal import Event, Query, QueryItem
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, Deciders
from epochal.deciders.projections import projection
from epochal.errors import InvalidInput
from tests.support.counted_stores import EACH, WRITERS, at_once
from tests.support.shared_tags import COURSE, TERM, World, enrolled

pytestmark = pytest.mark.usefixtures("no_queue_stays")


COUNT = projection(tags=[COURSE], initial=0, on={"Enrolled": lambda count, _: count + 1})
OF_TERM = projection(tags=[TERM], initial=0, on={"Enrolled": lambda count, _: count + 1})

CODEC = EventCodec[int](
    encode=lambda seat: Event(type="Enrolled", data=b"%d" % seat), decode=lambda stored: int(stored.data)
)


def seat_under(*tags: str) -> Decider[int, int, int]:
    """Each decision takes the next seat, in an event with tags."""
    return Decider(
        initial=int, evolve=lambda taken, _: taken + 1, decide=lambda _, taken: [CODEC.tagged(taken, *tags)]
    )


@pytest.fixture
def world() -> World:
    return World()


def take_a_seat(model: Mapping[str, Any]) -> list[Event]:
    return [enrolled(data=b"%d" % model["count"])]


def seats(world: World) -> list[int]:
    events = world.plain.tagged.read(Query(items=(QueryItem(tags=[COURSE]),))).events
    return [int(event.data) for event in events]


def test_no_decision_on_a_tag_refuses_another(world: World) -> None:
    at_once(
        lambda _: [Decisions(store=world.tagged).handle({"count": COUNT}, take_a_seat) for _ in range(EACH)]
    )

    assert seats(world) == list(range(WRITERS * EACH))
    assert not world.refusals


def test_decisions_and_appends_under_a_tag_do_not_refuse_each_other(world: World) -> None:
    def work(number: int) -> None:
        for step in range(EACH):
            if number % 2:
                Decisions(store=world.tagged).handle({"count": COUNT}, take_a_seat)
            else:
                world.streams.append(f"Student-{number}", [enrolled(data=b"-%d" % (step + 1))])

    at_once(work)

    assert world.count() == WRITERS * EACH
    assert not world.refusals


def test_decisions_on_own_streams_wait_for_the_tag_of_their_events(world: World) -> None:
    deciders = Deciders(streams=world.streams, decider=seat_under(COURSE), codec=CODEC)

    at_once(lambda number: [deciders.handle(f"Student-{number}", 1) for _ in range(EACH)])

    assert world.count() == WRITERS * EACH
    assert not world.refusals


def test_decisions_on_streams_and_a_query_wait_for_both(world: World) -> None:
    deciders = Deciders(streams=world.streams, decider=seat_under(COURSE), codec=CODEC)

    def decide(taken: int, model: Mapping[str, Any]) -> list[Any]:
        return [CODEC.tagged(model["count"], COURSE, f"place:{taken}")]

    def work(number: int) -> None:
        for step in range(EACH):
            deciders.handle(f"Student-{(number + step) % 2}", given={"count": COUNT}, decide=decide)

    at_once(work)

    assert seats(world) == list(range(WRITERS * EACH))
    assert not world.refusals


def test_a_decision_that_appends_under_its_own_tag_is_made_again(world: World) -> None:
    """What it appends refuses it, once; a decision within it is made at once."""
    store, calls = world.tagged, list[int]()

    def decide(model: Mapping[str, Any]) -> list[Event]:
        calls.append(model["count"])
        if len(calls) == 1:
            store.append([enrolled()])
            Decisions(store=store).handle({"count": COUNT}, take_a_seat)
        return take_a_seat(model)

    Decisions(store=store).handle({"count": COUNT}, decide)

    assert calls == [0, 2]
    assert world.count() == 3


def test_decisions_within_decisions_in_either_order_do_not_wait_for_each_other_for_ever(world: World) -> None:
    store = world.tagged

    def within(_: Mapping[str, Any], other: Any, tag: str) -> list[Event]:
        Decisions(store=store, attempts=100).handle({"count": other}, lambda _: [])
        return [enrolled(tag)]

    def work(number: int) -> None:
        mine, other, tag = (COUNT, OF_TERM, COURSE) if number % 2 else (OF_TERM, COUNT, TERM)
        for _ in range(EACH):
            Decisions(store=store, attempts=100).handle(
                {"count": mine}, partial(within, other=other, tag=tag)
            )

    at_once(work)

    assert world.count() == world.count(TERM) == WRITERS // 2 * EACH


def test_a_decision_that_raises_lets_the_next_one_begin(world: World) -> None:
    class SoldOut(Exception):
        pass

    def decide(model: Mapping[str, Any]) -> list[Event]:
        if model["count"] == EACH:
            raise SoldOut
        return take_a_seat(model)

    def take_all() -> None:
        while True:
            Decisions(store=world.tagged).handle({"count": COUNT}, decide)

    def work(_: int) -> None:
        with pytest.raises(SoldOut):
            take_all()

    at_once(work)

    assert seats(world) == list(range(EACH))


def test_projections_are_checked_before_anything_waits(world: World) -> None:
    for wrong in ({}, {"count": "no projection"}, [COUNT]):
        with pytest.raises(InvalidInput, match="projections"):
            Decisions(store=world.tagged).handle(wrong, take_a_seat)  # type: ignore[arg-type]
