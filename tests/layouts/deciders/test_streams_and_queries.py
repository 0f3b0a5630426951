"""Decisions on a stream whose events carry tags, and on a stream and a query: stored if both are as they were read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from epochal import Decider, Deciders, Event, Query, QueryItem, after, json_codec, later, metadata, projection
from epochal.codec import json
from epochal.deciders.access import UNOPTIMIZED, custom
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import EventCodec
from epochal.deciders.loading import AllowStale
from epochal.deciders.loop import WithAlso
from epochal.deciders.on_streams import handle_all
from epochal.errors import Contended, InvalidInput
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Reply, Transact, Update
from epochal.plan.ops import Query as Asks
from epochal.store.also import put
from epochal.store.streams import Streams
from epochal.testing.scenarios import given
from epochal.testing.stores import memory_streams
from tests.support.async_deciders import async_deciders

SEATS = 2
COURSE = "course:dcb"

CODEC = EventCodec[str](
    encode=lambda course: Event(type="Enrolled", data=course.encode(), tags=(COURSE,)),
    decode=lambda stored: bytes(stored.data).decode(),
)
"""A student's stream: the courses, each of which is a tag."""

STUDENT = Decider[str, tuple[str, ...], str](
    initial=tuple, evolve=lambda known, course: (*known, course), decide=lambda course, _: [course]
)

TAKEN = {"taken": projection(tags=[COURSE], initial=0, on={"Enrolled": lambda taken, _: taken + 1})}


class Full(Exception):
    """The course has no seat left."""


def enrol(courses: tuple[str, ...], model: Mapping[str, Any]) -> Sequence[str]:
    if "dcb" in courses:
        return []
    if model["taken"] >= SEATS:
        raise Full
    return ["dcb"]


def students(streams: Streams, **options: Any) -> Deciders[str, tuple[str, ...], str]:
    return Deciders(streams=streams, decider=STUDENT, codec=CODEC, **options)


def meddled(streams: Streams, before: Callable[[Op], object]) -> Streams:
    """The store, as one opens it before each of whose requests something happens."""

    def execute(op: Op) -> Reply:
        before(op)
        return streams.driver.execute(op)

    driver = replace(
        streams.driver, execute=execute, luck=lambda: 1.0, clock=lambda: 0.0, sleep=lambda _: None
    )
    return streams.on(driver)


def of_course(streams: Streams) -> list[tuple[str, int]]:
    found = streams.tagged.read(Query(items=(QueryItem(tags=frozenset([COURSE])),))).events
    return [(event.stream, event.index) for event in found]


def test_events_of_a_decider_may_carry_tags_and_queries_find_them() -> None:
    streams = memory_streams()
    with metadata(user="ada"):
        first = students(streams).handle("Student-1", "dcb")
    assert (first.state, first.version, first.capacity.requests) == (("dcb",), 1, 3)
    again = students(streams).handle("Student-1", "again")
    assert (again.state, again.version) == (("dcb", "again"), 2)
    assert of_course(streams) == [("Student-1", 0), ("Student-1", 1)]
    assert json.loads(next(streams.read("Student-1")).meta) == {"user": "ada"}


def test_a_decider_with_tags_that_is_overtaken_decides_on_what_came_in_between() -> None:
    streams = memory_streams()
    others, saw = iter(["other"]), []

    def decide(courses: tuple[str, ...]) -> Sequence[str]:
        saw.append(courses)
        for other in others:
            students(streams).handle("Student-1", other)
        return ["dcb"]

    assert students(streams).handle("Student-1", decide=decide).state == ("other", "dcb")
    assert saw == [(), ("other",)]


def test_what_goes_with_a_decision_on_a_stream_and_a_query_is_none_of_the_stores_own_items() -> None:
    streams = memory_streams()

    def forging(*_: object) -> WithAlso[str]:
        return WithAlso(["dcb"], [put("streams", {"p": "Student-2", "i": 0})])

    with pytest.raises(InvalidInput, match="must not name a table of the store itself"):
        students(streams).handle("Student-1", given=TAKEN, decide=forging)


