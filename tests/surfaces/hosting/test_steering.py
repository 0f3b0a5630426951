"""Groups that are steered: paused, resumed, reset, deleted, begun where another is; beside processes that run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from epochal.errors import BeyondTheEnd, GroupMissing, InvalidInput
from epochal.hosting.runner import Runner
from epochal.index.checkpoints import BEGINNING, SERIES, Checkpoint
from epochal.index.feed_walk import tails_in
from epochal.index.group_state import GroupState
from epochal.index.live_members import Sign, write_sign
from epochal.index.series import Series
from epochal.plan.ops import Get, Op, Reply, Steps
from epochal.reactions import steering
from epochal.reactions.definition import Delivery
from epochal.reactions.steering import GroupProcess, Groups
from tests.core.reactions.world import Told, World, is_save


def groups_of(world: World) -> Groups:
    return Groups(world.feeds.reader(world.feeds.streams), now=world.feeds.now)


def on_a_clock(told: Told | None = None) -> World:
    """A world whose time is its clock's."""
    world = World(told=told or Told())
    world.feeds.now = lambda: int((1_700_000_000 + world.feeds.clock.now) * 1e9)
    return world


def begun(*streams: str) -> World:
    """A group that has handled one event of each of these streams, an entry each."""
    world = on_a_clock()
    for stream in streams:
        world.append(stream)
    world.reactor().run(0, seconds=600)
    return world


def test_a_group_that_is_reset_to_the_beginning_is_given_everything_again() -> None:
    world = begun("A-1", "B-1", "A-1")
    (done,) = groups_of(world).reset("board", "beginning")
    assert (done.partition, done.before, done.after) == (0, Checkpoint.of(0, 3), BEGINNING)
    assert (done.again, done.skipped) == (3, 0)
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    assert world.told.handled == [("A-1", 0), ("A-1", 1), ("B-1", 0)]


def test_a_group_that_is_reset_to_a_position_is_given_what_comes_after_it() -> None:
    world = begun("A-1", "B-1", "A-1")
    (done,) = groups_of(world).reset("board", {0: Checkpoint.of(0, 2)})
    assert (done.again, done.skipped) == (1, 0)
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    assert world.told.handled == [("A-1", 1)]


def test_a_reset_forward_says_how_much_never_comes() -> None:
    world = begun("A-1")
    for _ in range(3):
        world.append("B-1", "x", "y")
    (done,) = groups_of(world).reset("board", "tail")
    assert (done.again, done.skipped) == (0, 6)
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    assert world.told.handled == []


def test_a_dry_run_says_what_would_come_and_changes_nothing() -> None:
    world = begun("A-1", "B-1")
    before = world.state()
    (told,) = groups_of(world).reset("board", "beginning", dry_run=True)
    assert (told.again, told.after) == (2, BEGINNING)
    assert world.state() == before


def test_a_dry_run_with_the_reaction_counts_what_it_wants_alone() -> None:
    world = begun("A-1", "B-1", "A-1")
    reaction = replace(world.reactor().member.reaction, categories=frozenset({"A"}))
    (told,) = groups_of(world).reset(reaction, "beginning", dry_run=True)
    assert told.again == 2
    typed = replace(reaction, types=frozenset({"elsewhere"}))
    (told,) = groups_of(world).reset(typed, "beginning", dry_run=True)
    assert told.again == 0


@pytest.mark.parametrize("offset", [9, 700])
def test_a_position_that_is_none_of_the_index_is_refused_and_nothing_changes(offset: int) -> None:
    world = begun("A-1")
    with pytest.raises(BeyondTheEnd):
        groups_of(world).reset("board", {0: Checkpoint.of(0, offset)})
    assert world.state().checkpoint == Checkpoint.of(0, 1)


def test_a_partition_where_the_group_has_not_begun_is_refused() -> None:
    with pytest.raises(InvalidInput, match="board has not begun in partition 7"):
        groups_of(begun("A-1")).reset("board", {7: BEGINNING})


def test_a_group_whose_checkpoint_is_of_another_index_can_be_reset() -> None:
    world = begun("A-1")
    member = world.reactor().member
    member.save(member.load(0), GroupState(checkpoint=Checkpoint.of(4, 2)))
    groups = groups_of(world)
    assert [each.events for each in groups.standing("board")] == [None]
    assert [each.after for each in groups.reset("board", "beginning")] == [BEGINNING]


def parked() -> World:
    """`A-1` waits at index 1, which the second of three entries has."""
    world = on_a_clock(
        Told(fails=lambda call: any((call.stream, e.index) == ("A-1", 1) for e in call.events))
    )
    for stream in ("A-1", "A-1", "B-1"):
        world.append(stream)
    world.reactor().run(0, seconds=600)
    assert world.state().parked == {"A-1": 1}
    world.told.handled.clear()
    world.told.fails = lambda _: False
    return world


