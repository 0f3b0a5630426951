"""No command says that a group is up to date while the indexer fails, lags, or nobody knows whether it works."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Iterator

import pytest

from epochal.care.head_comparison import compare_heads
from epochal.care.mender import Mender
from epochal.errors import CorruptData, Refused
from epochal.index.indexer_failures import record_failures
from epochal.index.series import register
from epochal.index.wire_batch import Ids
from epochal.plan.ops import Op, Reply, Scan
from epochal.reactions.definition import Delivery, reaction
from epochal.testing.memory import MemoryTables
from tests.support.terminal import Terminal

COMMANDS = ("groups show board", "groups show", "groups list", "index status", "stats")


@reaction(name="board", categories=["Cart"])
def board(_: Delivery) -> None: ...


@pytest.fixture(autouse=True)
def boards() -> Iterator[None]:
    module = types.ModuleType("boards")
    vars(module)["board"] = board
    sys.modules["boards"] = module
    yield
    del sys.modules["boards"]


@pytest.fixture
def terminal() -> Terminal:
    """A group that has handled all that is in the index."""
    terminal = Terminal()
    for _ in range(2):
        terminal.lines("append", "Cart-1", "Added")
    terminal.index()
    terminal.run("react", "boards:board", "--until-done")
    terminal.mappings.bring("streams")
    return terminal


def said(terminal: Terminal, command: str) -> str:
    return "\n".join(terminal.lines(*command.split()))


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table has more than the comparison reads of it."""
    monkeypatch.setattr(compare_heads, "__defaults__", (0,))


def test_a_group_is_up_to_date_where_the_index_has_all_and_the_mapping_is_well(terminal: Terminal) -> None:
    assert terminal.lines("groups", "show", "board") == ["30000  0@1  up to date  0 parked"]
    assert terminal.lines("groups", "list") == ["board  up to date  0 parked"]
    (shown,) = terminal.documents("groups", "show", "board")
    assert shown["indexer"] == {
        "pages": {
            "failure": None,
            "missing": None,
            "unknown": None,
            "works": "the index has all events of 1 stream",
        }
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_what_the_tables_have_and_the_index_lacks_is_shown(terminal: Terminal, command: str) -> None:
    terminal.lines("append", "Cart-1", "Added")
    terminal.lines("append", "Cart-2", "Added")
    found = said(terminal, command)
    assert "up to date" not in found
    assert "the index lacks 2 events of 2 streams, the oldest for 0 s" in found
    assert "the index lacks 2 events" in str(terminal.documents(*command.split()))
    terminal.index()
    terminal.run("react", "boards:board", "--until-done")
    assert "lacks" not in said(terminal, command)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("state", "result", "why"),
    [
        (
            "Enabled",
            "PROBLEM: Function call failed",
            "fails on the changes of streams: PROBLEM: Function call",
        ),
        ("Enabled", "FAILED", "fails on the changes of streams: FAILED"),
        ("Disabled", "OK", "receives no changes of streams: its mapping is disabled"),
        ("Disabling", "OK", "receives no changes of streams: its mapping is disabling"),
    ],
)
def test_a_mapping_whose_batches_fail_or_that_brings_nothing_is_shown(
    terminal: Terminal, command: str, state: str, result: str, why: str
) -> None:
    terminal.mappings.bring("tips")
    terminal.mappings.bring("streams", state=state, result=result)
    found = said(terminal, command)
    assert f"index-indexer {why}" in found
    assert "up to date" not in found
    assert why in str(terminal.documents(*command.split()))


@pytest.mark.parametrize("command", COMMANDS)
def test_an_indexer_whose_mapping_is_gone_is_shown(terminal: Terminal, command: str) -> None:
    terminal.mappings.mappings.clear()
    terminal.mappings.bring("tips")
    found = said(terminal, command)
    assert "receives no changes of streams: its mapping does not exist" in found
    assert "up to date" not in found