def test_a_cached_decision_with_a_tag_is_two_requests() -> None:
    streams, cache = memory_streams(), Cache()
    deciders = students(streams, cache=cache)
    deciders.handle("Student-1", "dcb")
    assert deciders.handle("Student-1", "again", load=AllowStale()).capacity.requests == 2, (
        "the tag's last page, and a transaction"
    )


def test_a_decision_whose_events_have_tags_is_made_once_under_a_key() -> None:
    streams = memory_streams()
    first = students(streams).handle("Student-1", "dcb", idempotency_key="k")
    students(streams).handle("Student-1", "other")
    again = students(streams).handle("Student-1", "dcb", idempotency_key="k")
    assert (again.state, again.events, again.version) == (first.state, first.events, first.version)
    assert (first.replayed, again.replayed) == (False, True)
    assert of_course(streams) == [("Student-1", 0), ("Student-1", 1)]


@pytest.mark.parametrize("lost", [1, 2])
def test_a_lost_answer_of_one_with_tags_is_no_refusal_at_its_last_attempt(lost: int) -> None:
    streams, left = memory_streams(), iter(range(lost))

    def execute(op: Op) -> Reply:
        reply = streams.driver.execute(op)
        if isinstance(op, Transact):
            for _ in left:
                raise Lost("cut off")
        return reply

    once = students(streams.on(replace(streams.driver, execute=execute, sleep=lambda _: None)), attempts=1)
    assert once.handle("Student-1", "dcb", idempotency_key="k").state == ("dcb",)
    assert of_course(streams) == [("Student-1", 0)]


def test_a_decision_on_several_streams_leads_to_events_with_tags_that_queries_find() -> None:
    streams = memory_streams()
    deciders = students(streams)
    made = handle_all(
        (deciders.on("Student-1"), deciders.on("Student-2"), deciders.on("Student-3")),
        lambda *_: (["dcb"], ["dcb", "more"], []),
    )
    assert [each.version for each in made.parties] == [1, 2, 0]
    assert made.capacity.write == 8.0, "two streams, a tag, and the stream that is only read"
    assert of_course(streams) == [("Student-1", 0), ("Student-2", 0), ("Student-2", 1)]
    twice = [
        handle_all(
            (deciders.on("Student-1"), deciders.on("Student-2")),
            lambda *_: (["dcb"], []),
            idempotency_key="k",
        )
        for _ in range(2)
    ]
    assert twice[0].parties[0].version == twice[1].parties[0].version == 2
    assert [stream for stream, _ in of_course(streams)].count("Student-1") == 2


@pytest.mark.parametrize("other", ["Student-1", "Student-2"])
def test_one_that_leads_to_tags_is_made_again_where_a_stream_has_moved_that_is_read_or_written(
    other: str,
) -> None:
    streams, saw = memory_streams(), list[Any]()
    others = iter([other])

    def faster(op: Op) -> None:
        if isinstance(op, Transact):
            for each in others:
                streams.append(each, [Event(type="Enrolled", data=b"late")])

    def decide(*courses: tuple[str, ...]) -> tuple[Sequence[str], Sequence[str]]:
        saw.append(courses)
        return ["dcb"], []

    deciders = students(meddled(streams, faster))
    handle_all((deciders.on("Student-1"), deciders.on("Student-2")), decide)
    assert saw == [((), ()), (("late",), ()) if other == "Student-1" else ((), ("late",))]
    assert [stream for stream, _ in of_course(streams)] == ["Student-1"]


def test_a_decision_on_a_stream_and_a_query_is_stored_in_the_stream() -> None:
    streams = memory_streams()
    made = students(streams).handle("Student-1", given=TAKEN, decide=enrol, metadata={"user": "ada"})
    assert (made.state, made.events, made.version) == (("dcb",), ("dcb",), 1)
    assert (made.capacity.requests, made.capacity.write) == (3, 4.0), (
        "stream, query, and a transaction of two"
    )
    assert of_course(streams) == [("Student-1", 0)]
    assert json.loads(next(streams.read("Student-1")).meta) == {"user": "ada"}


