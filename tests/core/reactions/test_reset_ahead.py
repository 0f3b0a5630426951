"""A reset brings again what a group has handled ahead of its checkpoint, and counts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.epochs import EpochLimits
from epochal.index.group_state import GroupState
from epochal.plan.ops import Get, Op, Query
from epochal.reactions.definition import Delivery, Start
from epochal.reactions.steering import Groups
from tests.core.feed.feeds import Feeds
from tests.core.reactions.world import Told, World

OPTIONS: dict[str, dict[str, Any]] = {
    "by default": {},
    "on a group that blocks": {"on_failure": "block"},
    "in order": {"in_order": True},
    "one stream at a time": {"parallel": 1},
    "one event at a time": {"max_events": 1},
}


def groups_of(world: World) -> Groups:
    return Groups(world.feeds.reader(world.feeds.streams), now=world.feeds.now)


def slow() -> World:
    """A world whose handler takes 2.5 ms a call."""
    world = World(told=Told())
    world.told.during = lambda _: world.feeds.clock.sleep(0.0025)
    return world


def append_to_each(world: World, count: int, *, together: bool, first: int = 0) -> None:
    """One event in each of `count` streams, in one entry of the index or in an entry each."""
    for number in range(first, first + count):
        world.feeds.append(f"Order-{number}", "x")
        if not together:
            world.index()
    world.index()


@pytest.mark.parametrize(
    ("count", "seconds", "together"),
    [(200, 0.2, True), (40, 0.04, False)],
    ids=["one entry", "an entry each"],
)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_reset_to_where_the_checkpoint_still_is_brings_again_what_was_handled_ahead_of_it(
    options: dict[str, Any], count: int, seconds: float, together: bool
) -> None:
    world = slow()
    append_to_each(world, count, together=together)
    world.reactor(**options).run(0, seconds=seconds)
    assert (len(world.told.handled), world.state().checkpoint) == (count * 2 // 5, BEGINNING)
    groups = groups_of(world)
    (planned,) = groups.reset("board", "beginning", dry_run=True)
    (done,) = groups.reset("board", "beginning")
    assert planned == done
    assert (done.again, done.skipped) == (count * 2 // 5, 0)
    world.told.handled.clear()
    world.reactor(**options).run(0, seconds=600)
    assert Counter(world.told.handled) == {(f"Order-{number}", 0): 1 for number in range(count)}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_so_does_one_in_the_middle_of_the_feed(options: dict[str, Any]) -> None:
    world = slow()
    append_to_each(world, 10, together=False)
    world.reactor(**options).run(0, seconds=600)
    append_to_each(world, 40, together=False, first=10)
    world.told.handled.clear()
    world.reactor(**options).run(0, seconds=0.04)
    checkpoint = world.state().checkpoint
    assert (len(world.told.handled), checkpoint) == (16, Checkpoint.of(0, 10))
    (done,) = groups_of(world).reset("board", {0: checkpoint})
    assert (done.again, done.skipped) == (16, 0)
    world.told.handled.clear()
    world.reactor(**options).run(0, seconds=600)
    assert Counter(world.told.handled) == {(f"Order-{number}", 0): 1 for number in range(10, 50)}


@pytest.mark.parametrize(
    ("to", "again", "skipped"),
    [
        ({0: Checkpoint.of(0, 10)}, 6, 0),
        ({0: Checkpoint.of(0, 16)}, 0, 0),
        ({0: Checkpoint.of(0, 24)}, 0, 8),
        ("tail", 0, 24),
    ],
    ids=["among what was handled", "after it", "among what was not", "to the tail"],
)
def test_a_reset_forward_brings_all_that_comes_after_its_target_and_skips_only_what_was_not_handled(
    to: Start, again: int, skipped: int
) -> None:
    world = slow()
    append_to_each(world, 40, together=False)
    world.reactor().run(0, seconds=0.04)
    (done,) = groups_of(world).reset("board", to)
    assert (done.again, done.skipped) == (again, skipped)
    before = set(world.told.handled)
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    first = done.after.offset
    assert Counter(world.told.handled) == {(f"Order-{number}", 0): 1 for number in range(first, 40)}
    assert len(before & set(world.told.handled)) == again
    assert 40 - len(before | set(world.told.handled)) == skipped


def test_a_reset_brings_again_what_each_of_several_members_has_handled_ahead() -> None:
    world = slow()
    append_to_each(world, 40, together=False)
    for share in range(2):
        world.reactor(members=2).run(0, share=share, seconds=0.02)
    handled = len(world.told.handled)
    assert (handled, world.state().checkpoint) == (16, BEGINNING)
    (done,) = groups_of(world).reset("board", "beginning")
    assert (done.again, done.skipped) == (16, 0)
    world.told.handled.clear()
    for share in range(2):
        world.reactor(members=2).run(0, share=share, seconds=600)
    assert Counter(world.told.handled) == {(f"Order-{number}", 0): 1 for number in range(40)}


def failing(stream: str, index: int) -> Callable[[Delivery], bool]:
    return lambda call: any((call.stream, each.index) == (stream, index) for each in call.events)


def test_a_reset_brings_again_what_a_parked_stream_has_handled_ahead_of_the_checkpoint() -> None:
    """The page is not complete, so the checkpoint is where it was; the stream is parked at its third event."""
    world = slow()
    for _ in range(4):
        world.append("A-1")
    append_to_each(world, 20, together=False)
    world.told.fails = failing("A-1", 2)
    world.reactor(max_events=1, attempts=1).run(0, seconds=0.02)
    assert (world.state().checkpoint, world.state().parked) == (BEGINNING, {"A-1": 2})
    handled = set(world.told.handled)
    (done,) = groups_of(world).reset("board", "beginning")
    assert (done.again, done.skipped, done.parked) == (len(handled), 0, 0)
    world.told.fails = lambda _: False
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    assert world.told.of("A-1") == [0, 1, 2, 3]
    assert len(world.told.handled) == 24


def test_a_reset_brings_again_what_a_replay_has_handled_ahead_of_the_feed() -> None:
    world = slow()
    for _ in range(2):
        world.append("A-1")
    world.told.fails = failing("A-1", 1)
    world.reactor(attempts=1).run(0, seconds=600)
    world.told.fails = lambda _: False
    for _ in range(3):
        world.append("A-1")
    assert world.parking().replay(0, "A-1", seconds=600).next == 5
    (done,) = groups_of(world).reset("board", {0: world.state().checkpoint})
    assert (done.again, done.skipped) == (3, 0)
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    assert world.told.of("A-1") == [2, 3, 4]


def test_a_stream_whose_replay_has_failed_further_on_than_the_feed_comes_again_with_the_feed() -> None:
    world = slow()
    world.append("A-1")
    world.told.fails = failing("A-1", 0)
    world.reactor(attempts=1).run(0, seconds=600)
    for _ in range(3):
        world.append("A-1")
    world.told.fails = failing("A-1", 3)
    world.parking(max_events=1, attempts=1).replay(0, "A-1", seconds=600)
    assert (world.state().checkpoint, world.state().parked) == (Checkpoint.of(0, 1), {"A-1": 3})
    (done,) = groups_of(world).reset("board", {0: Checkpoint.of(0, 1)})
    assert (done.again, done.skipped, done.parked) == (2, 0, 0)
    world.told.fails = lambda _: False
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    assert world.told.of("A-1") == [1, 2, 3]


@pytest.mark.parametrize("to", ["beginning", "tail"])
def test_what_a_parked_stream_waits_for_comes_again_with_the_feed_or_waits_on(to: Start) -> None:
    world = slow()
    world.append("A-1", "x", "x")
    world.told.fails = failing("A-1", 1)
    world.reactor(max_events=1, attempts=1).run(0, seconds=600)
    world.append("A-1", "x")
    world.append("B-1", "x")
    (done,) = groups_of(world).reset("board", to)
    assert (done.again, done.skipped, done.parked) == ((2, 0, 0) if to == "beginning" else (0, 1, 1))
    world.told.fails = lambda _: False
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    if to == "tail":
        assert world.told.handled == []
        world.parking().replay(0, "A-1", seconds=600)
        assert world.told.of("A-1") == [1, 2]


@pytest.mark.parametrize(
    ("ahead", "epochs"), [((), 1), ((3,), 1), ((3, 9), 1), ((12, 3), 2), ((39,), 4), ((700,), 4)]
)
def test_a_reset_reads_the_index_as_far_as_something_was_handled_ahead(
    ahead: tuple[int, ...], epochs: int
) -> None:
    world = World(feeds=Feeds(limits=EpochLimits(entries=10)))
    append_to_each(world, 40, together=False)
    member = world.reactor().member
    state = GroupState(ahead={f"Order-{number}": 1 for number in ahead})
    member.save(member.load(0), state)
    before = len(world.feeds.ops)
    (planned,) = groups_of(world).reset("board", "beginning", dry_run=True)
    assert planned.again == sum(number < 40 for number in ahead)
    read = {epoch_of(op) for op in world.feeds.ops[before:]}
    full = [f"$AppendsEpoch-0_{number}" for number in range(4)]
    assert [name for name in full if name in read] == full[:epochs]


def epoch_of(op: Op) -> str | None:
    """The epoch that a request reads."""
    name = op.key["p"]["S"] if isinstance(op, Get) else op.partition[1]["S"] if isinstance(op, Query) else ""
    return name if name.startswith("$AppendsEpoch-") else None
