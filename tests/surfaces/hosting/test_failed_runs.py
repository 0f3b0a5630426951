"""Why a group does not get on: the last failed run of each member, as long as the member stands where it failed."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from epochal.care.status import standings
from epochal.errors import CorruptData, Unavailable
from epochal.hosting.reaction_function import ReactionFunction
from epochal.index.failed_runs import FailedRun
from epochal.plan.ops import Op, Put
from epochal.reactions.reactor import Reactor
from epochal.reactions.steering import Groups, blocked_view, standing_view
from tests.core.reactions.world import Told, World
from tests.surfaces.hosting.test_deadlines import Alarms, Log
from tests.surfaces.hosting.test_wakeups import Context, function, message

PLACE = "$ReaderFailure-"
SECOND = 10**9


class Moment:
    """The time of day of a function, which a test sets."""

    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> int:
        return self.seconds * SECOND

    def told(self, seconds: int) -> str:
        """How a time is written: `seconds` after the beginning."""
        return f"1970-01-01T00:{seconds // 60:02}:{seconds % 60:02}.0000000+00:00"


class Function:
    """A reaction's function over a world in memory, with a clock, a log and an alarm of its own."""

    def __init__(self, world: World, **reaction: Any) -> None:
        self.now, self.log, self.alarms = Moment(), Log(), Alarms()
        made = function(world, **reaction)
        member = replace(made.reactor.member, now=self.now)
        reactor = Reactor(member=member, executor=made.reactor.executor)
        self.one: ReactionFunction = replace(
            made,
            reactor=reactor,
            logger=self.log,  # type: ignore[arg-type]
            alarm=self.alarms,
        )

    def run(self, *messages: dict[str, Any], seconds: float = 60.0) -> None:
        """Wake it."""
        records = list(messages) or [message(0, 99)]
        self.one.handle({"Records": records}, Context(seconds))  # type: ignore[arg-type]


def blocked(world: World, seconds: int = 0) -> list[FailedRun]:
    """What is shown of partition 0, so many seconds after the beginning."""
    groups = Groups(world.feeds.reader(world.feeds.streams), now=lambda: seconds * SECOND)
    (shown,) = groups.standing("board")
    return [*shown.blocked]


def requests(world: World) -> list[Op]:
    """Requests for failed runs."""
    return [each for each in world.feeds.ops if PLACE in repr(each)]


def failing(*streams: str, **reaction: Any) -> tuple[World, Function]:
    """A group that is blocked by these streams, of some."""
    world = World(told=Told(fails=lambda each: each.stream in streams))
    world.append("A-1")
    return world, Function(world, on_failure="block", attempts=1, **reaction)


def test_a_run_that_a_stream_blocks_is_on_record_with_stream_cause_and_the_time_of_the_next_run() -> None:
    world, one = failing("A-1")
    one.run(message(0, 1, receives=3))
    assert [replace(each, state="") for each in blocked(world)] == [
        FailedRun(
            member=0,
            cause="ValueError",
            since=one.now.told(0),
            last=one.now.told(0),
            due=one.now.told(8),
            runs=1,
            stream="A-1",
            index=0,
            state="",
        )
    ]


@pytest.mark.parametrize(("seconds", "expected"), [(8, True), (60, True), (69, False), (10**6, False)])
def test_a_next_run_that_has_not_come_is_no_longer_expected(seconds: int, expected: bool) -> None:
    world, one = failing("A-1")
    one.run(message(0, 1, receives=3))
    (run,) = blocked(world, seconds)
    assert run.due == (one.now.told(8) if expected else "")
    assert (blocked_view(run)["nextRun"] is not None) == expected
    words = f"the next run is expected at {one.now.told(8)}"
    if not expected:
        words = f"the next run was expected at {one.now.told(8)} but did not start: its process may have died"
    assert run.words.endswith(words)


@pytest.mark.parametrize(("seconds", "expected"), [(8, True), (10**6, False)])
def test_the_status_of_an_index_expects_no_run_that_has_not_come(seconds: int, expected: bool) -> None:
    world, one = failing("A-1")
    one.run(message(0, 1, receives=3))
    (standing,) = standings(world.feeds.driver, "index", ["board"], now=lambda: seconds * SECOND)
    (group,) = standing.groups
    (run,) = group.blocked
    assert bool(run.due) == expected


