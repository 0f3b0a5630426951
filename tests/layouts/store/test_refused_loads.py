"""A load waits for the caller's own refusals, so that programs with plain calls give way; it reads all the same."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from threading import Thread

import pytest

from epochal.aio.stores import AsyncStreams
from epochal.errors import ConflictError
from epochal.layout.streams import AnyStreamLayout
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM, AtVersion
from epochal.model.outcomes import Appended, Conflict
from epochal.model.stream_append import StreamAppend
from epochal.store.answers import REFUSALS
from epochal.store.backing_off import LONGEST_PAUSE, pause_seconds
from epochal.store.driver import Driver, Meter
from epochal.store.reading import StreamState
from epochal.store.refusals import MOST
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams, memory_tables
from tests.support.stream_layouts import LAYOUTS

S = "Cart-1"
EVENT = Event(type="E")


@dataclass
class Time:
    """A clock that only pauses move, and the pauses."""

    now: float = 100.0
    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(round(seconds, 9))


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def streams(request: pytest.FixtureRequest, time: Time) -> Streams:
    return opened(time, request.param)


@pytest.fixture(autouse=True)
def _nothing_is_remembered_of_other_tests() -> None:
    REFUSALS.set(())


def opened(time: Time, layout: AnyStreamLayout | None = None) -> Streams:
    driver = Driver(
        execute=memory_tables().execute,
        meter=Meter(),
        clock=lambda: time.now,
        sleep=time.sleep,
        luck=lambda: 1.0,
    )
    streams = replace(memory_streams(), driver=driver)
    return streams if layout is None else replace(streams, layout=layout)


def loaded(streams: Streams, name: str = S) -> StreamState:
    state = streams.load(name)
    assert state is not None
    return state


def refuse(streams: Streams, state: StreamState) -> Conflict:
    """Let another writer be faster."""
    streams.try_append(state.stream, [EVENT])
    answer = streams.try_append(state.stream, [EVENT], expected=state.token)
    assert isinstance(answer, Conflict)
    return answer


def refused(streams: Streams, times: int) -> None:
    copy_context().run(streams.append, S, [EVENT])
    for _ in range(times):
        state = loaded(streams)
        copy_context().run(streams.append, S, [EVENT])
        with pytest.raises(ConflictError):
            streams.append(S, [EVENT], expected=state.token)


def test_who_is_refused_again_and_again_waits_each_time(streams: Streams, time: Time) -> None:
    refused(streams, 5)
    loaded(streams)
    assert time.pauses == [pause_seconds(number, 0.0, 1.0) for number in (2, 3, 4, 5)]


def test_who_expects_a_version_instead_of_a_token_waits_likewise(streams: Streams, time: Time) -> None:
    for _ in range(4):
        state = streams.load(S)
        copy_context().run(streams.append, S, [EVENT])
        expected = NO_STREAM if state is None else AtVersion(state.version)
        with pytest.raises(ConflictError):
            streams.append(S, [EVENT], expected=expected)
    assert time.pauses == [pause_seconds(number, 0.0, 1.0) for number in (2, 3)]
    loaded(streams)
    assert time.pauses == [pause_seconds(number, 0.0, 1.0) for number in (2, 3, 4)]


def test_a_wait_leaves_half_of_the_time_that_is_left_for_the_load(streams: Streams, time: Time) -> None:
    refused(streams, 2)
    loaded(streams.within(0.02))
    assert time.pauses == [0.01]


def test_each_refusal_is_waited_for_once(streams: Streams, time: Time) -> None:
    refused(streams, 2)
    loaded(streams)
    loaded(streams)
    assert len(time.pauses) == 1


def test_an_append_that_succeeds_ends_the_waiting(streams: Streams, time: Time) -> None:
    refused(streams, 3)
    time.pauses.clear()
    state = loaded(streams)
    assert len(time.pauses) == 1
    outcome = streams.append(S, [EVENT], expected=state.token)
    assert (outcome.token.refused, REFUSALS.get()) == (0, ())
    state = loaded(streams)
    copy_context().run(streams.append, S, [EVENT])
    with pytest.raises(ConflictError):
        streams.append(S, [EVENT], expected=state.token)
    loaded(streams)
    assert len(time.pauses) == 1


def test_a_load_after_refusals_has_what_was_appended_since_them(streams: Streams) -> None:
    for times in (1, 2, 3):
        refused(streams, times)
        latest = copy_context().run(streams.append, S, [Event(type="Latest")])
        state = loaded(streams)
        assert (state.version, state.events[-1].type) == (latest.version, "Latest")
        assert state.capacity.requests == 1


def test_others_do_not_wait(streams: Streams, time: Time) -> None:
    refused(streams, 3)
    time.pauses.clear()
    other = Thread(target=streams.load, args=(S,))
    other.start()
    other.join()
    assert time.pauses == []


def test_neither_another_stream_nor_another_table_is_waited_for(time: Time) -> None:
    streams, elsewhere = opened(time), opened(time)
    refused(streams, 3)
    time.pauses.clear()
    streams.load("Cart-2")
    elsewhere.load(S)
    assert time.pauses == []


def test_time_that_has_passed_counts_and_old_refusals_do_not(time: Time) -> None:
    streams = opened(time)
    refused(streams, 4)
    time.pauses.clear()
    time.now += pause_seconds(4, 0.0, 1.0) / 4
    loaded(streams)
    assert time.pauses == [pytest.approx(pause_seconds(4, 0.0, 1.0) * 3 / 4)]

    refused(streams, 4)
    time.pauses.clear()
    time.now += LONGEST_PAUSE + 0.1
    state = loaded(streams)
    assert (time.pauses, state.token.refused) == ([], 0)


def test_no_pause_is_longer_than_the_refusals_are_remembered(time: Time) -> None:
    streams = opened(time)
    copy_context().run(streams.append, S, [EVENT])
    for _ in range(40):
        state = loaded(streams)
        copy_context().run(streams.append, S, [EVENT])
        with suppress(ConflictError):
            streams.append(S, [EVENT], expected=state.token)
    assert max(time.pauses) <= LONGEST_PAUSE
    assert len(time.pauses) == 38


def test_after_requests_however_slow_no_pause_is_longer_either() -> None:
    assert max(pause_seconds(number, 60.0, 1.0) for number in range(1, 10)) == LONGEST_PAUSE


def test_an_earlier_state_is_loaded_at_once(time: Time) -> None:
    streams = opened(time)
    refused(streams, 3)
    time.pauses.clear()
    streams.load(S, as_of=1)
    assert time.pauses == []


def test_who_names_the_conflict_waits_once(time: Time) -> None:
    streams = opened(time)
    refused(streams, 1)
    conflict = refuse(streams, loaded(streams))
    streams.load(S, refused=conflict)
    streams.load(S)
    assert len(time.pauses) == 1


def test_a_transaction_on_several_streams_counts_for_each_that_refused_it(time: Time) -> None:
    streams = opened(time)
    for name in (S, "Cart-2"):
        copy_context().run(streams.append, name, [EVENT])
    for _ in range(3):
        states = [loaded(streams, name) for name in (S, "Cart-2")]
        copy_context().run(streams.append, S, [EVENT])
        appends = [StreamAppend(stream=each.stream, events=[EVENT], expected=each.token) for each in states]
        with pytest.raises(ConflictError):
            streams.append_all(appends)
    time.pauses.clear()
    loaded(streams, "Cart-2")
    assert time.pauses == []
    loaded(streams, S)
    assert len(time.pauses) == 1


def test_few_streams_are_remembered(time: Time) -> None:
    streams = opened(time)
    for number in range(3 * MOST):
        streams.append(f"Cart-{number}", [EVENT])
        with pytest.raises(ConflictError):
            streams.append(f"Cart-{number}", [EVENT], expected=NO_STREAM)
    assert [each.place[2] for each in REFUSALS.get()] == [
        f"Cart-{number}" for number in range(3 * MOST - 1, 2 * MOST - 1, -1)
    ]


def test_tasks_wait_for_their_own_refusals(time: Time) -> None:
    streams = opened(time)
    awaited = AsyncStreams(streams)

    async def be_refused() -> None:
        for _ in range(3):
            state = await awaited.load(S)
            assert state is not None
            copy_context().run(streams.append, S, [EVENT])
            with pytest.raises(ConflictError):
                await awaited.append(S, [EVENT], expected=state.token)
        assert len(time.pauses) == 1
        await awaited.load(S)
        assert len(time.pauses) == 2

    async def program() -> None:
        await asyncio.create_task(be_refused())
        await awaited.load(S)
        assert len(time.pauses) == 2
        assert isinstance(await awaited.try_append(S, [EVENT]), Appended)

    copy_context().run(streams.append, S, [EVENT])
    asyncio.run(program())
