"""An operator acts on a parked stream while somebody else resets its group, or deletes it: what the group is then to
be given comes to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.errors import InvalidInput
from epochal.index.group_state import GroupState
from epochal.plan.ops import Op
from epochal.reactions.definition import Delivery
from epochal.reactions.steering import Groups
from tests.core.reactions.world import Told, World, is_save

EVENTS = 4


def groups_of(world: World) -> Groups:
    return Groups(world.feeds.reader(world.feeds.streams))


def parked_at(index: int) -> World:
    """A stream of four events that waits at one of them."""
    world = World(told=Told(fails=lambda call: any(event.index == index for event in call.events)))
    for _ in range(EVENTS):
        world.append("A-1")
    world.reactor(max_events=1, attempts=1).run(0, seconds=600)
    assert world.state().parked == {"A-1": index}
    world.told.fails = lambda _: False
    return world


def reset(world: World) -> None:
    groups_of(world).reset("board", "beginning")


def reset_twice(world: World) -> None:
    reset(world)
    reset(world)


def delete(world: World) -> None:
    groups_of(world).delete("board")


OVERTAKING = pytest.mark.parametrize("steer", [reset, reset_twice, delete])


def overtaken(world: World, steer: Callable[[World], None], *, at: int, parks: int | None = 0) -> World:
    """Another process: before the event at an index is handled, the group is steered, handles what it is given, and
    parks the stream anew where it is told to. What came before that is on record no more.
    """
    other = World(told=Told(), feeds=world.feeds, indexed=world.indexed)
    if parks is not None:
        other.told.fails = lambda call: any(event.index == parks for event in call.events)

    def meanwhile(call: Delivery) -> None:
        if call.events[0].index == at:
            world.told.during = lambda _: None
            world.told.handled.clear()
            steer(world)
            other.reactor(max_events=1, attempts=1).run(0, seconds=600)

    world.told.during = meanwhile
    return other


def everything(world: World, other: World) -> list[int]:
    """What the group has handled since, in whichever process, once it has come to its end."""
    world.reactor().run(0, seconds=600)
    return sorted({*world.told.of("A-1"), *other.told.of("A-1")})


@OVERTAKING
@pytest.mark.parametrize("parks", [0, 2, 3, None])
@pytest.mark.parametrize("begun", [0, 2])
def test_a_replay_that_a_reset_or_a_deletion_overtakes_goes_on_from_where_the_stream_waits_then(
    steer: Callable[[World], None], parks: int | None, begun: int
) -> None:
    world = parked_at(begun)
    other = overtaken(world, steer, at=3, parks=parks)
    replayed = world.parking(max_events=1).replay(0, "A-1", seconds=600)
    assert (replayed.unparked, world.state().parked) == (True, {})
    assert everything(world, other) == [0, 1, 2, 3]


@OVERTAKING
def test_a_replay_that_is_overtaken_and_fails_leaves_the_stream_where_it_waits_then(
    steer: Callable[[World], None],
) -> None:
    world = parked_at(2)
    overtaken(world, steer, at=2)
    world.told.fails = lambda call: call.events[0].index == 3
    replayed = world.parking(max_events=1, attempts=1).replay(0, "A-1", seconds=600)
    assert not replayed.unparked
    assert (replayed.next, world.state().parked) == (0, {"A-1": 0})


@OVERTAKING
def test_a_replay_that_is_overtaken_and_runs_out_of_time_leaves_the_stream_where_it_waits_then(
    steer: Callable[[World], None],
) -> None:
    world = parked_at(2)
    clock = world.feeds.clock
    overtaken(world, lambda each: (steer(each), clock.sleep(10))[0], at=2)
    replayed = world.parking(max_events=1).replay(0, "A-1", seconds=5)
    assert (replayed.next, replayed.unparked, world.state().parked) == (0, False, {"A-1": 0})


def interrupted_save(world: World, act: Callable[[], object]) -> None:
    """Something happens before the next change of the group's state that is not its own."""

    def fault(op: Op) -> None:
        if is_save(op):
            world.feeds.fault = lambda _: None
            act()

    world.feeds.fault = fault