def test_runs_that_fail_at_the_same_place_are_counted_from_the_first_on() -> None:
    world, one = failing("A-1")
    for receives in (1, 2, 3):
        one.run(message(0, 1, receives=receives))
        one.now.seconds += 60
    (run,) = blocked(world)
    assert (run.runs, run.since, run.last) == (3, one.now.told(0), one.now.told(120))
    world.append("B-1")
    world.told.fails = lambda each: each.stream == "B-1"
    one.run()
    (run,) = blocked(world)
    assert (run.runs, run.since, run.stream) == (1, one.now.told(180), "B-1")


@pytest.mark.parametrize(
    ("error", "cause"),
    [(CorruptData("a page"), "CorruptData: a page"), (RuntimeError("of Ann"), "RuntimeError")],
)
def test_a_run_that_raises_is_on_record_by_its_kind_and_raises_the_same(error: Exception, cause: str) -> None:
    world, one = failing()
    world.told.during = lambda _: _fail_reads(world, error)
    with pytest.raises(type(error)):
        one.run()
    world.feeds.fault = lambda _: None
    (run,) = blocked(world)
    assert (run.cause, run.stream, run.index) == (cause, "", None)
    assert "Ann" not in repr(world.feeds.tables.items("index"))


def _fail_reads(world: World, error: Exception) -> None:
    """The next save of the group fails, and nothing after it."""

    def fail(op: Op) -> None:
        if "$ReaderCheckpoint" in repr(op):
            world.feeds.fault = lambda _: None
            raise error

    world.feeds.fault = fail


def test_a_run_that_handles_nothing_in_its_time_is_on_record() -> None:
    world, one = failing("A-1")
    one.one = replace(one.one, reactor=world.reactor(attempts=9))
    world.told.during = lambda _: world.feeds.clock.sleep(100)
    one.run()
    (run,) = blocked(world)
    assert run.cause == "the run handled nothing in its time"


def test_shortly_before_the_timeout_the_handler_under_way_is_on_record() -> None:
    world, one = failing()

    def hang(_: object) -> None:
        one.now.seconds = 58
        one.alarms.go_off()
        raise SystemExit  # Lambda ends the process

    world.told.during = hang
    with pytest.raises(SystemExit):
        one.run(seconds=60.0)
    (run,) = blocked(world)
    assert (run.cause, run.stream, run.index) == (
        "timed out after 60 s in handler tests.core.reactions.world.Told",
        "A-1",
        0,
    )
    assert (run.last, run.due) == (one.now.told(58), one.now.told(63))


def test_a_handler_that_ends_after_all_leaves_nothing_to_be_shown() -> None:
    world, one = failing()
    world.told.during = lambda _: one.alarms.go_off()
    one.run()
    assert requests(world)
    world.append("B-1")
    assert blocked(world) == []


def test_a_replay_that_runs_out_of_time_is_no_failed_run() -> None:
    world = World(told=Told(fails=lambda _: True))
    world.append("A-1")
    one = Function(world, attempts=1)
    one.run()
    world.told.fails = lambda _: False
    world.told.during = lambda _: one.alarms.go_off()
    one.one.handle({"command": "replay", "partition": 0, "stream": "A-1"}, Context(60.0))  # type: ignore[arg-type]
    assert requests(world) == []


def test_a_run_that_succeeds_asks_for_nothing_and_nothing_is_shown_afterwards() -> None:
    world, one = failing("A-1")
    one.run()
    assert blocked(world)
    world.told.fails = lambda _: False
    world.feeds.ops.clear()
    one.run()
    world.append("B-1")
    one.run()
    assert requests(world) == []
    world.append("C-1")
    assert blocked(world) == []


def test_of_a_group_at_the_end_nothing_is_asked() -> None:
    world, one = failing()
    one.run()
    world.feeds.ops.clear()
    assert blocked(world) == []
    assert requests(world) == []


def test_a_process_that_dies_without_notice_leaves_nothing() -> None:
    world, one = failing()

    def die(_: object) -> None:
        raise SystemExit

    world.told.during = die
    with pytest.raises(SystemExit):
        one.run()
    assert blocked(world) == []


