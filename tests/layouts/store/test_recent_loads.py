"""A load brings the newest events that come in one request: all those of a short stream, and never with a gap."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from epochal.errors import InvalidInput
from epochal.model.bodies import Claim
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.tokens import Token
from epochal.pages.items import STREAMS, Page, page_key, read_page
from epochal.pages.reading import RECENT
from epochal.plan.ops import Delete, Op, Query, Reply, Set, Update
from epochal.plan.values import binary
from epochal.store.driver import Driver, Meter
from epochal.store.reading import StreamState
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams
from tests.support.stream_layouts import LAYOUTS

S = "Cart-1"


def event(number: int, size: int = 400) -> Event:
    return Event(type=f"E{number}", data=Random(number).randbytes(size))


def fill(streams: Streams, count: int, size: int = 400) -> Token:
    expected: ExpectedVersion = NO_STREAM
    for number in range(count):
        expected = streams.append(S, [event(number, size)], expected=expected).token
    assert isinstance(expected, Token)
    return expected


def loaded(streams: Streams, **options: bool) -> StreamState:
    state = streams.load(S, **options)  # type: ignore[arg-type]
    assert state is not None
    return state


def pages(tables: MemoryTables) -> list[Page]:
    return sorted(map(read_page, tables.items("streams")), key=lambda page: page.index)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("count", range(1, 24))
@pytest.mark.parametrize("size", [20, 400, 3_000])
def test_the_events_of_a_load_are_the_newest_ones_in_order_and_without_gaps(
    layout: object, count: int, size: int
) -> None:
    streams = replace(memory_streams(), layout=layout)  # type: ignore[arg-type]
    token = fill(streams, count, size)
    everything = tuple(streams.read(S))

    state = loaded(streams)

    assert state.events == everything[count - len(state.events) :]
    assert (state.version, state.token.etag, state.capacity.requests) == (count, token.etag, 1)
    assert len(state.events) >= state.token.events


def test_a_short_stream_comes_whole_for_the_price_of_its_last_page() -> None:
    streams = memory_streams(tables := MemoryTables({"streams": STREAMS}))
    fill(streams, 8)
    assert len(pages(tables)) == RECENT

    state = loaded(streams)

    assert (len(state.events), state.capacity.requests, state.capacity.read) == (8, 1, 1.0)
    assert streams.append(S, [event(8)], expected=state.token).capacity.requests == 1


def test_a_long_stream_costs_no_more_requests_or_units_than_a_short_one() -> None:
    streams = memory_streams(tables := MemoryTables({"streams": STREAMS}))
    fill(streams, 60)

    state = loaded(streams)

    assert len(state.events) == sum(page.count for page in pages(tables)[-RECENT:])
    assert (state.capacity.requests, state.capacity.read) == (1, 1.0)


def test_a_load_without_events_reads_one_page_alone() -> None:
    streams = memory_streams()
    fill(streams, 10, 9_000)
    streams.append(S, [event(10)], unfolds=[Unfold(type="State", data=b"x")])

    state = loaded(streams, events=False)

    assert (state.events, state.version, state.unfolds[0].data) == ((), 11, b"x")
    assert state.capacity.read < loaded(streams).capacity.read
    with pytest.raises(InvalidInput, match="events"):
        streams.load(S, start=0, events=False)


@pytest.mark.parametrize("before", range(1, 12))
def test_no_event_below_a_prune_is_brought(before: int) -> None:
    streams = memory_streams()
    fill(streams, 12)
    streams.prune(S, before)

    state = loaded(streams)

    assert [each.index for each in state.events][-1] == 11
    assert [each.index for each in state.events] == [*range(state.events[0].index, 12)]
    assert state.events[0].index >= before


def test_a_deleted_stream_brings_none() -> None:
    streams = memory_streams()
    fill(streams, 12)
    streams.delete(S)
    assert (loaded(streams).events, loaded(streams).deleted) == ((), True)


def test_a_stream_that_goes_on_after_it_was_deleted_brings_what_came_since() -> None:
    streams = memory_streams()
    fill(streams, 12)
    streams.delete(S, leave_open=True)
    for number in range(12, 15):
        streams.append(S, [event(number)])
    assert [each.index for each in loaded(streams).events] == [12, 13, 14]


def test_an_earlier_page_with_a_body_in_the_bucket_is_left_out_for_that_would_take_a_request() -> None:
    streams = memory_streams(tables := MemoryTables({"streams": STREAMS}))
    fill(streams, 4)
    streams.append(S, [Event(type="Large", data=Random(1).randbytes(500_000))])
    while len(pages(tables)) < RECENT or pages(tables)[-1].index <= 4:
        streams.append(S, [event(9)])
    for fetch in (True, False):
        state = streams.load(S, fetch=fetch)
        assert state is not None
        assert not any(isinstance(each.data, Claim) for each in state.events)
        assert state.events[0].index > 4


def test_an_earlier_page_that_cannot_be_read_is_left_out() -> None:
    streams = memory_streams(tables := MemoryTables({"streams": STREAMS}))
    fill(streams, 8)
    broken = pages(tables)[-2]
    key = {"p": {"S": S}, "i": {"N": str(broken.index)}}
    tables.execute(Update(table="streams", key=key, sets=(Set("w", binary(b"short")),), removes=()))

    assert [each.index for each in loaded(streams).events] == [*range(broken.version, 8)]


def test_an_earlier_page_that_is_missing_ends_what_is_brought() -> None:
    streams = memory_streams(tables := MemoryTables({"streams": STREAMS}))
    fill(streams, 8)
    missing = pages(tables)[-2]
    tables.execute(Delete(table="streams", key=page_key(S, missing.index)))

    assert [each.index for each in loaded(streams).events] == [*range(missing.version, 8)]


def test_metadata_in_the_bucket_is_not_brought_either() -> None:
    streams = memory_streams(tables := MemoryTables({"streams": STREAMS}))
    streams.append(S, [Event(type="Large", meta=Random(1).randbytes(500_000))])
    while len(pages(tables)) == 1:
        streams.append(S, [event(1)])

    state = loaded(streams)

    assert not any(isinstance(each.meta, Claim) for each in state.events)
    assert (state.events[0].index, state.capacity.requests) == (pages(tables)[-1].index, 1)


def test_large_events_of_earlier_pages_are_not_opened() -> None:
    streams = memory_streams()
    streams.append(S, [Event(type="E0", data=b"x" * 300_000)])
    streams.append(S, [event(1, 3_000)])
    streams.append(S, [event(2)])
    state = loaded(streams)
    assert state.events[0].index > 0
    assert state.events == tuple(streams.read(S))[state.events[0].index :]


def test_events_of_one_append_come_together_or_not_at_all() -> None:
    streams = memory_streams()
    for first in range(0, 100, 10):
        streams.append(S, [event(number, 60) for number in range(first, first + 10)])
    state = loaded(streams)
    assert state.events == tuple(streams.read(S))[state.events[0].index :]
    assert state.events[0].index % 10 == 0
    assert len(state.events) > state.token.events


def test_a_page_that_is_begun_during_the_load_makes_no_gap() -> None:
    tables = MemoryTables({"streams": STREAMS})
    streams = memory_streams(tables)
    fill(streams, 6)

    def meanwhile(op: Op) -> Reply:
        reply = tables.execute(op)
        if isinstance(op, Query):
            streams.append(S, [event(9, 3_000)])
        return reply

    state = loaded(replace(streams, driver=Driver(execute=meanwhile, meter=Meter())))
    assert [each.index for each in state.events] == [*range(6)]
    assert state.version == 6


def test_what_a_state_lacks_comes_in_the_same_request_where_it_is_recent() -> None:
    streams = memory_streams()
    fill(streams, 12)
    state = streams.load(S, start=7)
    assert state is not None
    assert [each.index for each in state.events] == [*range(7, 12)]
    assert state.capacity.requests == 1