def test_a_repeat_of_a_decision_on_a_stream_and_a_query_is_answered_like_the_first() -> None:
    streams = memory_streams()
    party = students(streams).on("Student-1")
    first = party.deciders.handle(party.stream, given=TAKEN, decide=enrol, idempotency_key="k")
    for number in range(2, 5):
        streams.append(f"Student-{number}", [Event(type="Enrolled", data=b"dcb", tags=(COURSE,))])
    with pytest.raises(Full):
        students(streams).handle("Student-9", given=TAKEN, decide=enrol, idempotency_key="k")
    again = party.deciders.handle(party.stream, given=TAKEN, decide=enrol, idempotency_key="k")
    assert (again.state, again.events, again.version) == (first.state, first.events, first.version)
    assert (first.replayed, again.replayed) == (False, True)
    with pytest.raises(InvalidInput, match="idempotency_key"):
        party.deciders.handle(party.stream, given=TAKEN, decide=enrol, idempotency_key="")


def test_the_last_seat_goes_to_one_of_two_students_who_decide_at_once() -> None:
    streams = memory_streams()
    students(streams).handle("Student-1", given=TAKEN, decide=enrol)
    others = iter(["Student-2"])

    def faster(op: Op) -> None:
        if isinstance(op, Put | Update | Transact):
            for other in others:
                students(streams).handle(other, given=TAKEN, decide=enrol)

    with pytest.raises(Full):
        students(meddled(streams, faster)).handle("Student-3", given=TAKEN, decide=enrol)
    assert of_course(streams) == [("Student-1", 0), ("Student-2", 0)]


def test_a_stream_that_moved_is_decided_on_again_without_a_read() -> None:
    streams, asked = memory_streams(), list[str]()
    others = iter(["other"])

    def faster(op: Op) -> None:
        asked.append(type(op).__name__)
        if isinstance(op, Put | Update | Transact):
            for other in others:
                streams.append("Student-1", [Event(type="Enrolled", data=other.encode())])

    made = students(meddled(streams, faster)).handle("Student-1", given=TAKEN, decide=enrol)
    assert made.state == ("other", "dcb")
    assert asked.count("Transact") == 2


def test_a_decision_that_stores_nothing_or_an_error_is_one_of_one_moment() -> None:
    streams = memory_streams()
    for number in range(SEATS):
        students(streams).handle(f"Student-{number}", given=TAKEN, decide=enrol)
    late = iter([1])
    heads = 0

    def between(op: Op) -> None:
        """After the stream's head was read first, its student gets a seat that nobody counts."""
        nonlocal heads
        heads += isinstance(op, Asks)
        if heads == 2:
            for _ in late:
                streams.append("Student-9", [Event(type="Enrolled", data=b"dcb")])

    made = students(meddled(streams, between)).handle("Student-9", given=TAKEN, decide=enrol)
    assert (made.state, made.events) == (("dcb",), ()), "not full: the student has a seat"


def test_who_is_always_overtaken_by_events_that_match_gives_up() -> None:
    streams = memory_streams()

    def faster(op: Op) -> None:
        if isinstance(op, Put | Update | Transact):
            streams.append("Student-2", [Event(type="Enrolled", data=b"x", tags=(COURSE,))])

    hasty = students(meddled(streams, faster), attempts=3)
    with pytest.raises(Contended):
        hasty.handle("Student-1", given=TAKEN, decide=lambda *_: ["dcb"])
    assert [stream for stream, _ in of_course(streams)] == ["Student-2"] * 3


def test_it_is_awaited_too() -> None:
    awaited = async_deciders(students(memory_streams()))
    made = asyncio.run(awaited.handle("Student-1", given=TAKEN, decide=enrol))
    assert made.events == ("dcb",)


@dataclass(frozen=True)
class Placed:
    coupon: str


@dataclass(frozen=True)
class Noted:
    text: str


TYPED = json_codec(Placed, Noted)
ORDER = Decider[str, tuple[object, ...], Placed | Noted](
    initial=tuple,
    evolve=lambda known, event: (*known, event),
    decide=lambda coupon, _: [TYPED.tagged(Placed(coupon), f"coupon:{coupon}"), Noted("thanks")],
)
USED = {"used": projection(tags=["coupon:C"], initial=0, on={"Placed": lambda used, _: used + 1})}