def test_a_run_that_parks_a_stream_is_no_failed_run() -> None:
    world = World(told=Told(fails=lambda each: each.stream == "A-1"))
    world.append("A-1")
    Function(world, attempts=1).run()
    world.append("B-1")
    assert blocked(world) == []
    assert requests(world)[1:] == []  # the look itself


@pytest.mark.parametrize("to", ["beginning", "tail"])
def test_after_a_reset_the_failure_before_it_is_not_shown(to: str) -> None:
    world, one = failing("A-1")
    one.run()
    Groups(world.feeds.reader(world.feeds.streams)).reset("board", to)
    world.append("B-1")
    assert blocked(world) == []


def test_after_a_pause_the_failure_is_shown_until_the_group_gets_on() -> None:
    world, one = failing("A-1")
    one.run()
    groups = Groups(world.feeds.reader(world.feeds.streams))
    groups.pause("board")
    groups.resume("board")
    assert [each.stream for each in blocked(world)] == ["A-1"]
    world.told.fails = lambda _: False
    one.run()
    world.append("B-1")
    assert blocked(world) == []


def test_of_several_members_each_has_its_own() -> None:
    world = World(told=Told(fails=lambda _: True))
    names = [f"A-{number}" for number in range(8)]
    for name in names:
        world.append(name)
    one = Function(world, on_failure="block", attempts=1, members=2)
    sharing = one.one.reactor.member.reaction.sharing
    for share in (0, 1):
        told = message(0, 8)
        told["attributes"]["MessageGroupId"] = f"0/{share}" if share else "0"
        one.run(told)
    assert [each.member for each in blocked(world)] == [0, 1]
    assert [sharing.share_of(each.stream) for each in blocked(world)] == [0, 1]
    world.told.fails = lambda _: False
    one.run(message(0, 8))
    assert [each.member for each in blocked(world)] == [1]


@pytest.mark.parametrize(
    ("level", "sealed", "cause"),
    [
        (logging.INFO, False, "ValueError"),
        (logging.DEBUG, False, "ValueError: no"),
        (logging.DEBUG, True, "ValueError: (message not stored, because it may quote sealed data)"),
    ],
)
def test_the_words_of_an_error_are_kept_where_the_log_has_them(level: int, sealed: bool, cause: str) -> None:
    world, one = failing("A-1", sealed=sealed)
    one.log.log_level = level
    one.run()
    assert [each.cause for each in blocked(world)] == [cause]


@pytest.mark.parametrize("error", [Unavailable("an outage"), RuntimeError("a defect")])
def test_a_record_that_cannot_be_written_is_logged_and_changes_nothing(error: Exception) -> None:
    world, one = failing("A-1")

    def fail(op: Op) -> None:
        if isinstance(op, Put) and PLACE in repr(op):
            raise error

    world.feeds.fault = fail
    answer = one.one.handle({"Records": [message(0, 1)]}, Context())  # type: ignore[arg-type]
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m"}]}
    assert len(one.log.of("a failed run could not be recorded")) == 1
    assert blocked(world) == []


def test_of_a_group_that_is_deleted_no_failed_run_is_left() -> None:
    world, one = failing("A-1")
    one.run()
    Groups(world.feeds.reader(world.feeds.streams)).delete("board")
    assert not [each for each in world.feeds.tables.items("index") if "board" in each["p"]["S"]]


def test_a_failed_run_as_json_and_in_words() -> None:
    world, one = failing("A-1")
    one.run(message(0, 1, receives=2))
    groups = Groups(world.feeds.reader(world.feeds.streams), now=lambda: 0)
    (shown,) = groups.standing("board")
    assert standing_view(shown)["blocked"] == [
        {
            "member": 0,
            "cause": "ValueError",
            "stream": "A-1",
            "index": 0,
            "since": one.now.told(0),
            "last": one.now.told(0),
            "runs": 1,
            "nextRun": one.now.told(4),
        }
    ]
    assert shown.blocked[0].words == (
        f"blocked by A-1 at 0 since {one.now.told(0)}, 1 run failed, the last at {one.now.told(0)}: ValueError;"
        f" the next run is expected at {one.now.told(4)}"
    )
