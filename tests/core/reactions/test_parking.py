"""Streams that keep failing: parked, listed, replayed, given up; and never passed in silence."""

from __future__ import annotations

import random
import string
from typing import Any, NoReturn

import pytest

from epochal.errors import InvalidInput, Unavailable
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState
from epochal.index.groups import MAX_PARKED, LoadedState
from epochal.layout.changes import Span
from epochal.plan.ops import Op
from epochal.reactions.definition import Delivery
from epochal.reactions.page_tasks import TaskResults, after_tasks, may_park, tasks_of
from tests.core.reactions.world import Told, World, is_save


def bad(*streams: str) -> Told:
    """A handler that fails on these streams."""
    return Told(fails=lambda delivery: delivery.stream in streams)


def parked_world() -> World:
    """A-1 failed at index 1 and was parked; B-1 went on."""
    world = World(
        told=Told(fails=lambda call: any((call.stream, e.index) == ("A-1", 1) for e in call.events))
    )
    world.append("A-1", "x", "y", "z")
    world.append("B-1")
    world.reactor().run(0, seconds=600)
    return world


def test_a_stream_that_keeps_failing_is_parked_and_the_others_go_on() -> None:
    world = parked_world()
    assert world.told.handled == [("A-1", 0), ("B-1", 0)]
    assert world.state() == GroupState(checkpoint=Checkpoint.of(0, 2), parked={"A-1": 1})


def test_later_events_of_a_parked_stream_wait() -> None:
    world = parked_world()
    world.append("A-1")
    ran = world.reactor().run(0, seconds=600)
    assert world.told.of("A-1") == [0]
    assert ran.checkpoint == Checkpoint.of(0, 3)


def test_a_parked_stream_is_listed_with_its_cause() -> None:
    (found,) = parked_world().parking().streams(0)
    assert (found.partition, found.stream, found.index) == (0, "A-1", 1)
    assert found.cause is not None
    assert (found.cause.text, found.cause.attempts, found.cause.index) == ("ValueError: no", 5, 1)


@pytest.mark.parametrize("way", ["replay", "discard"])
def test_nothing_is_left_of_the_cause_once_a_stream_goes_on(way: str) -> None:
    """It says what was wrong with an event, in the handler's words."""
    world = parked_world()
    world.told.fails = lambda _: False
    parking = world.parking()
    done = parking.replay(0, "A-1", seconds=600) if way == "replay" else parking.discard(0, "A-1")
    assert done.unparked
    assert parking.reactor.member.causes(0, GroupState(parked={"A-1": 1})) == {}


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words either")


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ValueError("half a pair: \ud800"), "ValueError: half a pair: \\ud800"),
        (ValueError("\x00" * 1_000_000), "ValueError: " + "\x00" * 788),
        (Wordless(), "Wordless: (the message cannot be read, because `str` of the exception failed)"),
    ],
    ids=["surrogate", "large", "wordless"],
)
def test_a_stream_is_parked_whatever_its_failure_says(error: Exception, cause: str) -> None:
    """Authors of events choose what handlers stumble over: words that cannot be stored would stop all the others."""

    def fail(delivery: Delivery) -> bool:
        if delivery.stream == "A-1":
            raise error
        return False

    world = World(told=Told(fails=fail))
    world.append("A-1")
    world.append("B-1")
    world.reactor().run(0, seconds=600)
    (found,) = world.parking().streams(0)
    assert found.cause is not None
    assert (found.stream, found.cause.text) == ("A-1", cause)
    assert world.told.handled == [("B-1", 0)]


def test_replay_handles_what_waits_and_what_has_come_since() -> None:
    world = parked_world()
    world.append("A-1", "later")
    world.reactor().run(0, seconds=600)
    world.told.fails = lambda _: False
    replayed = world.parking().replay(0, "A-1", seconds=600)
    assert (replayed.next, replayed.unparked, replayed.failure) == (4, True, None)
    assert world.told.of("A-1") == [0, 1, 2, 3]
    assert world.parking().streams(0) == []
    world.append("A-1", "last")
    world.reactor().run(0, seconds=600)
    assert world.told.of("A-1") == [0, 1, 2, 3, 4]
    assert world.state() == GroupState(checkpoint=Checkpoint.of(0, 4))


