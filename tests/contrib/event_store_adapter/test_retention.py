from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.contrib.event_store_adapter.outcomes import AggregateAppended
from epochal.contrib.event_store_adapter.retention import Retention
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.errors import InvalidInput, Unavailable
from epochal.plan.failures import RequestNotApplied
from epochal.plan.ops import Delete, Get, Op, Put, Query, Reply
from epochal.plan.values import text
from epochal.store.driver import Driver, Patience
from tests.contrib.event_store_adapter.world import ALICE, World, event, numbers, site


def append_snapshots(store: AggregateStore, count: int) -> AggregateAppended:
    answer = None
    for number in range(count):
        answer = store.append(ALICE, [event(number)], snapshot=b'{"n":%d}' % number)
    assert isinstance(answer, AggregateAppended)
    return answer


def copies(world: World) -> dict[int, int]:
    """Numbers of the kept copies, with their time to live."""
    stored = world.tables.items("snapshot")
    return {int(item["seq_nr"]["N"]): int(item["ttl"]["N"]) for item in stored if item["seq_nr"]["N"] != "0"}


def test_without_retention_only_the_head_is_stored() -> None:
    world = World()
    append_snapshots(world.store(), 5)
    assert copies(world) == {}


def test_the_newest_copies_stay_and_the_rest_are_deleted() -> None:
    world = World()
    append_snapshots(world.store(Retention(keep=3)), 10)
    assert sorted(copies(world)) == [8, 9, 10]


def test_with_a_time_to_live_older_copies_expire_at_a_moment_in_the_future() -> None:
    world = World()
    store = replace(world.store(Retention(keep=1, ttl_seconds=60)), now=lambda: 1_800_000_000 * 10**9)
    append_snapshots(store, 3)
    assert copies(world) == {1: 1_800_000_060, 2: 1_800_000_060, 3: 0}


@pytest.mark.slow
def test_a_backlog_is_caught_up_with_in_parts() -> None:
    world = World()
    append_snapshots(world.store(Retention(keep=250)), 250)
    store = world.store(Retention(keep=2, ttl_seconds=60))
    assert [store.retire(ALICE) for _ in range(4)] == [100, 100, 48, 0]
    assert sorted(number for number, ttl in copies(world).items() if ttl == 0) == [249, 250]


def test_a_failing_retention_is_reported_beside_the_append_not_instead() -> None:
    world = World()

    def execute(op: Op) -> Reply:
        if isinstance(op, Delete):
            raise RequestNotApplied("throttled")
        return world.execute(op)

    driver = Driver(execute=execute, meter=world.meter, patience=Patience(seconds=0))
    store = replace(world.store(Retention(keep=1)), driver=driver)
    answer = append_snapshots(store, 3)
    assert isinstance(answer.retention_error, Unavailable)
    assert numbers(world.store()) == [0, 1, 2]
    assert world.store(Retention(keep=1)).retire(ALICE) == 2


@pytest.mark.parametrize("ttl", [None, 60])
def test_a_backlog_is_retired_over_pages_of_an_index_that_changes_meanwhile(ttl: int | None) -> None:
    world = World()
    append_snapshots(world.store(Retention(keep=50)), 50)

    def in_pages(op: Op) -> Reply:
        return world.execute(replace(op, limit=7) if isinstance(op, Query) else op)

    store = world.store(Retention(keep=2, ttl_seconds=ttl))
    assert replace(store, driver=Driver(execute=in_pages, meter=world.meter)).retire(ALICE) == 48
    assert [number for number, until in copies(world).items() if until == 0] == [49, 50]


@pytest.mark.parametrize(
    ("keep", "ttl", "field"), [(0, None, "keep"), (-1, None, "keep"), (1, 0, "ttl_seconds")]
)
def test_a_retention_that_would_remove_the_newest_is_refused(keep: int, ttl: int | None, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Retention(keep=keep, ttl_seconds=ttl)
    assert caught.value.field == field


TEN_KILOBYTES = b'"' + b"x" * 10_000 + b'"'


@pytest.mark.slow
@pytest.mark.parametrize("ttl", [None, 3_600])
def test_retention_costs_the_three_hundredth_snapshot_what_it_costs_the_fifth(ttl: int | None) -> None:
    world = World()
    store = world.store(Retention(keep=2, ttl_seconds=ttl))
    read: list[float] = []
    for number in range(300):
        before = world.meter.units.read
        answer = store.append(ALICE, [event(number)], snapshot=TEN_KILOBYTES)
        read.append(world.meter.units.read - before)
        assert answer.retention_error is None
    # The append itself reads the head, 3 units.
    assert read[-1] == max(read[5:])
    assert read[-1] <= (3.5 if ttl else 7.0)
    assert sorted(number for number, until in copies(world).items() if until == 0) == [299, 300]


def test_what_the_index_still_shows_although_it_was_retired_is_not_given_more_time() -> None:
    world = World()
    late: list[Query] = []

    def execute(op: Op) -> Reply:
        reply = world.execute(op)
        if isinstance(op, Query) and op.index and late:
            # The index as it was before anything was retired.
            return replace(reply, items=tuple(shown))
        return reply

    store = world.store(Retention(keep=1, ttl_seconds=60))
    append_snapshots(replace(store, retention=Retention(keep=9)), 4)
    query = Query(
        table="snapshot",
        index="snapshot-active-ttl-index",
        partition=("aid", text(str(ALICE))),
        consistent=False,
        forward=False,
    )
    shown = world.tables.execute(query).items
    first = replace(store, now=lambda: 1_800_000_000 * 10**9)
    assert first.retire(ALICE) == 3
    late.append(query)
    driver = Driver(execute=execute, meter=world.meter)
    again = replace(store, driver=driver, now=lambda: 1_900_000_000 * 10**9)
    assert again.retire(ALICE) == 0
    assert copies(world) == {1: 1_800_000_060, 2: 1_800_000_060, 3: 1_800_000_060, 4: 0}


def test_copies_of_libraries_that_mark_none_are_left_to_expire_to_those_libraries() -> None:
    world = World()
    store = world.store(Retention(keep=1, ttl_seconds=60))
    append_snapshots(store, 1)
    unmarked = dict(world.tables.execute(Get(table="snapshot", key=site().keys.key(ALICE, 1))).item or {})
    del unmarked["active_ttl_seq_nr"]
    world.tables.execute(Put(table="snapshot", item=unmarked))
    append_snapshots(store, 3)
    assert [number for number, until in copies(world).items() if until == 0] == [1, 4]
    deleting = world.store(Retention(keep=1))
    append_snapshots(deleting, 1)
    assert list(copies(world)) == [5], "to delete them needs no mark"