def test_a_mapping_of_a_kinesis_stream_is_that_of_every_table(terminal: Terminal) -> None:
    terminal.mappings.mappings.clear()
    terminal.mappings.bring(arn="arn:aws:kinesis:eu-west-1:123456789012:stream/changes", result="PROBLEM: x")
    assert "fails on the changes of streams: PROBLEM: x" in said(terminal, "groups show board")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("refused", "why"),
    [
        ("AccessDeniedException", "the credentials do not allow reading its state from Lambda"),
        ("UnknownOperationException", "its state cannot be read from Lambda"),
        ("", "Lambda has no function index-indexer"),
    ],
)
def test_where_lambda_says_nothing_and_the_table_is_large_nobody_claims_to_know(
    terminal: Terminal, large: None, command: str, refused: str, why: str
) -> None:
    terminal.mappings.refused = refused
    if not refused:
        terminal.mappings.mappings.clear()
    found = said(terminal, command)
    assert "up to date" not in found
    assert f"it is unknown whether the indexer works: {why}" in found
    assert "the table of pages is too large" in found
    assert why in str(terminal.documents(*command.split()))


@pytest.mark.parametrize("refused", ["AccessDeniedException", "UnknownOperationException"])
def test_of_a_small_table_every_head_is_compared_whatever_lambda_says(
    terminal: Terminal, refused: str
) -> None:
    terminal.mappings.refused = refused
    assert "up to date" in said(terminal, "groups show board")
    terminal.lines("append", "Cart-1", "Added")
    assert "the index lacks 1 event of 1 stream" in said(terminal, "groups show board")


def test_of_a_large_table_the_mapping_says_that_the_indexer_works(terminal: Terminal, large: None) -> None:
    assert terminal.lines("groups", "show", "board") == ["30000  0@1  up to date  0 parked"]
    assert "index-indexer receives the changes of streams" in said(terminal, "index status")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_failure_on_record_is_shown_before_what_is_missing(terminal: Terminal, command: str) -> None:
    terminal.lines("append", "Cart-1", "Added")
    driver, table = terminal.store.feed.driver, terminal.store.feed.table
    driver.run(record_failures(table, {"pages": "MissingTable: streams"}, Ids.drawn(time.time_ns(), bytes)))
    assert "the indexer has failed since " in said(terminal, command)
    driver.run(register(table, {"pages": 4}, Ids.drawn(time.time_ns(), bytes)))
    found = said(terminal, command)
    assert "deployed for 4 partitions of pages" in found
    assert "up to date" not in found


def test_who_may_not_scan_the_table_is_told_that_nobody_knows(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = MemoryTables.execute

    def refuse_scans(tables: MemoryTables, op: Op) -> Reply:
        if isinstance(op, Scan):
            raise Refused("Scan", "not authorized")
        return execute(tables, op)

    monkeypatch.setattr(MemoryTables, "execute", refuse_scans)
    assert terminal.lines("groups", "show", "board") == ["30000  0@1  up to date  0 parked"]
    terminal.mappings.refused = "AccessDeniedException"
    found = said(terminal, "groups show board")
    assert found.startswith("30000  0@1  at the end of the index  0 parked\n")
    assert "the streams of pages cannot be compared with the index" in found


def test_an_index_that_cannot_be_read_is_no_index_that_has_all(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def corrupt(*_: object) -> None:
        raise CorruptData("an epoch that cannot be read")

    monkeypatch.setattr(Mender, "behind", corrupt)
    terminal.mappings.refused = "AccessDeniedException"
    assert "cannot be compared with the index (an epoch that" in said(terminal, "stats")


def test_a_group_of_several_layouts_has_the_state_of_which_most_is_wrong() -> None:
    terminal = Terminal(layouts=("pages", "tips"))
    terminal.lines("append", "Cart-1", "Added")
    terminal.lines("tips", "append", "Cart-2", "Added")
    terminal.index()
    terminal.run("react", "boards:board", "--until-done")
    terminal.mappings.bring("streams")
    assert "its mapping does not exist" in said(terminal, "groups list")
    terminal.mappings.bring("tips")
    assert said(terminal, "groups list") == "board  up to date  0 parked"
    terminal.lines("tips", "append", "Cart-2", "Added")
    assert said(terminal, "groups list") == (
        "board  at the end of the index  0 parked  the index lacks 1 event of 1 stream"
    )
    shown = terminal.lines("groups", "show", "board")
    assert shown == [
        "0  0@1  at the end of the index  0 parked",
        "30000  0@1  up to date  0 parked",
        "tips  the index lacks 1 event of 1 stream",
    ]
