"""react, and parked list, replay, discard."""

from __future__ import annotations

import re
import sys
import time
import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from epochal.care import status
from epochal.care.status import REQUESTS, PartitionStanding
from epochal.cli import inputs
from epochal.errors import GroupMissing, InvalidInput, Refused
from epochal.index.checkpoints import SERIES, tip_key
from epochal.index.indexer_failures import record_failures
from epochal.index.series import register
from epochal.index.wire_batch import Ids
from epochal.plan.ops import Get, Op, Reply, Scan
from epochal.reactions.definition import Delivery, reaction
from epochal.testing.memory import MemoryTables
from tests.support.failed_runs import DUE, LAST, block
from tests.support.terminal import Terminal

HANDLED: list[tuple[str, int]] = []
FAILING: set[str] = set()


@reaction(name="board", categories=["Cart"], attempts=1)
def board(delivery: Delivery) -> None:
    if delivery.stream in FAILING:
        raise ValueError("no")
    HANDLED.extend((delivery.stream, event.index) for event in delivery.events)


@pytest.fixture(autouse=True)
def _module() -> Iterator[None]:
    module = types.ModuleType("boards")
    module.board = board  # type: ignore[attr-defined]
    sys.modules["boards"] = module
    HANDLED.clear()
    FAILING.clear()
    path = list(sys.path)
    yield
    sys.path[:] = path
    del sys.modules["boards"]


@pytest.fixture
def filled(terminal: Terminal) -> Terminal:
    for stream in ("Cart-1", "Cart-2", "User-1"):
        terminal.lines("append", stream, "Opened")
    terminal.lines("append", "Cart-1", "Added")
    terminal.index()
    return terminal


def test_a_reaction_is_run_until_everything_is_handled(filled: Terminal) -> None:
    (told,) = filled.documents("react", "boards:board", "--until-done")
    assert sorted(HANDLED) == [("Cart-1", 0), ("Cart-1", 1), ("Cart-2", 0)]
    assert told == {"partition": 0, "checkpoint": "0@1", "events": 3, "parked": [], "blocked": None}
    assert filled.lines("react", "boards:board", "--until-done") == []


def test_a_category_that_is_misspelt_is_warned_of_beside_what_there_is(filled: Terminal) -> None:
    module = sys.modules["boards"]
    module.bored = replace(board, name="bored", categories=frozenset({"Crat"}))  # type: ignore[attr-defined]
    result = filled.run("react", "boards:bored", "--until-done")
    words = (
        "warning: no stream of the category 'Crat' has been seen since the group began; did you mean 'Cart'?"
    )
    assert words in result.stderr
    assert "warning" not in filled.run("react", "boards:board", "--until-done").stderr


def test_a_stream_that_fails_is_told_listed_and_replayed(filled: Terminal) -> None:
    FAILING.add("Cart-1")
    lines = filled.lines("react", "boards:board", "--until-done")
    assert lines == ["0  0@1  1 handled", "0  parked Cart-1 at 0: ValueError: no"]
    (listed,) = filled.documents("parked", "list", "board")
    assert (listed["stream"], listed["index"], listed["cause"], listed["attempts"]) == (
        "Cart-1",
        0,
        "ValueError: no",
        1,
    )
    still = filled.run("parked", "replay", "boards:board", "Cart-1")
    assert (still.exit_code, still.stdout) == (1, "Cart-1  0  still parked: ValueError: no\n")
    FAILING.clear()
    assert filled.lines("parked", "replay", "boards:board") == ["Cart-1  2  goes on"]
    assert filled.lines("parked", "list", "board") == []
    assert HANDLED == [("Cart-2", 0), ("Cart-1", 0), ("Cart-1", 1)]


def test_a_script_sees_by_the_status_that_a_stream_blocks_the_reaction_and_not_that_one_is_parked(
    filled: Terminal,
) -> None:
    FAILING.add("Cart-1")
    module = sys.modules["boards"]
    module.strict = replace(board, name="strict", on_failure="block")  # type: ignore[attr-defined]
    ran = filled.run("react", "boards:strict", "--until-done")
    assert ran.exit_code == 1
    assert "0  blocked by Cart-1: ValueError: no" in ran.stdout
    assert filled.run("react", "boards:board", "--until-done").exit_code == 0
    FAILING.clear()
    assert filled.run("react", "boards:strict", "--until-done").exit_code == 0