def test_a_stream_is_parked_no_more_where_what_it_waits_for_comes_again() -> None:
    world = parked()
    (done,) = groups_of(world).reset("board", {0: Checkpoint.of(0, 1)})
    assert done.parked == 0
    member = world.reactor().member
    assert member.causes(0, GroupState(parked={"A-1": 1})) == {}
    world.reactor().run(0, seconds=600)
    assert world.told.handled == [("A-1", 1), ("B-1", 0)]


def test_a_stream_stays_parked_where_what_it_waits_for_does_not_come_again() -> None:
    world = parked()
    world.append("A-1")
    world.reactor().run(0, seconds=600)
    (done,) = groups_of(world).reset("board", {0: Checkpoint.of(0, 2)})
    assert done.parked == 1
    world.reactor().run(0, seconds=600)
    assert world.told.of("A-1") == []
    assert world.parking().replay(0, "A-1", seconds=600).unparked
    assert world.told.of("A-1") == [1, 2]


def test_a_stream_stays_parked_where_its_group_goes_forward() -> None:
    world = parked()
    world.append("B-1")
    (done,) = groups_of(world).reset("board", "tail")
    assert (done.skipped, done.parked, world.state().parked) == (1, 1, {"A-1": 1})


def test_what_was_handled_ahead_comes_again_where_its_group_goes_back() -> None:
    world = begun("A-1", "B-1")
    member = world.reactor().member
    member.save(member.load(0), GroupState(checkpoint=Checkpoint.of(0, 2), ahead={"A-1": 9}))
    groups_of(world).reset("board", "beginning")
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    assert world.told.of("A-1") == [0]


def steered_in_a_batch(steer: Callable[[Groups], object]) -> World:
    """A process is handling the second event when its group is steered."""
    world = begun("A-1")
    world.append("B-1")
    world.append("C-1")

    def meanwhile(call: Delivery) -> None:
        if call.stream == "B-1":
            world.told.during = lambda _: None
            steer(groups_of(world))

    world.told.during = meanwhile
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    return world


def test_a_process_in_the_middle_of_a_batch_is_refused_its_commit_and_goes_on_from_the_reset() -> None:
    world = steered_in_a_batch(lambda groups: groups.reset("board", "beginning"))
    assert world.told.handled == [(each, 0) for each in ("B-1", "C-1", "A-1", "B-1", "C-1")]
    assert world.state().checkpoint == Checkpoint.of(0, 3)


def test_a_process_in_the_middle_of_a_batch_commits_nothing_once_its_group_pauses() -> None:
    world = steered_in_a_batch(lambda groups: groups.pause("board"))
    assert world.state().checkpoint == Checkpoint.of(0, 1)
    assert world.reactor().run(0, seconds=600).paused
    world.told.handled.clear()
    groups_of(world).resume("board")
    assert world.reactor().run(0, seconds=600).at_tail
    assert world.told.handled == [("B-1", 0), ("C-1", 0)]


def test_a_group_that_pauses_says_since_when_and_stays_so_when_paused_again() -> None:
    world = begun("A-1")
    groups = groups_of(world)
    assert groups.pause("board") == [0]
    (since,) = (each.paused for each in groups.standing("board"))
    world.feeds.clock.sleep(60)
    groups.pause("board")
    assert [each.paused for each in groups.standing("board")] == [since]
    assert groups.resume("board") == [0]
    assert [each.paused for each in groups.standing("board")] == [""]


def test_a_group_stays_paused_when_it_is_reset_or_a_stream_of_it_replayed() -> None:
    world = parked()
    groups = groups_of(world)
    groups.pause("board")
    assert world.parking().replay(0, "A-1", seconds=600).unparked
    groups.reset("board", "beginning")
    assert world.state().paused


def test_a_process_of_a_group_that_pauses_waits_and_goes_on() -> None:
    world = begun("A-1")
    groups = groups_of(world)
    groups.pause("board")
    world.append("B-1")
    turns: list[int] = []
    Runner(reactor=world.reactor(), owner="one", on_turn=lambda partition, _: turns.append(partition)).run(
        until_done=True
    )
    assert (turns, world.told.of("B-1")) == ([], [])
    groups.resume("board")
    Runner(reactor=world.reactor(), owner="one").run(until_done=True)
    assert world.told.of("B-1") == [0]