def of_coupon(streams: Streams, coupon: str = "C") -> list[str]:
    found = streams.tagged.read(Query(items=(QueryItem(tags=frozenset([f"coupon:{coupon}"])),))).events
    return [event.type for event in found]


def test_what_decide_answers_may_hold_events_that_its_codec_has_tagged() -> None:
    streams, event = memory_streams(), Placed("C")
    orders = Deciders(streams=streams, decider=ORDER, codec=TYPED)
    made = orders.handle("Order-1", "C", idempotency_key="k")
    assert made.state == made.events == (event, Noted("thanks")), "the domain's, without tags"
    assert [each.tags for each in streams.read("Order-1")] == [("coupon:C",), ()]
    again = orders.handle("Order-1", "C", idempotency_key="k")
    assert (again.replayed, again.state, again.events) == (True, made.state, made.events)

    def once(_: tuple[object, ...], model: Mapping[str, Any]) -> Sequence[Event]:
        return [] if model["used"] else [TYPED.tagged(Placed("C"), "coupon:C")]

    assert orders.handle("Order-2", given=USED, decide=once).events == ()
    handle_all(
        (orders.on("Order-2"), orders.on("Order-3")), lambda *_: ([TYPED.tagged(event, "coupon:C")], [])
    )
    assert of_coupon(streams) == ["Placed", "Placed"]
    loop = async_deciders(orders)
    asyncio.run(loop.handle("Order-4", decide=lambda _: [TYPED.tagged(event, "coupon:C")]))
    assert len(of_coupon(streams)) == 3
    orders.handle(
        "Order-5", decide=lambda _: [later("due", [TYPED.tagged(event, "coupon:C")], at=after(days=1))]
    )
    assert json.loads(next(streams.read("Order-5")).content)["events"][0]["tags"] == ["coupon:C"]


def test_events_that_are_one_object_keep_the_tags_of_each_and_those_that_transmute_leaves_keep_theirs() -> (
    None
):
    streams, event = memory_streams(), Placed("C")
    tagged = [
        TYPED.tagged(event, "coupon:C"),
        event,
        TYPED.tagged(event, "coupon:D"),
        TYPED.tagged(Placed("E"), "e"),
    ]
    access = custom(lambda _: False, lambda events, _: ([Noted("first"), *events[1:]], None))
    for number, strategy in enumerate([UNOPTIMIZED, access]):
        orders = Deciders(streams=streams, decider=ORDER, codec=TYPED, access=strategy)
        orders.handle(f"Order-{number}", decide=lambda _: tagged)
    assert [each.tags for each in streams.read("Order-0")] == [("coupon:C",), (), ("coupon:D",), ("e",)]
    first, *_, last = streams.read("Order-1")
    assert (first.type, first.tags, last.tags) == ("Noted", (), ("e",))


def test_an_event_that_another_codec_has_tagged_is_stored_by_the_decider_s_own() -> None:
    streams = memory_streams()
    sealing = replace(TYPED, encode=lambda event: replace(TYPED.encode(event), data=b'{"coupon":"sealed"}'))
    Deciders(streams=streams, decider=ORDER, codec=sealing).handle("Order-1", "C")
    stored = next(streams.read("Order-1"))
    assert (stored.data, stored.tags) == (b'{"coupon":"sealed"}', ("coupon:C",))


def test_examples_of_rules_have_the_tags_of_events_too() -> None:
    for codec in (None, TYPED):
        begun = given(ORDER, TYPED.tagged(Placed("B"), "coupon:B"), codec=codec)
        begun.when("C").then(TYPED.tagged(Placed("C"), "coupon:C"), Noted("thanks"))
        begun.when("C").then_state((Placed("B"), Placed("C"), Noted("thanks")))
        begun.when("C").then(Placed("C"), Noted("thanks"))
        with pytest.raises(AssertionError, match="coupon:X"):
            begun.when("C").then(TYPED.tagged(Placed("C"), "coupon:X"), Noted("thanks"))
        timer = later("due", [TYPED.tagged(Placed("D"), "coupon:D")], at=after(days=1))
        given(ORDER, timer, codec=codec).after(days=1).then(Placed("D"))
