"""A load brings the whole of a stream, or what a state lacks; after a conflict it begins with what came back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest

from epochal.aio.stores import AsyncStreams
from epochal.contrib.equinox import memory_tips
from epochal.errors import ConflictError, EventsPruned, InvalidInput, StreamDeleted
from epochal.layout.streams import AnyStreamLayout
from epochal.model.bodies import Claim
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict
from epochal.model.stream_append import StreamAppend
from epochal.model.tokens import Token
from epochal.pages.items import STREAMS
from epochal.plan.ops import QUICKEST
from epochal.store.driver import Driver, Meter
from epochal.store.reading import StreamState
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables
from tests.support.stream_layouts import LAYOUTS

S = "Cart-1"


def opened(layout: AnyStreamLayout, slept: list[float] | None = None) -> Streams:
    """An empty store, whose pauses take no time and are noted."""
    driver = Driver(
        execute=memory_tables().execute,
        meter=Meter(),
        clock=lambda: 0.0,
        sleep=([] if slept is None else slept).append,
        luck=lambda: 1.0,
    )
    return replace(memory_tips(), driver=driver, layout=layout)


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def streams(request: pytest.FixtureRequest) -> Streams:
    return opened(request.param)


def events(first: int, count: int = 1, size: int = 20) -> list[Event]:
    return [Event(type=f"E{first + k}", data=Random(first + k).randbytes(size)) for k in range(count)]


def fill(streams: Streams, count: int, size: int = 20) -> Token:
    expected: ExpectedVersion = NO_STREAM
    for number in range(count):
        expected = streams.append(S, events(number, size=size), expected=expected).token
    assert isinstance(expected, Token)
    return expected


def loaded(found: StreamState | None) -> StreamState:
    assert found is not None
    return found


def refusal(streams: Streams, expected: ExpectedVersion) -> Conflict:
    answer = streams.try_append(S, [Event(type="Late")], expected=expected)
    assert isinstance(answer, Conflict)
    return answer


@pytest.mark.parametrize(("count", "size"), [(1, 20), (7, 300), (40, 1_500)])
def test_a_load_brings_all_events_from_any_index_on(streams: Streams, count: int, size: int) -> None:
    token = fill(streams, count, size)
    everything = tuple(streams.read(S))
    for start in {0, 1, count // 2, count - 1, count}:
        state = loaded(streams.load(S, start=start))
        assert state.events == everything[start:]
        assert (state.version, state.token) == (count, token)
    whole = loaded(streams.load(S, start=0))
    assert isinstance(streams.try_append(S, events(count), expected=whole.token), Appended)


def test_the_whole_of_a_short_stream_on_pages_is_one_request_and_an_append_on_it_another() -> None:
    streams = memory_streams()
    fill(streams, 12, 300)
    state = loaded(streams.load(S, start=0))
    assert (len(state.events), state.capacity.requests, state.capacity.read) == (12, 1, 1.0)
    assert streams.append(S, events(12), expected=state.token).capacity.requests == 1


def test_what_a_state_lacks_comes_with_the_refusal_and_nothing_is_read(streams: Streams) -> None:
    token = fill(streams, 3)
    streams.append(S, events(3, 2), expected=token)
    refused = refusal(streams, token)

    state = loaded(streams.load(S, start=3, refused=refused))

    assert state.capacity.requests == 0
    assert [event.type for event in state.events] == ["E3", "E4"]
    assert (state.version, state.token) == (5, refused.token)
    assert streams.append(S, events(5), expected=state.token).version == 6


@pytest.mark.parametrize("behind", [1, 20, 39])
def test_who_is_far_behind_gets_all_that_was_missed(streams: Streams, behind: int) -> None:
    fill(streams, 40 - behind, 1_500)
    early = loaded(streams.load(S)).token
    for number in range(40 - behind, 40):
        streams.append(S, events(number, size=1_500))
    refused = refusal(streams, early)
    state = loaded(streams.load(S, start=early.version, refused=refused))
    assert [event.type for event in state.events] == [f"E{number}" for number in range(40 - behind, 40)]
    assert loaded(streams.load(S, start=0, refused=refused)).events == tuple(streams.read(S))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_who_is_refused_again_and_again_waits_first_and_then_reads_what_is_new(
    layout: AnyStreamLayout,
) -> None:
    slept: list[float] = []
    streams = opened(layout, slept)
    token = fill(streams, 1)
    waits, requests = [], []
    for number in range(1, 5):
        streams.append(S, events(number))
        refused = refusal(streams, token)
        streams.append(S, events(99))
        state = loaded(streams.load(S, start=token.version, refused=refused))
        waits.append(sum(slept))
        slept.clear()
        requests.append(state.capacity.requests)
        token = state.token
    assert waits == [0, *(times * QUICKEST for times in (32, 48, 32))]
    assert requests == [0, 1, 1, 1]
    assert token.version == 9
    token = streams.append(S, events(9), expected=token).token
    assert token.refused == 0, "the next append begins anew"


def test_several_streams_that_are_refused_together_are_caught_up_each() -> None:
    streams = memory_streams()
    first = streams.append(S, events(0)).token
    streams.append("Cart-2", events(0))
    streams.append(S, events(1))
    answer = streams.try_append_all(
        [
            StreamAppend(stream=S, events=events(2), expected=first),
            StreamAppend(stream="Cart-2", events=events(2), expected=NO_STREAM),
        ]
    )
    assert isinstance(answer, Conflict)
    for name, conflict in answer.streams.items():
        state = loaded(streams.load(name, start=0, refused=conflict))
        assert state.events == tuple(streams.read(name))
        assert (state.token.refused, state.capacity.requests) == (1, 0)
        assert isinstance(streams.try_append(name, events(9), expected=state.token), Appended)


def test_the_error_brings_what_the_answer_does(streams: Streams) -> None:
    token = fill(streams, 1)
    streams.append(S, events(1))
    with pytest.raises(ConflictError) as raised:
        streams.append(S, events(1), expected=token)
    state = loaded(streams.load(S, start=1, refused=raised.value.outcome))
    assert ([event.type for event in state.events], state.capacity.requests) == (["E1"], 0)


def test_a_conflict_of_another_process_is_as_good_as_none(streams: Streams) -> None:
    fill(streams, 2)
    state = loaded(streams.load(S, start=1, refused=Conflict(version=1)))
    assert ([event.type for event in state.events], state.capacity.requests) == (["E1"], 1)


def test_where_there_is_no_stream_there_is_nothing_to_load(streams: Streams) -> None:
    assert streams.load(S, start=0) is None
    refused = refusal(streams, Token(version=0, etag="0" * 32))
    assert streams.load(S, start=0, refused=refused) is None


def test_a_deleted_stream_has_no_events_to_bring(streams: Streams) -> None:
    token = fill(streams, 3)
    streams.delete(S)
    state = loaded(streams.load(S, start=0))
    assert (state.events, state.deleted, state.version) == ((), True, 3)
    with pytest.raises(StreamDeleted) as raised:
        streams.append(S, events(3), expected=token)
    assert loaded(streams.load(S, start=3, refused=raised.value.outcome)).deleted


def test_no_state_is_folded_over_a_hole(streams: Streams) -> None:
    fill(streams, 6)
    streams.prune(S, 4)
    assert [event.index for event in loaded(streams.load(S, start=4)).events] == [4, 5]
    for start in (0, 3):
        with pytest.raises(EventsPruned) as raised:
            streams.load(S, start=start)
        assert (raised.value.needed, raised.value.low_water) == (start, 4)


def test_what_was_pruned_comes_from_the_archive() -> None:
    streams = memory_streams(MemoryTables({"streams": STREAMS, "archive": STREAMS}))
    streams = replace(streams, archive=replace(streams, table="archive"))
    fill(streams, 6)
    streams.archive_and_prune(S, 4)
    assert [event.index for event in loaded(streams.load(S, start=0)).events] == list(range(6))


def test_bodies_in_the_bucket_are_fetched_or_left_as_claims() -> None:
    streams = memory_streams()
    large = Random(1).randbytes(500_000)
    streams.append(S, [Event(type="Large", data=large)])
    streams.append(S, events(1))
    assert loaded(streams.load(S, start=0)).events[0].data == large
    assert isinstance(loaded(streams.load(S, start=0, fetch=False)).events[0].data, Claim)


def test_a_state_of_the_future_or_of_another_stream_is_refused(streams: Streams) -> None:
    token = fill(streams, 2)
    streams.append("Cart-2", events(0))
    with pytest.raises(InvalidInput, match="beyond the end of Cart-1, at version 2"):
        streams.load(S, start=3)
    with pytest.raises(InvalidInput, match="start"):
        streams.load(S, start=-1)
    streams.append(S, events(2))
    refused = refusal(streams, token)
    with pytest.raises(InvalidInput, match="of another stream: Cart-1"):
        streams.load("Cart-2", start=0, refused=refused)
    with pytest.raises(InvalidInput, match="refused"):
        streams.load(S, refused=token)  # type: ignore[arg-type]


def test_an_asynchronous_program_catches_up_likewise() -> None:
    streams = memory_streams()
    awaited = AsyncStreams(streams)

    async def program() -> tuple[int, ...]:
        state = loaded(await awaited.load(S, start=0))
        streams.append(S, events(1))
        refused = await awaited.try_append(S, events(1), expected=state.token)
        assert isinstance(refused, Conflict)
        caught_up = loaded(await awaited.load(S, start=state.version, refused=refused))
        return tuple(event.index for event in (*state.events, *caught_up.events))

    fill(streams, 1)
    assert asyncio.run(program()) == (0, 1)
