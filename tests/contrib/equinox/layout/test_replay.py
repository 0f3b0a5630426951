"""G4: replay is complete and in order, from any index, both ways, whatever the stream is made of."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.calving import ByCost, Calving, Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.index.checkpoints import tip_key
from epochal.model.events import Event, Recorded
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended
from epochal.plan.ops import Execute, Get, Op, Query, Reply
from epochal.store.reading import Direction
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from tests.contrib.equinox.layout.items import STREAM, TABLE, calf, numbered, store, tip

STREAMS: dict[str, Calving] = {
    "calves of one event": Fixed(max_events=1, mode="two-step"),
    "calves of three": Fixed(max_events=3, mode="transactional"),
    "by cost": ByCost(),
    "all in the Tip": Fixed(max_bytes=300_000),
}
EVENTS = 25


def written(calving: Calving, events: int = EVENTS, size: int = 300) -> Streams:
    streams, dice = replace(memory_tips(), layout=Tips(calving=calving)), random.Random(1)
    expected: ExpectedVersion = NO_STREAM
    for index in range(events):
        outcome = streams.append(
            STREAM, [Event(type=f"E{index}", data=dice.randbytes(size))], expected=expected
        )
        assert isinstance(outcome, Appended)
        expected = outcome.token
    return streams


def indices(events: list[Recorded]) -> list[int]:
    assert all(event.type == f"E{event.index}" for event in events)
    return [event.index for event in events]


@pytest.mark.slow
@pytest.mark.parametrize("calving", STREAMS.values(), ids=STREAMS)
def test_a_read_from_every_index_with_every_limit_is_what_was_written(calving: Calving) -> None:
    streams = written(calving)
    everything = list(range(EVENTS))
    for start in range(EVENTS + 2):
        for limit in (None, 1, 2, 7, EVENTS, 1000):
            forward = streams.read(STREAM, start=start, limit=limit)
            backward = streams.read(STREAM, start=start, limit=limit, direction="backward")
            assert indices(list(forward)) == everything[start:][:limit]
            assert indices(list(backward)) == everything[: start + 1][::-1][:limit]


@pytest.mark.slow
@pytest.mark.parametrize("calving", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("limit", [1, 3, 10, 100])
def test_pages_say_where_they_stopped_and_join_to_the_whole(
    calving: Calving, direction: Direction, limit: int
) -> None:
    streams = written(calving)
    found: list[int] = []
    at: int | None = None
    while True:
        page = streams.page(STREAM, start=at, limit=limit, direction=direction)
        assert len(page.events) <= limit
        assert (page.version, page.low_water, page.exists) == (EVENTS, 0, True)
        found += indices(list(page.events))
        at = page.next
        if at is None:
            break
    assert found == list(range(EVENTS))[:: 1 if direction == "forward" else -1]


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_page_ends_at_its_size_but_has_at_least_one_event(direction: Direction) -> None:
    streams = written(ByCost(), size=1000)

    small = streams.page(STREAM, max_bytes=10, direction=direction)
    five = streams.page(STREAM, max_bytes=6_000, direction=direction)

    assert len(small.events) == 1
    assert len(five.events) == 5
    assert small.next == (1 if direction == "forward" else EVENTS - 2)


def test_a_page_of_what_does_not_exist_says_so() -> None:
    page = memory_tips().page("Nothing-1")

    assert (page.events, page.next, page.version, page.exists) == ((), None, 0, False)
    assert list(memory_tips().read("Nothing-1")) == []
    assert memory_tips().load("Nothing-1") is None


@pytest.mark.parametrize(
    "calving",
    [ByCost(), pytest.param(Fixed(max_events=1, mode="two-step"), marks=pytest.mark.proof)],
    ids=["by cost", "one each"],
)
@pytest.mark.slow
def test_more_than_ten_thousand_events_and_a_megabyte_replay_completely(calving: Calving) -> None:
    events, streams = 10_500, replace(memory_tips(), layout=Tips(calving=calving))
    for first in range(0, events, 50):
        streams.append(
            STREAM, [Event(type=f"E{index}", data=b"%0100d" % index) for index in range(first, first + 50)]
        )

    forward = list(streams.read(STREAM))
    backward = list(streams.read(STREAM, direction="backward"))

    assert indices(forward) == list(range(events))
    assert all(event.data == b"%0100d" % event.index for event in forward)
    assert backward == forward[::-1]
    assert sum(len(event.data) for event in forward) > 1024 * 1024


def counted(tables: MemoryTables) -> tuple[Streams, list[Op]]:
    ops: list[Op] = []
    streams = memory_tips(tables)

    def perform(op: Op) -> Reply:
        ops.append(op)
        return tables.execute(op)

    return replace(streams, driver=replace(streams.driver, execute=perform)), ops


def test_a_read_takes_the_tip_first_and_consistently_and_so_all_that_follows() -> None:
    tables = memory_tables()
    store(tables, tip(8, numbered(6, 8)), calf(0, numbered(0, 3)), calf(3, numbered(3, 6)))
    streams, ops = counted(tables)

    assert [event.data for event in streams.read(STREAM)] == [b"%d" % index for index in range(8)]

    assert ops[0] == Get(table=TABLE, key=tip_key(STREAM))
    assert [type(op) for op in ops[1:]] == [Query]
    assert all(op.consistent for op in ops if isinstance(op, Get | Query))


def test_events_of_the_tip_need_no_further_request() -> None:
    tables = memory_tables()
    store(tables, tip(8, numbered(6, 8)), calf(0, numbered(0, 6)))
    streams, ops = counted(tables)

    assert [event.index for event in streams.read(STREAM, start=6)] == [6, 7]
    assert [event.index for event in streams.read(STREAM, limit=2, direction="backward")] == [7, 6]

    assert [type(op) for op in ops] == [Get, Get]


def test_a_page_asks_for_no_more_calves_than_it_can_use() -> None:
    tables = memory_tables()
    store(
        tables, tip(100, numbered(99, 100)), *(calf(index, numbered(index, index + 1)) for index in range(99))
    )
    streams, ops = counted(tables)

    streams.page(STREAM, start=0, limit=5)

    (query,) = [op for op in ops if isinstance(op, Query)]
    assert query.limit == 5


OVERLAPS = {
    "calf and Tip, after a crash between the steps": (
        tip(6, numbered(2, 6)),
        calf(0, numbered(0, 2)),
        calf(2, numbered(2, 6)),
    ),
    "a part calved by a crashed writer": (tip(6, numbered(0, 6)), calf(0, numbered(0, 4))),
    "parts": (tip(6, numbered(4, 6)), calf(0, numbered(0, 3)), calf(3, numbered(3, 4))),
}


@pytest.mark.parametrize("items", OVERLAPS.values(), ids=OVERLAPS)
def test_calves_that_overlap_the_tip_are_dropped_by_index(items: tuple[dict[str, object], ...]) -> None:
    tables = memory_tables()
    store(tables, *items)
    streams = memory_tips(tables)
    for start in range(7):
        assert [int(event.data) for event in streams.read(STREAM, start=start)] == list(range(start, 6))
    assert [int(event.data) for event in streams.read(STREAM, direction="backward")] == [5, 4, 3, 2, 1, 0]


CUT = (
    # [0, 3) by a writer that crashed; the Tip was pruned to 2 and calved as [2, 6); [3, 4) by a slow writer.
    tip(8, numbered(6, 8), l=tip(2)["n"]),
    calf(0, numbered(0, 3)),
    calf(2, numbered(2, 6)),
    calf(3, numbered(3, 4)),
)


@pytest.mark.parametrize("start", range(2, 9))
def test_calves_that_overlap_each_other_hide_nothing(start: int) -> None:
    """A prune that cuts a Tip gives it a base inside calves of before."""
    tables = memory_tables()
    store(tables, *CUT)
    streams = memory_tips(tables)

    assert [int(event.data) for event in streams.read(STREAM, start=start)] == list(range(start, 8))
    assert [int(event.data) for event in streams.read(STREAM, start=start, direction="backward")] == list(
        range(min(start, 7), 1, -1)
    )
    assert [int(event.data) for event in streams.page(STREAM, start=start, limit=1).events] == (
        [start] if start < 8 else []
    )


def interrupted(tables: MemoryTables, after: int, act: object) -> Execute:
    left = after

    def perform(op: Op) -> Reply:
        nonlocal left
        reply = tables.execute(op)
        left -= 1
        if left == 0:
            act()  # type: ignore[operator]
        return reply

    return perform


@pytest.mark.parametrize("after", range(1, 6))
@pytest.mark.parametrize("before", [2, 3, 5, 8, 9])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_prune_between_two_pages_leaves_a_read_in_order_and_complete_above_it(
    direction: Direction, before: int, after: int
) -> None:
    tables = memory_tables()
    store(
        tables, tip(9, numbered(8, 9)), *(calf(index, numbered(index, index + 2)) for index in range(0, 8, 2))
    )
    streams = memory_tips(tables)
    execute = interrupted(tables, after, lambda: memory_tips(tables).prune(STREAM, before))
    reading = replace(streams, driver=replace(streams.driver, execute=execute))

    found: list[int] = []
    at: int | None = None
    while True:
        page = reading.page(STREAM, start=at, limit=2, direction=direction)
        found += [event.index for event in page.events]
        at = page.next
        if at is None or not page.events:
            break

    ordered = found if direction == "forward" else found[::-1]
    assert ordered == sorted(set(found))
    assert [index for index in ordered if index >= before] == list(range(before, 9))
