"""A stream as it was at a version or at a moment: its events up to there, and what else is from then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from epochal.aio.stores import AsyncStreams
from epochal.contrib.equinox import memory_tips
from epochal.errors import ConflictError, EventsPruned, InvalidInput
from epochal.model.events import Event, Unfold
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams

S = "Cart-1"
HOURS = [f"2026-01-05T{hour:02}:00:00Z" for hour in range(24)]


def filled(streams: Streams, events: int = 24, size: int = 0) -> Streams:
    for number in range(events):
        body = Random(number).randbytes(size)
        streams.append(S, [Event(type=f"E{number}", data=body, timestamp=HOURS[number % 24])])
    return streams


def numbers(streams: Streams, **options: object) -> list[int]:
    state = streams.load(S, **options)  # type: ignore[arg-type]
    assert state is not None
    assert all(event.type == f"E{event.index}" for event in state.events)
    return [event.index for event in state.events]


@pytest.mark.parametrize("make", [memory_streams, memory_tips])
def test_at_every_version_it_has_the_events_before_that_and_no_others(make: Callable[[], Streams]) -> None:
    streams = filled(make(), size=700)
    for version in range(25):
        assert numbers(streams, as_of=version) == list(range(version))
        assert numbers(streams, as_of=version, start=version // 2) == list(range(version // 2, version))


def test_at_a_moment_it_ends_with_the_last_event_that_had_happened() -> None:
    streams = filled(memory_streams())
    assert [len(numbers(streams, as_of=hour)) for hour in HOURS] == list(range(1, 25))
    assert numbers(streams, as_of="2026-01-04T23:59:59Z") == []
    assert len(numbers(streams, as_of="2026-01-05T03:30:00Z")) == 4
    assert len(numbers(streams, as_of="2027-01-01T00:00:00Z")) == 24


def test_it_has_the_unfolds_that_are_from_then_and_a_token_that_is_in_conflict_since() -> None:
    streams = memory_streams()
    streams.append(S, [Event(type="E0")], unfolds=[Unfold(type="U")])
    streams.append(S, [Event(type="E1")])
    streams.append(S, [Event(type="E2")], unfolds=[Unfold(type="V")])
    streams.append(S, [Event(type="E3")])

    states = [streams.load(S, as_of=version) for version in range(5)]

    unfolds = [[each.type for each in state.unfolds] for state in states if state is not None]
    assert unfolds == [[], [], [], ["V"], ["V"]]
    latest = streams.load(S)
    assert latest is not None
    assert [state.token == latest.token for state in states if state is not None] == [*[False] * 4, True]
    for state in states[:-1]:
        assert state is not None
        with pytest.raises(ConflictError):
            streams.append(S, [Event(type="E4")], expected=state.token)


def test_what_is_beyond_the_end_or_no_version_is_refused() -> None:
    streams = filled(memory_streams(), 3)
    for as_of, rule in (
        (4, "is beyond the end of Cart-1"),
        (-1, "at least 0"),
        ("3", "ISO 8601"),
        (True, "number"),
    ):
        with pytest.raises(InvalidInput, match=f"as_of: .*{rule}"):
            streams.load(S, as_of=as_of)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="start: is beyond the end of Cart-1, at version 1"):
        streams.load(S, start=2, as_of=1)
    assert streams.load("Cart-2", as_of=0) is None


def test_what_is_pruned_of_it_is_told_and_what_is_above_is_loaded() -> None:
    streams = filled(memory_streams(), 10)
    streams.prune(S, 5)
    with pytest.raises(EventsPruned) as gone:
        streams.load(S, as_of=7)
    assert (gone.value.needed, gone.value.low_water) == (0, 5)
    with pytest.raises(EventsPruned) as earlier:
        streams.load(S, as_of=3)
    assert (earlier.value.needed, earlier.value.low_water) == (0, 5)
    assert numbers(streams, as_of=7, start=5) == [5, 6]


def test_a_stream_that_was_deleted_says_so() -> None:
    streams = filled(memory_streams(), 3)
    streams.delete(S)
    state = streams.load(S, as_of=2)
    assert state is not None
    assert (state.deleted, state.events) == (True, ())


def test_it_takes_no_request_more_than_a_load_of_all_and_reads_no_more_than_it_needs() -> None:
    streams = filled(memory_streams(), 200, size=2_000)
    costs = [streams.load(S, start=0), streams.load(S, as_of=200), streams.load(S, as_of=2)]
    whole, last, first = (each.capacity for each in costs if each is not None)
    assert last == whole
    assert first.read < whole.read / 2


def test_it_is_awaited_too() -> None:
    streams = filled(memory_streams(), 3)

    async def loaded() -> int:
        state = await AsyncStreams(streams).load(S, as_of=2)
        return 0 if state is None else state.version

    assert asyncio.run(loaded()) == 2