def test_replayed_events_that_the_feed_has_yet_to_pass_do_not_come_again() -> None:
    world = parked_world()
    world.append("A-1", "later")
    world.told.fails = lambda _: False
    world.parking().replay(0, "A-1", seconds=600)
    world.reactor().run(0, seconds=600)
    assert world.told.of("A-1") == [0, 1, 2, 3]


def test_a_replay_that_fails_again_stays_parked_where_it_failed() -> None:
    world = parked_world()
    world.told.fails = lambda call: any(event.index == 2 for event in call.events)
    replayed = world.parking().replay(0, "A-1", seconds=600)
    assert (replayed.next, replayed.unparked) == (2, False)
    assert replayed.failure is not None
    assert world.state().parked == {"A-1": 2}
    (found,) = world.parking().streams(0)
    assert found.cause is not None
    assert found.cause.index == 2


def test_what_the_feed_passes_during_a_replay_is_replayed_too() -> None:
    """Otherwise the checkpoint would pass it as parked, and the replay would unpark without it (DESIGN §5.11)."""
    world = parked_world()
    world.told.fails = lambda _: False
    reactor = World(told=Told(), feeds=world.feeds, indexed=world.indexed)

    def meanwhile(call: Delivery) -> None:
        if call.events[-1].index == 2:
            world.told.during = lambda _: None
            reactor.append("A-1", "meanwhile")
            reactor.reactor().run(0, seconds=600)

    world.told.during = meanwhile
    assert world.parking().replay(0, "A-1", seconds=600).unparked
    assert world.told.of("A-1") == [0, 1, 2, 3]
    assert reactor.told.of("A-1") == []
    assert world.state().parked == {}


def test_what_the_feed_passes_while_a_stream_is_given_up_is_given_up_too() -> None:
    """It was passed as parked: to unpark the stream before it would lose it unseen."""
    world = parked_world()
    parking = world.parking()
    saves = 0

    def meanwhile(op: Op) -> None:
        nonlocal saves
        if is_save(op):
            saves += 1
            if saves == 1:
                world.append("A-1", "meanwhile")
                world.reactor().run(0, seconds=600)

    world.feeds.fault = meanwhile
    replayed = parking.discard(0, "A-1")
    world.feeds.fault = lambda _: None
    assert (replayed.next, replayed.unparked) == (4, True)
    world.append("A-1", "after")
    world.told.fails = lambda _: False
    world.reactor().run(0, seconds=600)
    assert world.told.of("A-1") == [0, 4]


def test_one_event_can_be_skipped() -> None:
    world = parked_world()
    assert world.parking().skip(0, "A-1") == 2
    assert world.state().parked == {"A-1": 2}
    world.told.fails = lambda _: False
    world.parking().replay(0, "A-1", seconds=600)
    assert world.told.of("A-1") == [0, 2]


def test_who_replays_more_slowly_does_not_bring_back_what_another_has_handled() -> None:
    world = parked_world()
    slow, quick = world.parking(), world.parking()
    saves = 0

    def meanwhile(op: Op) -> None:
        nonlocal saves
        saves += is_save(op)
        if saves == 1 and is_save(op):
            quick.skip(0, "A-1")
            quick.skip(0, "A-1")

    world.feeds.fault = meanwhile
    slow.skip(0, "A-1")
    world.feeds.fault = lambda _: None
    assert world.state().parked == {"A-1": 3}