def test_a_group_begins_where_another_is_with_what_that_has_parked() -> None:
    world = parked()
    groups = groups_of(world)
    assert groups.begin("panel", like="board") == [0]
    world.append("C-1")
    world.reactor(name="panel").run(0, seconds=600)
    assert world.told.handled == [("C-1", 0)]
    (waits,) = world.parking(name="panel").streams(0)
    assert waits.cause is not None
    assert (waits.stream, waits.index, waits.cause.text) == ("A-1", 1, "ValueError: no")
    with pytest.raises(InvalidInput, match="panel has already begun"):
        groups.begin("panel", like="board")


def test_of_a_group_that_is_deleted_nothing_is_left() -> None:
    world = parked()
    groups = groups_of(world)
    assert groups.delete("board") == [0]
    assert not [item for item in world.feeds.tables.items("index") if "board" in item["p"]["S"]]
    with pytest.raises(GroupMissing):
        groups.standing("board")
    world.reactor().run(0, seconds=600)
    assert world.told.of("A-1") == [0, 1]


def test_a_group_that_a_process_runs_is_not_deleted() -> None:
    world = begun("A-1")
    groups, member = groups_of(world), world.reactor().member
    until = world.feeds.now() // 1_000_000 + 1_000
    member.driver.run(write_sign("index", "board", Sign(owner="laptop-7", until=until)))
    assert groups.members("board") == [GroupProcess(owner="laptop-7", partitions=(0,))]
    with pytest.raises(InvalidInput, match="run by the process laptop-7"):
        groups.delete("board")
    world.feeds.clock.sleep(2)
    assert groups.members("board") == []
    groups.delete("board")


def test_a_group_is_behind_by_events_and_by_seconds() -> None:
    world = begun("A-1")
    (even,) = groups_of(world).standing("board")
    assert (even.events, even.seconds, even.checkpoint) == (0, 0.0, even.tail)
    world.append("B-1", "x", "y", "z")
    world.feeds.clock.sleep(90)
    world.append("B-1", "x")
    (late,) = groups_of(world).standing("board")
    assert (late.events, round(late.seconds)) == (4, 90)


@pytest.mark.parametrize("act", ["pause", "resume", "standing", "delete"])
def test_a_group_that_has_begun_nowhere_is_missing(act: str) -> None:
    with pytest.raises(GroupMissing, match="bord"):
        getattr(groups_of(begun("A-1")), act)("bord")


def test_a_group_that_is_deleted_while_it_is_reset_stays_deleted() -> None:
    world = begun("A-1", "B-1")
    groups = groups_of(world)

    def delete(op: Op) -> None:
        if is_save(op):
            world.feeds.fault = lambda _: None
            groups.delete("board")

    world.feeds.fault = delete
    with pytest.raises(GroupMissing, match="board"):
        groups.reset("board", "tail")
    world.told.handled.clear()
    world.reactor().run(0, seconds=600)
    assert world.told.handled == [("A-1", 0), ("B-1", 0)]


def test_a_group_is_behind_by_what_it_has_not_handled_ahead() -> None:
    world = on_a_clock()
    for number in range(20):
        world.feeds.append(f"A-{number}", "x", "y")
    world.index()
    world.told.during = lambda _: world.feeds.clock.sleep(1)
    world.reactor().run(0, seconds=8)
    (standing,) = groups_of(world).standing("board")
    assert (standing.checkpoint, standing.events) == (BEGINNING, 24)


@pytest.mark.parametrize("behind", [0, 1])
def test_events_that_come_while_a_group_is_looked_at_are_beyond_the_tail_and_do_not_count(
    behind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = begun("A-1")
    for _ in range(behind):
        world.append("B-1")

    def before_an_append(table: str, series: Series) -> Steps[list[tuple[int, Checkpoint]]]:
        found = yield from tails_in(table, series)
        world.append("C-1")
        return found

    monkeypatch.setattr(steering, "tails_in", before_an_append)
    (board,) = groups_of(world).standing("board")
    assert (board.events, board.tail) == (behind, Checkpoint.of(0, 1 + behind))


def reads_of_the_series(world: World, ask: Callable[[Groups], object]) -> int:
    """How often a question about groups reads which partitions there are."""
    asked: list[Op] = []
    groups, execute = groups_of(world), world.feeds.execute

    def counting(op: Op) -> Reply:
        asked.append(op)
        return execute(op)

    ask(replace(groups, reader=groups.reader.on(replace(groups.reader.driver, execute=counting))))
    return sum(isinstance(op, Get) and op.key["p"]["S"] == str(SERIES) for op in asked)


def test_how_far_a_group_is_takes_one_look_at_the_partitions() -> None:
    world = begun("A-1", "B-1")
    assert reads_of_the_series(world, lambda groups: groups.standing("board")) == 1
