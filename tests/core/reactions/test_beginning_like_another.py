"""A group that begins where another is: everywhere or nowhere. Where a process is faster, the error says where."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.errors import InvalidInput
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import BEGINNING
from epochal.index.group_state import GroupState
from epochal.index.groups import group_stream
from epochal.plan.ops import Op, Put, Update
from epochal.reactions.group_member import Member, stand_in
from epochal.reactions.steering import Groups
from tests.core.feed.feeds import Feeds, no_fault
from tests.core.reactions.world import Told, World

STREAMS = tuple(f"A-{number}" for number in range(8))


def handled(*partitions: int, of: int = 2) -> World:
    """The group `board` has handled these partitions of so many, and has parked a stream in each."""
    world = World(feeds=Feeds(partitions=of))
    for stream in STREAMS:
        world.append(stream)
    world.told.fails = lambda delivery: delivery.stream == parked_in(world, delivery.partition)
    for partition in partitions:
        world.reactor(attempts=1).run(partition, seconds=600)
    return world


def parked_in(world: World, partition: int) -> str:
    """The stream that comes first in a partition."""
    return world.feeds.feed(partition)[0][0]


def reader_of(world: World) -> FeedReader:
    return world.feeds.reader(world.feeds.streams)


def panel(world: World, partition: int) -> GroupState | None:
    """What `panel` has on record in a partition."""
    return Member(reaction=stand_in("panel"), reader=reader_of(world)).load(partition).state


def items_of_panel(world: World) -> list[str]:
    """The names of all items of `panel`."""
    return [item["p"]["S"] for item in world.feeds.tables.items("index") if "panel" in item["p"]["S"]]


def begin_panel(world: World) -> list[int]:
    return Groups(reader_of(world), now=world.feeds.now).begin("panel", like="board")


def begun_by_a_process(world: World, *partitions: int) -> None:
    """A process of `panel` has handled these partitions."""
    told, world.told = world.told, Told()
    for partition in partitions:
        world.reactor(name="panel").run(partition, seconds=600)
    world.told = told


def before_the_first_write(world: World, act: Callable[[], object]) -> None:
    """Do something once everything has been read."""

    def fault(op: Op) -> None:
        if isinstance(op, Put | Update):
            world.feeds.fault = no_fault
            act()

    world.feeds.fault = fault


def test_a_group_begins_in_every_partition_where_the_other_has_begun() -> None:
    world = handled(0, 1)
    assert begin_panel(world) == [0, 1]
    for partition in (0, 1):
        state = panel(world, partition)
        assert state is not None
        assert state.checkpoint > BEGINNING
        assert list(state.parked) == [parked_in(world, partition)]


def test_a_group_that_has_begun_in_the_last_partition_alone_begins_in_none() -> None:
    world = handled(0, 1)
    begun_by_a_process(world, 1)
    before = items_of_panel(world)
    with pytest.raises(
        InvalidInput, match="panel has already begun in partition 1: reset or delete it first"
    ):
        begin_panel(world)
    assert items_of_panel(world) == before == [group_stream(1, "panel")]


def test_a_group_that_has_begun_where_the_other_has_not_begins_nowhere_else() -> None:
    world = handled(0, of=3)
    begun_by_a_process(world, 1, 2)
    before = items_of_panel(world)
    with pytest.raises(InvalidInput, match="panel has already begun in partitions 1, 2: reset or delete it"):
        begin_panel(world)
    assert items_of_panel(world) == before


@pytest.mark.parametrize("partition", [0, 1])
def test_a_process_that_begins_a_group_meanwhile_keeps_its_state_and_the_error_says_where_the_other_began(
    partition: int,
) -> None:
    world = handled(0, 1)
    before_the_first_write(world, lambda: begun_by_a_process(world, partition))
    where = "It begins like board in partition 0." if partition else "It begins like board in no partition."
    with pytest.raises(InvalidInput) as caught:
        begin_panel(world)
    assert str(caught.value) == (
        f"group: a process began panel meanwhile in partition {partition}. {where} "
        "Stop the process, delete panel, and begin it again"
    )
    state = panel(world, partition)
    assert state is not None
    assert not state.parked, "this is what the process wrote"
    assert (panel(world, 0) is None, panel(world, 1) is None) == (False, partition == 0)


def test_a_group_that_a_process_began_meanwhile_keeps_no_cause_of_what_the_other_has_parked() -> None:
    world = handled(0, 1)
    before_the_first_write(world, lambda: begun_by_a_process(world, 0))
    with pytest.raises(InvalidInput):
        begin_panel(world)
    assert items_of_panel(world) == [group_stream(0, "panel")]


def test_a_group_begins_where_the_other_is_once_what_a_race_left_is_deleted() -> None:
    world = handled(0, 1)
    before_the_first_write(world, lambda: begun_by_a_process(world, 1))
    with pytest.raises(InvalidInput):
        begin_panel(world)
    Groups(reader_of(world), now=world.feeds.now).delete("panel")
    assert items_of_panel(world) == []
    assert begin_panel(world) == [0, 1]


def test_a_process_that_has_parked_the_same_stream_keeps_its_cause() -> None:
    world = handled(0, 1)
    stream = parked_in(world, 0)

    def park() -> None:
        told, world.told = world.told, Told(fails=lambda delivery: delivery.stream == stream)
        world.reactor(name="panel", attempts=1).run(0, seconds=600)
        world.told = told

    before_the_first_write(world, park)
    with pytest.raises(InvalidInput):
        begin_panel(world)
    state = panel(world, 0)
    assert state is not None
    assert list(Member(reaction=stand_in("panel"), reader=reader_of(world)).causes(0, state)) == [stream]