def test_who_replays_more_slowly_leaves_what_comes_after_another_has_unparked_to_the_feed() -> None:
    world = parked_world()
    world.told.fails = lambda _: False
    quick = World(told=Told(), feeds=world.feeds, indexed=world.indexed)
    saves = 0

    def meanwhile(op: Op) -> None:
        nonlocal saves
        saves += is_save(op)
        if saves == 1 and is_save(op):
            assert quick.parking().discard(0, "A-1").unparked
            quick.append("A-1", "after")

    world.feeds.fault = meanwhile
    replayed = world.parking().replay(0, "A-1", seconds=600)
    world.feeds.fault = lambda _: None

    assert (replayed.next, replayed.unparked) == (3, True)
    assert world.told.of("A-1") == [0, 1, 2]
    quick.reactor().run(0, seconds=600)
    assert quick.told.of("A-1") == [3]


def test_another_event_than_the_one_that_was_seen_is_not_skipped() -> None:
    world = parked_world()
    assert world.parking().skip(0, "A-1", 1) == 2
    with pytest.raises(InvalidInput, match="now waits at 2, not at 1"):
        world.parking().skip(0, "A-1", 1)
    assert world.state().parked == {"A-1": 2}


def test_a_replay_out_of_time_keeps_what_it_has_done() -> None:
    world = parked_world()
    world.told.fails = lambda _: False
    clock = world.feeds.clock
    world.told.during = lambda _: clock.sleep(10)
    replayed = world.parking(max_events=1).replay(0, "A-1", seconds=5)
    assert (replayed.next, replayed.unparked, replayed.failure) == (2, False, None)
    assert world.state().parked == {"A-1": 2}


@pytest.mark.parametrize("what", ["replay", "discard", "skip"])
def test_a_stream_that_is_not_parked_is_refused(what: str) -> None:
    parking = parked_world().parking()
    more = {"seconds": 1.0} if what == "replay" else {}
    with pytest.raises(InvalidInput, match="not parked"):
        getattr(parking, what)(0, "B-1", **more)


def test_blocking_by_choice_keeps_the_checkpoint_before_the_failure() -> None:
    world = World(told=bad("A-1"))
    world.append("A-1")
    world.append("B-1")
    ran = world.reactor(on_failure="block").run(0, seconds=600)
    assert ran.blocked is not None
    assert (ran.blocked.stream, ran.checkpoint, ran.parked) == ("A-1", 0, ())
    assert world.state().parked == {}
    world.told.fails = lambda _: False
    assert world.reactor(on_failure="block").run(0, seconds=600).at_tail
    assert world.told.of("A-1") == [0]
    assert world.told.of("B-1") == [0]


def test_an_outage_parks_a_few_streams_and_then_stops() -> None:
    world = World(told=Told(fails=lambda _: True))
    for number in range(20):
        world.feeds.append(f"A-{number}", "x")
    world.index()
    ran = world.reactor().run(0, seconds=600)
    assert len(ran.parked) == 3
    assert ran.blocked is not None
    assert len(world.state().parked) == 3
    world.told.fails = lambda _: False
    world.reactor().run(0, seconds=600)
    assert len(world.told.handled) == 17


def test_a_group_that_has_parked_as_many_as_it_may_blocks() -> None:
    world = World(told=bad("A-1"))
    world.append("A-1")
    reactor = world.reactor()
    full = GroupState(parked={f"Z-{number}": 0 for number in range(MAX_PARKED)})
    reactor.member.save(reactor.member.load(0), full)
    ran = reactor.run(0, seconds=600)
    assert ran.blocked is not None
    assert (ran.checkpoint, "A-1" in world.state().parked) == (0, False)
    assert len(world.state().parked) == MAX_PARKED


def names(count: int, length: int) -> list[str]:
    """Of which nothing repeats, so that they hardly compress."""
    luck = random.Random(1)
    return ["".join(luck.choices(string.ascii_letters + string.digits, k=length)) for _ in range(count)]


