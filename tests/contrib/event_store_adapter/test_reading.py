from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.contrib.event_store_adapter.event_pages import page, walk
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent, Lock
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended
from epochal.contrib.event_store_adapter.reading import last_number
from epochal.errors import CorruptData, InvalidInput
from epochal.plan.ops import Delete, Items, Op, Query, Reply, Together, TransactGet
from epochal.plan.values import number
from epochal.store.driver import Driver
from tests.contrib.event_store_adapter.world import ALICE, World, event, numbers, site
from tests.support.examples import examples


def filled(world: World, count: int) -> Lock:
    """An aggregate of `count` events, its snapshot at the first."""
    store = world.store()
    answer = store.append(ALICE, [event(0)], snapshot=b'{"n":0}')
    written = 1
    while written < count:
        assert isinstance(answer, AggregateAppended)
        some = range(written, min(count, written + 90))
        answer = store.append(ALICE, [event(n) for n in some], expected=answer.lock)
        written += len(some)
    assert isinstance(answer, AggregateAppended)
    return answer.lock


def test_a_replay_is_the_snapshot_and_every_event_after_it() -> None:
    world = World()
    lock = filled(world, 30)
    world.store().append(ALICE, [event(30)], snapshot=b'{"n":30}', expected=lock)
    world.store().append(ALICE, [event(31), event(32)])
    replay = world.store().replay(ALICE)
    assert replay is not None
    assert (replay.snapshot.data, replay.snapshot.seq_nr) == (b'{"n":30}', 31)
    assert [each.seq_nr for each in replay.events] == [32, 33]
    assert replay.snapshot.lock == Lock(version=4, seq_nr=33)


def test_a_replay_takes_two_requests_and_one_when_nothing_follows() -> None:
    world = World()
    lock = filled(world, 60)
    before = world.meter.requests
    world.store().replay(ALICE)
    assert world.meter.requests == before + 2
    world.store().append(ALICE, [event(60)], snapshot=b"{}", expected=lock)
    before = world.meter.requests
    world.store().replay(ALICE)
    assert world.meter.requests == before + 1


@pytest.mark.parametrize("count", [1, 9, 10, 11, 99, 100, 101, 102, 250, 5000])
@pytest.mark.slow
def test_every_event_comes_back_in_order_however_many(count: int) -> None:
    world = World()
    filled(world, count)
    assert numbers(world.store()) == list(range(count))
    assert numbers(replace(world.store(), via="index")) == list(range(count))


@examples(40)
@given(after=st.integers(0, 140), limit=st.none() | st.integers(1, 140))
def test_events_after_a_number_with_a_limit_are_that_slice(after: int, limit: int | None) -> None:
    found = SHARED.store().events_after(ALICE, after, limit=limit)
    wanted = list(range(after + 1, 131))
    assert [each.seq_nr for each in found] == (wanted if limit is None else wanted[:limit])


SHARED = World()
filled(SHARED, 130)


def test_a_limited_read_of_a_long_aggregate_reads_no_more_than_it_returns() -> None:
    world = World()
    filled(world, 1000)
    before = world.meter.units.read
    assert len(world.store().events_after(ALICE, limit=150)) == 150
    assert world.meter.units.read - before <= 151


def test_an_aggregate_whose_value_begins_anothers_is_kept_apart() -> None:
    world = World()
    filled(world, 150)
    longer = aggregate_id(ALICE.type, f"{ALICE.value}-1")
    world.store().append(longer, [event(7)], snapshot=b"{}")
    assert numbers(world.store()) == list(range(150))
    assert numbers(world.store(), longer) == [7]


def test_events_of_another_aggregate_in_the_range_are_not_read_through() -> None:
    """`1-1` to `1-300` lie among the events of `…`, since its value begins theirs."""
    world = World()
    lock = filled(world, 30)
    longer = aggregate_id(ALICE.type, f"{ALICE.value}-1")
    keys = replace(site().keys, shards=1)
    store = replace(world.store(), site=replace(site(), keys=keys))
    store.append(ALICE, [event(n) for n in range(30)], snapshot=b"{}")
    store.append(longer, [event(900)], snapshot=b"{}")
    for start in range(0, 300, 60):
        store.append(longer, [event(900 + n) for n in range(start, start + 60)])
    assert lock.seq_nr == 30
    before = world.meter.units.read
    assert numbers(store) == list(range(30))
    assert world.meter.units.read - before <= 1 + 5 + 30
    assert [each.seq_nr for each in walk(store, ALICE, lock, start=1)] == list(range(1, 31))


@pytest.mark.slow
@pytest.mark.parametrize(("after", "units"), [(950, 7), (1_980, 3), (0, 190)])
def test_small_events_share_a_read_unit_wherever_a_replay_begins(after: int, units: int) -> None:
    world = World()
    filled(world, 2_000)
    before = world.meter.units.read
    assert len(world.store().events_after(ALICE, after, limit=49 if after == 950 else None)) in (
        49,
        20,
        2_000,
    )
    assert world.meter.units.read - before <= 1 + units