def test_why_a_stream_is_parked_is_shown_with_its_trace_and_said_while_it_happens(filled: Terminal) -> None:
    FAILING.add("Cart-1")
    ran = filled.run("react", "boards:board", "--until-done")
    first, *trace, second = ran.stderr.splitlines()
    assert first == "Cart-1 at 0 and 1 more, attempt 1: ValueError: no"
    assert second == "Cart-1 at 0, attempt 1: ValueError: no"  # of the same trace
    assert trace[0].startswith(f'  File "{__file__}", line ')
    assert trace[-1] == "ValueError"
    head, cause, *shown = filled.lines("parked", "show", "board", "Cart-1")
    assert head == "Cart-1  0"
    assert re.fullmatch(r"ValueError: no, \S+, after 1 attempt", cause)
    assert shown == trace
    (document,) = filled.documents("parked", "show", "board", "Cart-1")
    assert document["trace"].splitlines() == trace


def test_what_a_stream_waits_for_can_be_given_up_once_that_is_confirmed(filled: Terminal) -> None:
    FAILING.add("Cart-1")
    filled.lines("react", "boards:board", "--until-done")
    refused = filled.run("parked", "discard", "board", "Cart-1", stdin="n\n")
    assert refused.exit_code == 1
    assert filled.lines("parked", "discard", "board", "Cart-1", "--one", "--yes") == [
        "Cart-1  1  still parked"
    ]
    assert filled.documents("parked", "discard", "board", "Cart-1", "--yes") == [
        {"stream": "Cart-1", "next": 2, "unparked": True}
    ]
    assert filled.lines("parked", "list", "board") == []


def test_one_event_is_given_up_that_was_asked_about_and_no_other(
    filled: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    FAILING.add("Cart-1")
    filled.lines("react", "boards:board", "--until-done")

    def meanwhile(question: str, *, yes: bool) -> None:
        if "event 0" in question:
            monkeypatch.undo()
            filled.lines("parked", "discard", "board", "Cart-1", "--one", "--yes")

    monkeypatch.setattr(inputs, "confirm", meanwhile)
    late = filled.run("parked", "discard", "board", "Cart-1", "--one")
    assert "now waits at 1, not at 0" in str(late.exception)
    assert filled.documents("parked", "list", "board")[0]["index"] == 1


@pytest.mark.parametrize(
    "command",
    [
        ("parked", "list", "bord"),
        ("parked", "show", "bord", "Cart-1"),
        ("parked", "discard", "bord", "Cart-1", "--yes"),
        ("index", "status", "--group", "bord"),
    ],
)
def test_a_group_that_never_began_is_an_error_and_not_one_without_troubles(
    filled: Terminal, command: tuple[str, ...]
) -> None:
    filled.run("react", "boards:board", "--until-done")
    result = filled.run(*command)
    assert isinstance(result.exception, GroupMissing)
    assert result.exception.group == "bord"


def test_a_stream_that_is_not_parked_is_said_to_be_none(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    result = filled.run("parked", "discard", "board", "Cart-9", "--yes")
    assert isinstance(result.exception, InvalidInput)
    assert "'Cart-9' is not parked by board" in str(result.exception)


def test_a_reaction_that_is_awaited_is_run_like_any_other(filled: Terminal) -> None:
    @reaction(name="awaited", categories=["Cart"], attempts=1)
    async def awaited(delivery: Delivery) -> None:
        HANDLED.extend((delivery.stream, event.index) for event in delivery.events)

    sys.modules["boards"].awaited = awaited  # type: ignore[attr-defined]
    filled.lines("react", "boards:awaited", "--until-done")
    assert sorted(HANDLED) == [("Cart-1", 0), ("Cart-1", 1), ("Cart-2", 0)]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("boards", "must be module:name"),
        (":board", "must be module:name"),
        ("nowhere_at_all:board", "no module nowhere_at_all"),
        ("boards:nothing", "nothing of boards is not a reaction"),
    ],
)
def test_a_target_that_names_no_reaction_is_refused(filled: Terminal, target: str, why: str) -> None:
    result = filled.run("react", target)
    assert isinstance(result.exception, InvalidInput)
    assert why in str(result.exception)