@pytest.mark.slow
def test_a_group_blocks_before_the_names_of_what_it_has_parked_fill_an_item() -> None:
    world = World(told=bad("A-1"))
    world.append("A-1")
    reactor = world.reactor()
    long = names(MAX_PARKED, 512)
    fit = [name for number, name in enumerate(long) if may_park(GroupState(), long[: number + 1])]
    full = GroupState(parked=dict.fromkeys(fit, 10**6), ahead=dict.fromkeys(names(3_000, 512), 10**6))
    saved = reactor.member.save(reactor.member.load(0), full)
    assert isinstance(saved, LoadedState)
    assert 290 < len(fit) < MAX_PARKED
    ran = reactor.run(0, seconds=600)
    assert ran.blocked is not None
    assert (ran.checkpoint, len(world.state().parked)) == (0, len(fit))


def test_of_what_is_ahead_the_newest_that_an_item_has_room_for_is_kept() -> None:
    world = World()
    member = world.reactor().member
    ahead = dict.fromkeys(names(1_000, 512), 1)
    member.save(member.load(0), GroupState(ahead=ahead))
    kept = list(world.state().ahead)
    assert kept == list(ahead)[-300:]


def test_a_process_that_dies_over_an_event_is_found_out_and_the_stream_parked() -> None:
    world = World()
    world.feeds.append("B-1", "x")
    world.feeds.append("A-1", "x", "y")
    world.feeds.append("C-1", "x")
    world.index()

    def dies(call: Delivery) -> None:
        if any((call.stream, event.index) == ("A-1", 1) for event in call.events):
            raise SystemExit

    world.told.during = dies
    for _ in range(3):
        with pytest.raises(SystemExit):
            world.reactor(attempts=3).run(0, seconds=600, careful=True)
    ran = world.reactor(attempts=3).run(0, seconds=600, careful=True)
    assert [(failure.stream, failure.index) for failure in ran.parked] == [("A-1", 1)]
    assert "died" in ran.parked[0].cause
    assert world.told.handled == [("B-1", 0), ("A-1", 0), ("C-1", 0)]
    assert world.state() == GroupState(checkpoint=Checkpoint.of(0, 1), parked={"A-1": 1})


@pytest.mark.parametrize("failures", [1, 2, 5])
def test_a_careful_run_that_cannot_read_a_stream_does_not_take_that_for_a_death(
    monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    world = World()
    world.append("A-1", "x", "y")
    hydrate = FeedReader.hydrate
    with monkeypatch.context() as out:

        def fail(*_: Any) -> NoReturn:
            raise Unavailable("the store is out")

        out.setattr(FeedReader, "hydrate", fail)
        for _ in range(failures):
            with pytest.raises(Unavailable):
                world.reactor(attempts=2).run(0, seconds=600, careful=True)
    assert FeedReader.hydrate is hydrate
    assert world.state().trying == {}
    ran = world.reactor(attempts=2).run(0, seconds=600, careful=True)
    assert ran.parked == ()
    assert world.told.of("A-1") == [0, 1]


def test_a_careful_run_that_survives_remembers_nothing_of_it() -> None:
    world = World()
    world.append("A-1", "x", "y")
    world.reactor().run(0, seconds=600, careful=True)
    assert world.told.of("A-1") == [0, 1]
    assert world.state() == GroupState(checkpoint=Checkpoint.of(0, 1))


def test_the_checkpoint_stays_where_any_task_is_unfinished() -> None:
    todo = tasks_of([Span("A-1", 0, ("x",)), Span("B-1", 0, ("x", "y"))], Checkpoint.of(0, 1), GroupState())
    state = after_tasks(GroupState(), todo, TaskResults(reached={"A-1": 1, "B-1": 1}))
    assert state == GroupState(ahead={"A-1": 1, "B-1": 1})
    assert after_tasks(
        GroupState(), todo, TaskResults(reached={"A-1": 1, "B-1": 2})
    ).checkpoint == Checkpoint.of(0, 1)
