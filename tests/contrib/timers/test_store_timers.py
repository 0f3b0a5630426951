"""Timers of a store: set, cancelled, listed; for programs that block, and for those that do not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from epochal.aio.stores import AsyncStreams, AsyncTaggedEvents
from epochal.contrib.sekiban import memory_dcb_events
from epochal.contrib.timers.aio import async_timers_of
from epochal.contrib.timers.stores import timers_of
from epochal.errors import Contended, InvalidInput
from epochal.model.bodies import Claim
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM
from epochal.model.stream_names import TIMER_CANCELLED
from epochal.plan.ops import Op, Reply
from epochal.scheduling import after, cancel, later
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.stores import MemoryBodies, memory_deployment, memory_streams

REMINDED = Event(type="Reminded")
STORES: list[Callable[[], Streams]] = [memory_streams, lambda: memory_deployment().tips]
TAGGED: list[Callable[[], TaggedStore]] = [
    lambda: memory_deployment().tagged,
    memory_dcb_events,
]


@pytest.mark.parametrize("opened", STORES)
def test_a_timer_of_a_stream_is_set_listed_and_called_off(opened: Callable[[], Streams]) -> None:
    streams = opened()
    assert timers_of(streams).pending("Loan-17") == ()
    first = timers_of(streams).schedule(
        "Loan-17", "reminder", [REMINDED], at=after(days=14), expected=NO_STREAM
    )
    timers_of(streams).schedule("Loan-17", "fine", [REMINDED], at=after(days=21))
    assert first.version == 1
    assert [timer.name for timer in timers_of(streams).pending("Loan-17")] == ["reminder", "fine"]
    off = timers_of(streams).cancel("Loan-17", "reminder")
    assert off is not None
    assert (off.name, off.setting) == ("reminder", 0)
    assert [timer.name for timer in timers_of(streams).pending("Loan-17")] == ["fine"]


def test_what_is_not_pending_is_not_called_off_and_nothing_is_written() -> None:
    streams = memory_streams()
    assert timers_of(streams).cancel("Loan-17", "reminder") is None
    timers_of(streams).schedule("Loan-17", "reminder", [REMINDED], at=after(days=14))
    (timer,) = timers_of(streams).pending("Loan-17")
    streams.append("Loan-17", timer.firing())
    assert timers_of(streams).cancel("Loan-17", "reminder") is None
    assert streams.load("Loan-17").version == 3
    streams.delete("Loan-17")
    assert timers_of(streams).cancel("Loan-17", "reminder") is None
    with pytest.raises(InvalidInput, match="name"):
        timers_of(streams).cancel("Loan-17", "")


class Meanwhile:
    """Before so many appends that call a timer off, something else is appended."""

    def __init__(self, store: Streams, times: int, events: Callable[[], tuple[Event, ...]]) -> None:
        self.store, self.left, self.events = store, times, events
        self.driver = replace(store.driver, execute=self.execute, sleep=lambda _: None)

    def execute(self, op: Op) -> Reply:
        if TIMER_CANCELLED in repr(op) and self.left:
            self.left -= 1
            self.store.append("Loan-17", self.events())
        return self.store.driver.execute(op)


@pytest.mark.parametrize("times", [1, 3, 9])
def test_a_timer_is_called_off_although_others_write_to_its_stream(times: int) -> None:
    streams = memory_streams()
    timers_of(streams).schedule("Loan-17", "reminder", [REMINDED], at=after(days=14))
    between = Meanwhile(streams, times, lambda: (Event(type="Seen"),))
    assert timers_of(streams.on(between.driver)).cancel("Loan-17", "reminder") is not None
    assert [event.type for event in streams.read("Loan-17")][1:] == ["Seen"] * times + [TIMER_CANCELLED]


def test_a_timer_that_fires_meanwhile_was_not_called_off() -> None:
    streams = memory_streams()
    timers_of(streams).schedule("Loan-17", "reminder", [REMINDED], at=after(days=14))
    between = Meanwhile(streams, 1, timers_of(streams).pending("Loan-17")[0].firing)
    assert timers_of(streams.on(between.driver)).cancel("Loan-17", "reminder") is None
    assert TIMER_CANCELLED not in {event.type for event in streams.read("Loan-17")}


def test_who_is_overtaken_ten_times_gives_up() -> None:
    streams = memory_streams()
    timers_of(streams).schedule("Loan-17", "reminder", [REMINDED], at=after(days=14))
    between = Meanwhile(streams, 10, lambda: (Event(type="Seen"),))
    with pytest.raises(Contended):
        timers_of(streams.on(between.driver)).cancel("Loan-17", "reminder")


def test_a_timer_of_a_pruned_stream_is_called_off_as_long_as_its_setting_is_there() -> None:
    streams = memory_streams()
    streams.append("Loan-17", [Event(type="Lent")] * 3)
    timers_of(streams).schedule("Loan-17", "reminder", [REMINDED], at=after(days=14))
    streams.prune("Loan-17", 2)
    assert [timer.setting for timer in timers_of(streams).pending("Loan-17")] == [3]
    assert timers_of(streams).cancel("Loan-17", "reminder") is not None
    timers_of(streams).schedule("Loan-17", "fine", [REMINDED], at=after(days=14))
    streams.prune("Loan-17", 6)
    assert timers_of(streams).cancel("Loan-17", "fine") is None


@pytest.mark.parametrize("opened", TAGGED)
def test_a_timer_of_tags_is_set_listed_and_called_off(opened: Callable[[], TaggedStore]) -> None:
    tagged = opened()
    timers_of(tagged).schedule(["a:1"], "r", [REMINDED], at=after(days=1))
    timers_of(tagged).schedule(["b:1", "a:1"], "r", [REMINDED], at=after(days=2), idempotency_key="k")
    assert [timer.tags for timer in timers_of(tagged).pending(["a:1"])] == [("a:1",), ("a:1", "b:1")]
    assert [timer.tags for timer in timers_of(tagged).pending(["b:1"])] == [("a:1", "b:1")]
    off = timers_of(tagged).cancel(["a:1"], "r")
    assert off is not None
    assert off.tags == ("a:1",)
    assert [timer.tags for timer in timers_of(tagged).pending(["a:1"])] == [("a:1", "b:1")]
    assert timers_of(tagged).cancel(["a:1"], "r") is None


def test_a_timer_of_tags_is_called_off_although_one_of_more_tags_is_set_meanwhile() -> None:
    tagged = memory_deployment().tagged
    timers_of(tagged).schedule(["a:1"], "r", [REMINDED], at=after(days=1))
    calls = list[Op]()

    def execute(op: Op) -> Reply:
        if TIMER_CANCELLED in repr(op) and not calls:
            calls.append(op)
            timers_of(tagged).schedule(["a:1", "b:1"], "r", [REMINDED], at=after(days=1))
        return tagged.driver.execute(op)

    beside = replace(tagged, driver=replace(tagged.driver, execute=execute))
    off = timers_of(beside).cancel(["a:1"], "r")
    assert off is not None
    assert len(calls) == 1
    assert [timer.tags for timer in timers_of(tagged).pending(["a:1"])] == [("a:1", "b:1")]


def test_a_timer_of_tags_that_fires_meanwhile_was_not_called_off() -> None:
    tagged = memory_deployment().tagged
    timers_of(tagged).schedule(["a:1"], "r", [replace(REMINDED, tags=("b:1",))], at=after(days=1))
    (timer,) = timers_of(tagged).pending(["a:1"])
    calls = list[Op]()

    def execute(op: Op) -> Reply:
        if TIMER_CANCELLED in repr(op) and not calls:
            calls.append(op)
            tagged.append(timer.firing(), fail_if=timer.query, after=tagged.read(timer.query).position)
        return tagged.driver.execute(op)

    beside = replace(tagged, driver=replace(tagged.driver, execute=execute))
    assert timers_of(beside).cancel(["a:1"], "r") is None
    assert TIMER_CANCELLED not in {event.type for event in tagged.read(timer.query).events}


@pytest.mark.parametrize("tags", ["loan", None, 5])
def test_what_is_no_list_of_tags_is_refused_and_a_text_is_not_taken_for_its_letters(tags: Any) -> None:
    timers = timers_of(memory_deployment().tagged)
    for asked in (
        lambda: timers.schedule(tags, "fine", [REMINDED], at=after(days=1)),
        lambda: timers.cancel(tags, "fine"),
        lambda: timers.pending(tags),
        lambda: cancel("fine", tags=tags),
    ):
        with pytest.raises(InvalidInput, match=r"^tags: must be a list of names"):
            asked()


def test_timers_of_streams_are_not_listed_by_their_tags() -> None:
    deployment = memory_deployment()
    deployment.streams.append("Loan-17", [later("r", [REMINDED], at=after(days=1), tags=["a:1"])])
    assert timers_of(deployment.tagged).pending(["a:1"]) == ()
    assert timers_of(deployment.tagged).cancel(["a:1"], "r") is None
    assert len(timers_of(deployment.streams).pending("Loan-17")) == 1


def test_timers_are_awaited_where_a_program_does_not_block() -> None:
    deployment = memory_deployment()

    async def program(streams: AsyncStreams, tagged: AsyncTaggedEvents) -> list[object]:
        await async_timers_of(streams).schedule("Loan-17", "reminder", [REMINDED], at=after(days=14))
        await async_timers_of(tagged).schedule(["a:1"], "r", [REMINDED], at=after(days=14))
        found: list[object] = [
            len(await async_timers_of(streams).pending("Loan-17")),
            len(await async_timers_of(tagged).pending(["a:1"])),
        ]
        found += [
            await async_timers_of(streams).cancel("Loan-17", "reminder"),
            await async_timers_of(tagged).cancel(["a:1"], "r"),
        ]
        return [
            *found,
            await async_timers_of(streams).pending("Loan-17"),
            await async_timers_of(tagged).pending(["a:1"]),
        ]

    assert isinstance(deployment.tagged, TaggedEvents)
    one, two, off, off_too, *left = asyncio.run(
        program(AsyncStreams(deployment.streams), AsyncTaggedEvents(deployment.tagged))
    )
    assert (one, two, left) == (1, 1, [(), ()])
    assert off is not None
    assert off_too is not None


# What a timer costs (G): at most one write unit more than the append that sets it.


@pytest.mark.parametrize("size", [10, 400, 800])
def test_setting_a_timer_costs_at_most_one_write_unit_more_than_the_append_alone(size: int) -> None:
    lent = Event(type="Lent", data=b'"%s"' % (b"x" * size))
    alone, timed = memory_streams(), memory_streams()
    plain = alone.append("Loan-17", [lent], expected=NO_STREAM).capacity
    both = timed.append(
        "Loan-17", [lent, later("r", [REMINDED], at=after(days=14))], expected=NO_STREAM
    ).capacity
    assert both.write <= plain.write + 1
    if size == 10:
        assert both.write == plain.write


class Counting(MemoryBodies):
    """A bucket that counts what is fetched."""

    def __init__(self, bodies: Any) -> None:
        self.objects, self.got = bodies.objects, 0

    def get(self, claim: Claim) -> bytes:
        self.got += 1
        return super().get(claim)


def test_a_setting_whose_body_is_in_the_bucket_is_found_and_bodies_of_others_are_left_there() -> None:
    streams = memory_streams()
    large = Event(type="Lent", data=Random(1).randbytes(450_000))
    streams.append("Loan-17", [large])
    timers_of(streams).schedule(
        "Loan-17", "reminder", [Event(type="Reminded", data=Random(1).randbytes(450_000))], at=after(days=14)
    )
    asked = Counting(streams.codec.bodies)
    counted = replace(streams, codec=replace(streams.codec, bodies=asked))
    (timer,) = timers_of(counted).pending("Loan-17")
    assert len(timer.events[0].content) == 450_000
    assert asked.got == 1
    streams.append("Loan-17", timer.firing())
    assert [event.type for event in streams.read("Loan-17")][2:] == ["Reminded", "$timer-fired"]


def test_timers_are_of_streams_or_tagged_events_and_of_nothing_else() -> None:
    with pytest.raises(InvalidInput, match="store: must be streams or tagged events, not AsyncStreams"):
        timers_of(AsyncStreams(memory_streams()))  # type: ignore[call-overload]
