"""What is a little above a kilobyte is compressed further, where that saves a write unit; and only there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.corpus import body
from epochal.codec.bodies import BROTLI, DIRECT, LATE_MOST, Encoded, decode, denser, encode, may_gain
from epochal.layout.streams import JoinedWriters
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.tags import Query, QueryItem
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams, memory_tables, memory_tagged_events

S = "Flight-1"
SIZES = range(2_600, 3_400, 80)
"""Bytes of JSON, of which brotli makes 950 to 1,200."""


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of what was compressed further."""
    found: list[int] = []

    def noted(encoded: Encoded) -> Encoded:
        smaller = denser(encoded)
        if smaller is not encoded:
            found.append(len(encoded.data))
        return smaller

    monkeypatch.setattr("epochal.pages.batch.denser", noted)
    return found


def appends(size: int) -> Iterator[tuple[list[Event], list[Unfold] | None]]:
    """Of one event, of several, and with a snapshot."""
    dice = random.Random(size)
    for number in range(12):
        count = 1 + number % 3
        events = [Event(type="Logged", data=body(dice, size // count, "json")) for _ in range(count)]
        yield events, [Unfold(type="State", data=body(dice, 500, "json"))] if number > 6 else None


def played(size: int) -> tuple[Streams, list[float]]:
    """A stream of these appends, and what each cost."""
    streams = memory_streams()
    expected: ExpectedVersion = NO_STREAM
    units: list[float] = []
    for events, unfolds in appends(size):
        done = streams.append(S, events, unfolds=unfolds, expected=expected)
        expected = done.token
        units.append(done.capacity.write)
    return streams, units


@pytest.mark.slow
def test_it_saves_units_and_what_was_appended_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = 0.0
    for size in SIZES:
        streams, units = played(size)
        with monkeypatch.context() as patched:
            patched.setattr("epochal.pages.batch.may_gain", lambda _: 0)
            _, before = played(size)
        assert sum(units) <= sum(before)
        saved += sum(before) - sum(units)
        written = [event for events, _ in appends(size) for event in events]
        assert [event.data for event in streams.read(S)] == [event.data for event in written]
    assert saved >= 6


def test_what_costs_a_unit_at_most_is_not_compressed_again(tried: list[int]) -> None:
    streams, dice = memory_streams(), random.Random(1)
    for number in range(60):
        streams.append(f"Flight-{number}", [Event(type="Logged", data=body(dice, 900, "json"))])
    assert tried == []


def test_what_no_compression_shortens_is_not_compressed_again(tried: list[int]) -> None:
    streams, dice = memory_streams(), random.Random(1)
    for size in range(900, 1_000, 10):
        streams.append(f"Flight-{size}", [Event(type="Logged", data=dice.randbytes(size))])
    assert tried == []


def test_what_several_tags_get_gains_likewise(tried: list[int]) -> None:
    store = memory_tagged_events()
    for size in SIZES:
        data = body(random.Random(size), size, "json")
        (event,) = store.append([Event(type="Logged", data=data, tags=(f"a:{size}", "b:1"))]).events
        of_both = Query(items=(QueryItem(tags=frozenset(event.tags)),))
        assert [each.data for each in store.read(of_both).events] == [data]
    assert tried


def test_appends_that_go_out_together_gain_likewise(tried: list[int]) -> None:
    streams = memory_streams()
    layout = streams.layout
    assert isinstance(layout, JoinedWriters)
    dice = random.Random(1)
    data = [body(dice, 770, "json") for _ in range(5)]
    batches = [streams.batch(S, [Event(type="Logged", data=each)]) for each in data]
    streams.driver.run(layout.append_together(streams.table, batches, None))
    assert tried
    assert [event.data for event in streams.read(S)] == data


def test_a_lost_answer_of_such_a_write_is_found(tried: list[int]) -> None:
    tables, lost = memory_tables(), [True]

    def losing(op: Op) -> Reply:
        reply = tables.execute(op)
        if isinstance(op, Put) and lost:
            lost.clear()
            raise Lost("gone")
        return reply

    size = next(
        size for size in SIZES if memory_streams().append(S, [logged(size)]).capacity.write == 1 and tried
    )
    tried.clear()
    streams = replace(
        memory_streams(tables), driver=Driver(execute=losing, meter=Meter(), sleep=lambda _: None)
    )
    assert streams.append(S, [logged(size)], expected=NO_STREAM).version == 1
    assert tried
    assert not lost
    assert [event.data for event in streams.read(S)] == [logged(size).data]


def logged(size: int) -> Event:
    return Event(type="Logged", data=body(random.Random(size), size, "json"))


@given(st.binary(max_size=3_000), st.integers(1, 3))
def test_a_denser_body_is_the_same_body_in_no_more_bytes(data: bytes, times: int) -> None:
    encoded = encode(data * times)
    found = denser(encoded)
    assert decode(found) == data * times
    assert len(found.data) <= len(encoded.data)


def test_only_what_brotli_has_made_small_is_made_smaller() -> None:
    text = body(random.Random(1), 12_000, "json")
    direct, large = Encoded(DIRECT, text[:100]), Encoded(BROTLI, brotli.compress(text, quality=5))
    assert len(large.data) > LATE_MOST
    for each in (direct, large):
        assert may_gain(each) == 0
        assert denser(each) is each