def test_a_group_is_shown_set_back_and_given_everything_again(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    (shown,) = filled.documents("groups", "show", "board")[0]["partitions"]
    assert (shown["checkpoint"], shown["events"], shown["paused"]) == ("0@1", 0, None)
    (planned,) = filled.documents("groups", "reset", "board", "--to", "beginning", "--dry-run")
    assert [(each["again"], each["skipped"]) for each in planned["partitions"]] == [(4, 0)]
    (wanted,) = filled.documents("groups", "reset", "boards:board", "--to", "beginning", "--dry-run")
    assert [each["again"] for each in wanted["partitions"]] == [3]
    assert filled.lines("groups", "show", "board") == ["0  0@1  up to date  0 parked"]
    HANDLED.clear()
    said = filled.lines("groups", "reset", "board", "--to", "0@0", "--partition", "0", "--yes")
    assert said == ["0  0@1 → 0@0  4 again  0 skipped"]
    filled.run("react", "boards:board", "--until-done")
    assert len(HANDLED) == 3


def test_a_group_pauses_and_goes_on(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    assert filled.lines("groups", "pause", "board") == ["board pauses"]
    filled.lines("append", "Cart-2", "Added")
    filled.index()
    assert filled.lines("react", "boards:board", "--until-done") == []
    (line,) = filled.lines("groups", "show", "board")
    assert "1 event behind" in line
    assert "paused since 2" in line
    assert filled.lines("groups", "resume", "board") == ["board goes on"]
    assert filled.lines("react", "boards:board", "--until-done") == ["0  0@2  1 handled"]


def test_the_function_of_a_group_that_goes_on_is_woken_in_every_partition_each_time(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    queue = filled.queues.sent["index-reaction-board.fifo"] = []
    filled.lines("groups", "pause", "board")
    assert queue == []
    filled.lines("groups", "resume", "board")
    messages = [(sent["MessageGroupId"].partition("-")[0], sent["MessageBody"]) for sent in queue]
    assert messages == [("0", "1"), ("0!steered", "1")]
    filled.lines("groups", "reset", "board", "--to", "beginning", "--dry-run")
    assert len(queue) == 2
    filled.lines("groups", "reset", "board", "--to", "beginning", "--yes")
    filled.lines("groups", "resume", "board")
    assert len({each["MessageDeduplicationId"] for each in queue}) == len(queue) == 6


def test_a_group_goes_on_though_its_queue_may_not_be_asked_for(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    filled.lines("groups", "pause", "board")
    filled.queues.refused = "AccessDenied"
    resumed = filled.run("groups", "resume", "board")
    assert (resumed.exit_code, resumed.stdout) == (0, "board goes on\n")
    assert "continues at its next wake-up" in resumed.stderr


def test_who_deletes_a_group_that_a_function_runs_is_told(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    assert "if its reaction is run again" in filled.run("groups", "delete", "board", stdin="n").output
    filled.queues.sent["index-reaction-board.fifo"] = []
    assert "delete the function first" in filled.run("groups", "delete", "board", stdin="n").output


def test_a_group_begins_where_another_is_and_is_deleted(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    assert filled.lines("groups", "begin", "panel", "--like", "board") == [
        "panel begins at the checkpoints of board"
    ]
    assert filled.lines("groups", "show", "panel") == ["0  0@1  up to date  0 parked"]
    assert filled.lines("groups", "delete", "panel", "--yes") == ["panel is deleted"]
    assert isinstance(filled.run("groups", "show", "panel").exception, GroupMissing)


def test_a_checkpoint_of_no_partition_is_refused(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    refused = filled.run("groups", "reset", "board", "--to", "0@0", "--yes").exception
    assert "partition: must be given" in str(refused)


def refuse_partitions(terminal: Terminal) -> None:
    """As an indexer does that is deployed for another number of partitions."""
    driver = terminal.store.feed.driver
    ids = Ids.drawn(0, bytes)
    driver.run(register(terminal.store.feed.table, {"tips": 4}, ids))


@pytest.mark.parametrize("command", ["groups show board", "index status", "stats"])
def test_while_the_indexer_does_not_start_no_command_says_that_all_is_well(
    filled: Terminal, command: str
) -> None:
    filled.run("react", "boards:board", "--until-done")
    refuse_partitions(filled)
    said = "\n".join(filled.lines(*command.split()))
    assert "up to date" not in said
    assert "the indexer has failed since" in said
    assert "deployed for 4 partitions of tips, and the index has 1" in said
    assert "the indexer has failed since" in str(filled.documents(*command.split()))


@pytest.mark.parametrize("command", ["groups show board", "groups list", "index status", "stats"])
def test_while_the_indexer_fails_at_every_batch_no_command_says_that_all_is_well(
    filled: Terminal, command: str
) -> None:
    filled.run("react", "boards:board", "--until-done")
    driver, table = filled.store.feed.driver, filled.store.feed.table
    driver.run(record_failures(table, {"tips": "MissingTable: streams"}, Ids.drawn(time.time_ns(), bytes)))
    said = "\n".join(filled.lines(*command.split()))
    assert "up to date" not in said
    assert "the indexer has failed since " in said
    assert "MissingTable: streams" in said
    assert "MissingTable: streams" in str(filled.documents(*command.split()))


def test_groups_show_has_the_stream_and_the_cause_of_the_last_failure(filled: Terminal) -> None:
    FAILING.update(("Cart-1", "Cart-2"))
    filled.run("react", "boards:board", "--until-done")
    (shown,) = filled.documents("groups", "show", "board")[0]["partitions"]
    parked = filled.documents("parked", "list", "board")
    last = max(parked, key=lambda each: each["since"])
    assert shown["lastFailure"] == {
        name: last[name] for name in ("stream", "index", "cause", "attempts", "since")
    }
    said = filled.lines("groups", "show", "board")
    assert any(
        f"{last['stream']} is parked at {last['index']} since {last['since']}" in line for line in said
    )
    assert any(last["cause"] in line for line in said)


@pytest.mark.parametrize(
    "command", ["groups show board", "groups list", "stats", "index status --group board"]
)
def test_a_group_that_is_blocked_is_shown_until_when_and_why(filled: Terminal, command: str) -> None:
    filled.run("react", "boards:board", "--until-done")
    filled.lines("append", "Cart-1", "Added")
    filled.index()
    assert "blocked by" not in "\n".join(filled.lines(*command.split()))
    block(filled.store.feed.driver, filled.store.feed.table, "Cart-1")
    said = "\n".join(filled.lines(*command.split()))
    assert f"blocked by Cart-1 at 0 since {LAST}, 1 run failed, the last at {LAST}: ValueError;" in said
    assert f"the next run is expected at {DUE}" in said
    assert "'cause': 'ValueError'" in str(filled.documents(*command.split()))


@pytest.mark.parametrize(
    "command", ["groups show strict", "groups list", "stats", "index status --group strict"]
)
def test_another_terminal_shows_by_what_a_process_is_blocked(filled: Terminal, command: str) -> None:
    FAILING.add("Cart-1")
    vars(sys.modules["boards"])["strict"] = replace(board, name="strict", on_failure="block")
    filled.run("react", "boards:strict", "--until-done")
    said = "\n".join(filled.lines(*command.split()))
    assert "blocked by Cart-1 at 0 since " in said
    assert "1 run failed" in said
    assert ": ValueError; its process has ended" in said
    assert "no" not in [run["cause"] for run in filled.documents("groups", "list")[0]["blocked"]]
    FAILING.clear()
    filled.run("react", "boards:strict", "--until-done")
    assert "blocked" not in "\n".join(filled.lines(*command.split()))


def test_another_terminal_shows_what_a_process_ended_with(
    filled: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.run("react", "boards:board", "--until-done")
    filled.lines("append", "Cart-1", "Added")
    filled.index()

    def fail(*_: object) -> None:
        raise RuntimeError("of Ann")

    with monkeypatch.context() as patched:
        patched.setattr("epochal.reactions.reactor.Run.handle_page", fail)
        assert isinstance(filled.run("react", "boards:board", "--until-done").exception, RuntimeError)
    said = "\n".join(filled.lines("groups", "show", "board"))
    assert ": RuntimeError; its process has ended" in said
    assert "Ann" not in repr([*filled.tables.items(filled.store.feed.table)])
    assert filled.documents("groups", "show", "board")[0]["partitions"][0]["blocked"][0]["nextRun"] is None


def test_groups_list_and_show_without_a_group_have_every_group(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    filled.lines("groups", "begin", "panel", "--like", "board")
    filled.lines("groups", "pause", "panel")
    for _ in range(2):
        filled.lines("append", "Cart-1", "Added")
    filled.index()
    for command in (("groups", "list"), ("groups", "show")):
        board, panel = filled.lines(*command)
        assert board.startswith("board  2 events behind, ")
        assert panel.startswith("panel  2 events behind, of all events, ")
        assert "paused since" not in board
        assert "paused since" in panel
        found = filled.documents(*command)
        assert [(each["group"], each["events"], each["parked"]) for each in found] == [
            ("board", 2, 0),
            ("panel", 2, 0),
        ]


def test_stats_have_every_group_in_the_words_of_groups_list(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    filled.lines("groups", "begin", "panel", "--like", "board")
    filled.lines("groups", "pause", "panel")
    filled.lines("append", "Cart-1", "Added")
    filled.index()
    block(filled.store.feed.driver, filled.store.feed.table, "Cart-1")
    listed = dict(line.split("  ", 1) for line in filled.lines("groups", "list"))
    assert listed.keys() == {"board", "panel"}
    said = filled.lines("stats")
    for group, words in listed.items():
        (line,) = [line for line in said if line.startswith(f"groups {group} ")]
        assert line.removeprefix(f"groups {group} ").lstrip() == words
    (shown,) = filled.documents("stats")
    assert shown["allGroups"]
    assert shown["groups"] == {each.pop("group"): each for each in filled.documents("groups", "list")}


def test_stats_look_for_groups_by_few_requests_and_say_that_some_may_be_missing(
    filled: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.run("react", "boards:board", "--until-done")
    for group in ("panel", "screen", "wall"):
        filled.lines("groups", "begin", group, "--like", "board")
    execute, index, scans = MemoryTables.execute, filled.store.feed.table, list[Op]()

    def scan_an_item(tables: MemoryTables, op: Op) -> Reply:
        if isinstance(op, Scan) and op.table == index:
            scans.append(op)
            op = replace(op, limit=1)
        return execute(tables, op)

    monkeypatch.setattr(MemoryTables, "execute", scan_an_item)
    said = [" ".join(line.split()) for line in filled.lines("stats")]
    assert len(scans) == REQUESTS
    assert (
        "groups (others) there may be others: the index is large, and only `epochal groups list` reads all of it"
        in said
    )
    assert filled.documents("stats")[0]["allGroups"] is False


def test_stats_say_of_groups_that_the_credentials_may_not_look_for_them(
    filled: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute, index = MemoryTables.execute, filled.store.feed.table

    def refuse(tables: MemoryTables, op: Op) -> Reply:
        if isinstance(op, Scan) and op.table == index:
            raise Refused("Scan", "not authorized")
        return execute(tables, op)

    monkeypatch.setattr(MemoryTables, "execute", refuse)
    (line,) = [line for line in filled.lines("stats") if line.startswith("groups ")]
    assert " ".join(line.split()) == "groups (others) there may be others: Scan was denied: not authorized"
    assert filled.documents("stats")[0]["allGroups"] is False


def test_groups_list_tells_of_an_indexer_that_does_not_start(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    refuse_partitions(filled)
    (line,) = filled.lines("groups", "list")
    assert line.startswith(
        "board  at the end of an index that gets no events  0 parked  the indexer has failed since"
    )


def test_groups_show_of_a_reaction_counts_the_events_that_it_wants_alone(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    for _ in range(2):
        filled.lines("append", "User-1", "Renamed")
    filled.index()
    for name in ("board", "boards:board"):
        (wanted,) = filled.documents("groups", "show", name)[0]["partitions"]
        assert (wanted["events"], wanted["ofAllEvents"]) == (0, False)
    filled.lines("append", "Cart-1", "Added")
    filled.index()
    for name in ("board", "boards:board"):
        (wanted,) = filled.documents("groups", "show", name)[0]["partitions"]
        assert (wanted["events"], wanted["ofAllEvents"]) == (1, False)
    assert re.search(r"  1 event behind, \d+ s  ", filled.lines("groups", "show", "board")[0])


@pytest.mark.parametrize("which", [["--group", "board"], ["--all-groups"]])
def test_the_status_of_the_index_counts_the_events_that_a_group_reads(
    filled: Terminal, which: list[str]
) -> None:
    filled.run("react", "boards:board", "--until-done")
    for _ in range(2):
        filled.lines("append", "User-1", "Renamed")
    filled.lines("append", "Cart-1", "Added")
    filled.index()
    (partition,) = filled.documents("index", "status", *which)[0]["partitions"]
    (group,) = partition["groups"]
    assert (group["events"], group["ofAllEvents"], group["behind"]) == (1, False, 1)
    assert ", 1 event behind, " in filled.lines("index", "status", *which)[1]


@pytest.mark.parametrize("moment", ["before its partitions are read", "after its partitions are read"])
def test_a_group_that_is_deleted_while_the_status_of_the_index_is_read_is_left_out(
    filled: Terminal, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    filled.run("react", "boards:board", "--until-done")
    filled.lines("groups", "begin", "panel", "--like", "board")

    def standings(*arguments: Any) -> list[PartitionStanding]:
        if moment.startswith("before"):
            filled.store.deployment.groups.delete("panel")
        partitions = list(status.standings(*arguments))
        if moment.startswith("after"):
            filled.store.deployment.groups.delete("panel")
        return partitions

    monkeypatch.setattr("epochal.cli.index.standings", standings)
    (partition,) = filled.documents("index", "status", "--all-groups")[0]["partitions"]
    assert [group["group"] for group in partition["groups"]] == ["board"]


def test_a_group_that_is_named_and_deleted_while_the_status_is_read_is_missing(
    filled: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.run("react", "boards:board", "--until-done")

    def standings(*arguments: Any) -> list[PartitionStanding]:
        partitions = list(status.standings(*arguments))
        filled.store.deployment.groups.delete("board")
        return partitions

    monkeypatch.setattr("epochal.cli.index.standings", standings)
    assert isinstance(filled.run("index", "status", "--group", "board").exception, GroupMissing)


def test_a_group_that_has_not_said_what_it_reads_is_behind_of_all_events(filled: Terminal) -> None:
    filled.run("react", "boards:board", "--until-done")
    filled.lines("groups", "begin", "panel", "--like", "board")
    filled.lines("append", "User-1", "Renamed")
    filled.index()
    assert "  1 event behind, of all events, " in filled.lines("groups", "show", "panel")[0]
    board, panel = filled.lines("groups", "list")
    assert board.startswith("board  up to date  ")
    assert panel.startswith("panel  1 event behind, of all events, ")
    listed = filled.documents("groups", "list")
    assert [(each["events"], each["ofAllEvents"]) for each in listed] == [(0, False), (1, True)]


@pytest.mark.parametrize("named", ["board", "boards:board"])
def test_showing_a_group_reads_once_which_partitions_there_are_and_once_more_to_compare_heads(
    filled: Terminal, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    filled.run("react", "boards:board", "--until-done")
    execute, read = filled.tables.execute, list[Op]()

    def counted(op: Op) -> Reply:
        if isinstance(op, Get) and op.key == tip_key(SERIES):
            read.append(op)
        return execute(op)

    monkeypatch.setattr(filled.tables, "execute", counted)
    filled.lines("groups", "show", named)
    assert len(read) == 2


@pytest.mark.parametrize("place", ["beginning", "tail"])
def test_a_reset_that_names_its_place_without_the_option_says_how(filled: Terminal, place: str) -> None:
    filled.run("react", "boards:board", "--until-done")
    refused = filled.run("groups", "reset", "board", place)
    assert refused.exit_code == 2
    assert f"epochal groups reset board --to {place}" in refused.output
    assert "epochal groups reset board --to beginning" in filled.run("groups", "reset", "board").output
    assert filled.lines("groups", "show", "board") == ["0  0@1  up to date  0 parked"]
