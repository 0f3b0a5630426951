"""The lag of a group that is asked for by its name counts what its reaction reads, as the group has put on record."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.index.group_state import Reads
from epochal.reactions.steering import GroupFigures, Groups
from tests.core.reactions.world import World, is_save


def standing(world: World) -> GroupFigures:
    (found,) = Groups(world.feeds.reader(world.feeds.streams)).standing("board")
    return found


def lag(world: World) -> tuple[int | None, bool]:
    found = standing(world)
    return found.events, found.of_all


def run(world: World, *, members: int = 1, **reads: Any) -> None:
    """Run each member of the group once."""
    for share in range(members):
        world.reactor(members=members, **reads).run(0, share=share, seconds=60)


def behind(**reads: Any) -> World:
    """A group that has handled one event, and is behind by one of each of two types in each of two categories."""
    world = World()
    world.append("Cart-1", "Added")
    run(world, **reads)
    for stream in ("Cart-1", "User-1"):
        world.append(stream, "Added")
        world.append(stream, "Removed")
    return world


@pytest.mark.parametrize(
    ("reads", "events"),
    [
        ({"categories": frozenset({"Cart"})}, 2),
        ({"types": frozenset({"Added"})}, 2),
        ({"categories": frozenset({"Cart"}), "types": frozenset({"Added"})}, 1),
        ({"categories": frozenset({"Cart"}), "types": frozenset({"Added", "Removed"})}, 2),
    ],
)
def test_events_that_the_reaction_reads_are_counted_alone(reads: dict[str, Any], events: int) -> None:
    assert lag(behind(**reads)) == (events, False)


def test_what_a_group_reads_is_on_record_when_it_begins() -> None:
    world = World()
    world.index()
    run(world, categories=frozenset({"Cart"}))
    world.append("User-1", "Added")
    assert lag(world) == (0, False)


def test_of_a_reaction_that_reads_all_or_has_nothing_on_record_all_events_are_counted() -> None:
    assert lag(behind()) == (4, True)


def test_a_reaction_that_reads_too_much_to_be_kept_is_counted_by_all_events() -> None:
    world = behind(categories=frozenset({"Cart", *(f"Category{number:03}" for number in range(40))}))
    assert lag(world) == (4, True)


def test_the_reaction_itself_is_counted_by_what_it_reads_now() -> None:
    world = behind(categories=frozenset({"Cart"}))
    now = world.reactor(types=frozenset({"Removed"})).member.reaction
    (found,) = Groups(world.feeds.reader(world.feeds.streams)).standing(now)
    assert (found.events, found.of_all) == (2, False)


@pytest.mark.parametrize("members", [1, 3])
def test_what_a_reaction_reads_is_put_on_record_by_the_writes_that_it_makes_anyway(members: int) -> None:
    world = behind(categories=frozenset({"Cart"}), members=members)
    assert lag(world) == (2, False)
    changed = {"types": frozenset({"Removed"})}

    def saves(**reads: Any) -> int:
        world.feeds.ops.clear()
        run(world, members=members, **reads)
        return sum(map(is_save, world.feeds.ops))

    assert saves(**changed) > 0
    world.append("Cart-2", "Added")
    world.append("Cart-2", "Removed")
    assert lag(world) == (1, False)
    assert saves(**changed) > 0
    assert saves(categories=frozenset({"User"})) == 0
    world.append("User-1", "Added")
    assert saves() > 0
    world.append("User-1", "Added")
    assert lag(world) == (1, True)


def test_a_group_that_pauses_is_reset_or_parks_keeps_what_it_reads() -> None:
    world = behind(categories=frozenset({"Cart"}))
    groups = Groups(world.feeds.reader(world.feeds.streams))
    groups.pause("board")
    groups.reset("board", "beginning")
    assert world.state().reads == Reads(categories=("Cart",), types=None)
    assert lag(world) == (3, False)


def test_a_group_that_begins_where_another_is_has_not_said_what_it_reads() -> None:
    world = behind(categories=frozenset({"Cart"}))
    groups = Groups(world.feeds.reader(world.feeds.streams))
    groups.begin("panel", like="board")
    (found,) = groups.standing("panel")
    assert (found.events, found.of_all) == (4, True)