def test_an_index_that_lags_hides_nothing() -> None:
    world = World()
    filled(world, 20)

    def lagging(op: Op) -> Reply:
        reply = world.execute(op)
        if isinstance(op, Query) and op.index is not None and isinstance(reply, Items):
            return Items(items=reply.items[:5] + reply.items[9:11])
        return reply

    store = replace(world.store(), driver=Driver(execute=lagging, meter=world.meter), via="index")
    assert numbers(store) == list(range(20))


def test_a_missing_event_is_corruption_and_named() -> None:
    world = World()
    filled(world, 12)
    world.tables.execute(Delete(table="journal", key=site().keys.key(ALICE, 7)))
    with pytest.raises(CorruptData, match="event 7 is missing"):
        world.store().replay(ALICE)


def test_what_does_not_exist_has_no_replay_and_no_events() -> None:
    assert World().store().replay(ALICE) is None
    assert World().store().events_after(ALICE) == []


@pytest.mark.parametrize(("after", "limit", "field"), [(-1, None, "seq_nr"), (0, 0, "limit")])
def test_bad_bounds_are_named(after: int, limit: int | None, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        World().store().events_after(ALICE, after, limit=limit)
    assert caught.value.field == field


@pytest.mark.parametrize("count", [0, 1, 2, 3, 25, 26, 27, 63, 64, 65, 777, 5000])
def test_the_last_number_is_found_in_a_few_requests(count: int) -> None:
    asked: list[int] = []

    def execute(op: Op) -> Reply:
        if isinstance(op, TransactGet):
            ((_, key),) = op.keys
            return Together(items=({} if int(key["skey"]["S"].rsplit("-", 1)[1]) <= count else None,))
        probes = [int(key["skey"]["S"].rsplit("-", 1)[1]) for key in op.keys]  # type: ignore[union-attr]
        asked.append(len(probes))
        return Items(items=tuple({"seq_nr": number(probe)} for probe in probes if probe <= count))

    driver = Driver(execute=execute, meter=World().meter)
    assert driver.run(last_number(site(), ALICE)) == count
    assert len(asked) <= 5


# --------------------------------------------------------------------------------------------------------------- pages


@examples(60)
@given(start=st.integers(1, 2_100), limit=st.integers(1, 2_100))
def test_a_page_is_the_slice_that_was_asked_for(start: int, limit: int) -> None:
    store = LONG.store()
    found = page(store, ALICE, LOCK, start=start, limit=limit, max_bytes=10**9)
    assert [each.seq_nr for each in found.events] == list(range(start, min(2_000, start + limit - 1) + 1))
    assert found.next == (start + limit if start + limit <= 2_000 else None)


LONG = World()
LOCK = filled(LONG, 2_000)


def test_all_pages_of_small_events_cost_a_fraction_of_a_unit_each() -> None:
    before, start, found = LONG.meter.units.read, 1, list[int]()
    while start is not None:
        taken = page(LONG.store(), ALICE, LOCK, start=start, limit=100, max_bytes=10**9)
        found += [each.seq_nr for each in taken.events]
        start = taken.next  # type: ignore[assignment]
    assert found == list(range(1, 2_001))
    assert LONG.meter.units.read - before < 1_250


@pytest.mark.slow
def test_a_page_that_is_full_has_read_a_megabyte_too_much_at_most() -> None:
    world = World()
    lock = filled(world, 99)
    for _ in range(15):
        large = [AggregateEvent(type="T", data=b'"' + b"x" * 60_000 + b'"') for _ in range(60)]
        answer = world.store().append(ALICE, large, expected=lock)
        assert isinstance(answer, AggregateAppended)
        lock = answer.lock
    before = world.meter.units.read
    found = page(world.store(), ALICE, lock, start=100, limit=1_000, max_bytes=2_000_000)
    assert len(found.events) == 33
    assert (world.meter.units.read - before) * 4_096 < 2_000_000 + 1_200_000


def test_what_is_appended_while_pages_are_read_comes_with_none_of_them() -> None:
    world = World()
    lock = filled(world, 150)
    found = list[int]()
    for each in walk(world.store(), ALICE, lock, start=1):
        found.append(each.seq_nr)
        if each.seq_nr == 101:
            world.store().append(ALICE, [event(n) for n in range(60)])
    assert found == list(range(1, 151))


@pytest.mark.parametrize("missing", [7, 1_500])
def test_an_event_missing_from_a_page_is_corruption_and_named(missing: int) -> None:
    world = World()
    lock = filled(world, 1_600)
    world.tables.execute(Delete(table="journal", key=site().keys.key(ALICE, missing)))
    with pytest.raises(CorruptData, match=f"event {missing} is missing"):
        list(walk(world.store(), ALICE, lock, start=1))
