from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.errors import InvalidInput, Unavailable
from epochal.layout.journal.retention import Retention
from epochal.plan.failures import NotApplied
from epochal.plan.ops import Delete, Op, Reply
from epochal.store.aggregates import AggregateAppended, AggregateStore
from epochal.store.driver import Driver, Patience
from tests.unit.journal.world import ALICE, World, event, numbers


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
            raise NotApplied("throttled")
        return world.execute(op)

    driver = Driver(execute=execute, meter=world.meter, patience=Patience(seconds=0))
    store = replace(world.store(Retention(keep=1)), driver=driver)
    answer = append_snapshots(store, 3)
    assert isinstance(answer.retention_error, Unavailable)
    assert numbers(world.store()) == [0, 1, 2]
    assert world.store(Retention(keep=1)).retire(ALICE) == 2


@pytest.mark.parametrize(
    ("keep", "ttl", "field"), [(0, None, "keep"), (-1, None, "keep"), (1, 0, "ttl_seconds")]
)
def test_a_retention_that_would_remove_the_newest_is_refused(keep: int, ttl: int | None, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Retention(keep=keep, ttl_seconds=ttl)
    assert caught.value.field == field
