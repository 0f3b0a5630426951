from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochal.errors import CorruptData, InvalidInput
from epochal.layout.journal.lookup import last_number
from epochal.model.aggregates import Lock, aggregate_id
from epochal.plan.ops import Delete, Items, Op, Query, Reply
from epochal.plan.values import number
from epochal.store.aggregates import AggregateAppended
from epochal.store.driver import Driver
from tests.unit.journal.world import ALICE, World, event, numbers, site


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
def test_every_event_comes_back_in_order_however_many(count: int) -> None:
    world = World()
    filled(world, count)
    assert numbers(world.store()) == list(range(count))
    assert numbers(replace(world.store(), via="index")) == list(range(count))


@settings(max_examples=40, deadline=None)
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


@pytest.mark.parametrize(("after", "limit", "field"), [(-1, None, "from"), (0, 0, "limit")])
def test_bad_bounds_are_named(after: int, limit: int | None, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        World().store().events_after(ALICE, after, limit=limit)
    assert caught.value.field == field


@pytest.mark.parametrize("count", [0, 1, 2, 3, 25, 26, 27, 63, 64, 65, 777, 5000])
def test_the_last_number_is_found_in_a_few_requests(count: int) -> None:
    asked: list[int] = []

    def execute(op: Op) -> Reply:
        probes = [int(key["skey"]["S"].rsplit("-", 1)[1]) for key in op.keys]  # type: ignore[union-attr]
        asked.append(len(probes))
        return Items(items=tuple({"seq_nr": number(probe)} for probe in probes if probe <= count))

    driver = Driver(execute=execute, meter=World().meter)
    assert driver.run(last_number(site(), ALICE)) == count
    assert len(asked) <= 5
