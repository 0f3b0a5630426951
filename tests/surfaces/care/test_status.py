"""`status`: where each partition ends, and how many entries each group has still to handle."""

from __future__ import annotations

import pytest

from epochal.care.status import GroupStanding, groups_of, standings
from epochal.contrib.equinox.streams import Tips
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.group_state import GroupState
from epochal.index.groups import LoadedState, group_stream, load, save
from epochal.index.wire_batch import Ids
from epochal.model.events import Event
from epochal.plan.ops import Get, Op, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.surfaces.care.damage import Damaged


@pytest.fixture
def damaged() -> Damaged:
    world = Damaged()
    world.fill()
    return world


def put_group(world: Damaged, partition: int, group: str, state: GroupState) -> None:
    held = world.driver.run(load("index", group_stream(partition, group)))
    ids = Ids(etag="e" * 32, append_id=b"i" * 16, timestamp="2026-01-01T00:00:00Z")
    assert isinstance(world.driver.run(save("index", held, state, ids)), LoadedState)


def test_each_partition_on_record_has_its_tail_and_the_size_of_its_newest_epoch(damaged: Damaged) -> None:
    found = {each.partition: each for each in standings(damaged.driver, "index")}
    assert {number: each.source for number, each in found.items()} == {
        0: "tips",
        10_000: "journal",
        20_000: "dcb",
    }
    assert found[0].tail == Checkpoint.of(4, 0)
    assert (found[0].entries, found[0].bytes) == (0, 0)
    damaged.layouts.append("Cart-1", "more")
    damaged.layouts.index()
    (first, *_) = standings(damaged.driver, "index")
    assert first.entries == 1
    assert 0 < first.bytes < 200


def test_a_group_is_behind_by_the_entries_between_its_checkpoint_and_the_tail(damaged: Damaged) -> None:
    def behind(checkpoint: Checkpoint) -> int | None:
        put_group(damaged, 0, "mail", GroupState(checkpoint=checkpoint))
        (first, *_) = standings(damaged.driver, "index", ["mail"])
        return first.groups[0].behind

    everything = behind(BEGINNING)
    assert everything == 8
    for epoch in range(4):
        assert behind(Checkpoint.of(epoch, 1)) == 8 - 2 * epoch - 1
    assert behind(Checkpoint.of(4, 0)) == 0


def test_parked_streams_of_a_group_are_counted(damaged: Damaged) -> None:
    put_group(damaged, 0, "mail", GroupState(checkpoint=Checkpoint.of(4, 0), parked={"A": 1, "B": 2}))
    (first, *_) = standings(damaged.driver, "index", ["mail", "nobody"])
    assert first.groups == (GroupStanding(group="mail", checkpoint=Checkpoint.of(4, 0), behind=0, parked=2),)


def test_all_groups_are_found_in_the_table(damaged: Damaged) -> None:
    put_group(damaged, 0, "mail", GroupState())
    put_group(damaged, 20_000, "mail", GroupState())
    put_group(damaged, 10_000, "board-2", GroupState())
    assert groups_of(damaged.driver, "index") == ["board-2", "mail"]


@pytest.mark.parametrize("checkpoint", [Checkpoint.of(4, 1), Checkpoint.of(9, 0), Checkpoint.of(1, 5)])
def test_a_checkpoint_of_another_index_is_told_by_status_and_by_verify(
    damaged: Damaged, checkpoint: Checkpoint
) -> None:
    put_group(damaged, 0, "mail", GroupState(checkpoint=checkpoint))
    (first, *_) = standings(damaged.driver, "index", ["mail"])
    assert first.groups[0].behind is None
    assert damaged.said() == [f"checkpoint beyond: tips mail at {checkpoint}"]


def test_a_group_that_gets_to_a_tail_that_grows_meanwhile_is_not_taken_for_one_beyond_it(
    damaged: Damaged,
) -> None:
    """Found by the simulation of everything, seed 1653: `verify` said so of a running reaction."""
    put_group(damaged, 0, "mail", GroupState(checkpoint=Checkpoint.of(4, 0)))
    looks = 0

    def execute(op: Op) -> Reply:
        nonlocal looks
        if isinstance(op, Get):
            looks += 1
            damaged.layouts.append("Cart-1", "more")
            damaged.layouts.index()
            tail = next(standings(damaged.driver, "index")).tail
            put_group(damaged, 0, "mail", GroupState(checkpoint=tail))
        return damaged.layouts.execute(op)

    driver = Driver(execute=execute, meter=Meter())
    (first, *_) = standings(driver, "index", ["mail"])
    assert looks > 3
    assert first.groups[0].behind is not None


def test_streams_that_somebody_appended_to_the_index_are_told_by_verify(damaged: Damaged) -> None:
    """Its table has the keys of a table of streams, and took them before stores looked."""
    strays = Streams(driver=damaged.driver, table="index", layout=Tips())
    strays.append("Order-1", [Event(type="Placed"), Event(type="Paid")])
    strays.append("+39", [Event(type="Rung")])
    put_group(damaged, 0, "mail", GroupState(checkpoint=Checkpoint.of(4, 0)))
    found = [(each.kind, each.stream, each.index, each.end, each.remedy) for each in damaged.findings()]
    assert sorted(found) == [
        ("stray stream", "+39", 0, 1, "look"),
        ("stray stream", "Order-1", 0, 2, "look"),
    ]