@OVERTAKING
def test_a_skip_that_is_overtaken_gives_up_no_other_event_than_the_one_it_was_told(
    steer: Callable[[World], None],
) -> None:
    world = parked_at(2)
    other = World(told=Told(fails=lambda _: True), feeds=world.feeds, indexed=world.indexed)

    def act() -> None:
        steer(world)
        other.reactor(max_events=1, attempts=1).run(0, seconds=600)

    parking = world.parking()
    interrupted_save(world, act)
    with pytest.raises(InvalidInput, match="now waits at 0, not at 2"):
        parking.skip(0, "A-1", 2)
    assert world.state().parked == {"A-1": 0}


@OVERTAKING
def test_a_skip_of_whichever_event_gives_up_the_one_that_the_stream_waits_for_then(
    steer: Callable[[World], None],
) -> None:
    world = parked_at(2)
    other = World(told=Told(fails=lambda _: True), feeds=world.feeds, indexed=world.indexed)

    def act() -> None:
        steer(world)
        other.reactor(max_events=1, attempts=1).run(0, seconds=600)

    parking = world.parking()
    interrupted_save(world, act)
    assert parking.skip(0, "A-1") == 1
    assert world.state().parked == {"A-1": 1}


@OVERTAKING
def test_a_skip_of_a_stream_that_waits_no_more_is_refused(steer: Callable[[World], None]) -> None:
    world = parked_at(2)
    parking = world.parking()
    interrupted_save(world, lambda: steer(world))
    with pytest.raises(InvalidInput, match="not parked"):
        parking.skip(0, "A-1")


def test_a_skip_beside_a_replay_that_has_got_further_says_where_the_stream_waits() -> None:
    world = parked_at(1)
    parking = world.parking()

    def act() -> None:
        world.told.fails = lambda call: any(event.index == 3 for event in call.events)
        world.parking(max_events=1, attempts=1).replay(0, "A-1", seconds=600)

    interrupted_save(world, act)
    assert parking.skip(0, "A-1") == 3
    assert world.state().parked == {"A-1": 3}


def test_a_discard_that_is_overtaken_gives_up_what_the_stream_waits_for_then() -> None:
    world = parked_at(2)
    other = World(told=Told(fails=lambda _: True), feeds=world.feeds, indexed=world.indexed)

    def act() -> None:
        reset(world)
        other.reactor(max_events=1, attempts=1).run(0, seconds=600)

    interrupted_save(world, act)
    discarded = world.parking().discard(0, "A-1")
    assert (discarded.next, discarded.unparked) == (EVENTS, True)


def test_a_replay_that_fails_when_its_stream_is_parked_no_more_leaves_it_to_the_feed() -> None:
    world = parked_at(1)
    world.told.during = lambda _: reset(world)
    world.told.fails = lambda _: True
    replayed = world.parking(attempts=1).replay(0, "A-1", seconds=600)
    assert replayed.unparked
    assert world.parking().reactor.member.causes(0, GroupState(parked={"A-1": 1})) == {}


def test_a_group_that_begins_where_another_is_takes_no_old_replay_for_its_own() -> None:
    world = parked_at(1)
    groups = groups_of(world)
    groups.begin("panel", like="board")

    def begin_anew(_: Delivery) -> None:
        world.told.during = lambda _: None
        world.told.handled.clear()
        groups.delete("panel")
        groups.begin("panel", like="board")

    world.told.during = begin_anew
    world.parking(name="panel", max_events=1).replay(0, "A-1", seconds=600)
    assert world.told.of("A-1") == [1, 2, 3, 1, 2, 3]


@OVERTAKING
@pytest.mark.parametrize("at", [2, 3])
def test_a_skip_that_is_overtaken_gives_up_the_event_that_the_stream_waits_for_then_also_a_later_one(
    steer: Callable[[World], None], at: int
) -> None:
    world = parked_at(1)
    told = Told(fails=lambda call: any(event.index == at for event in call.events))
    other = World(told=told, feeds=world.feeds, indexed=world.indexed)

    def act() -> None:
        steer(world)
        other.reactor(max_events=1, attempts=1).run(0, seconds=600)

    parking = world.parking()
    interrupted_save(world, act)
    assert parking.skip(0, "A-1") == at + 1
    assert world.state().parked == {"A-1": at + 1}
