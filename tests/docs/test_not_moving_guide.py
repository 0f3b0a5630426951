"""docs/guide/not-moving.md: `epochal groups show` says what the page says that it says."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

from epochal import Delivery, reaction
from epochal.cli.main import epochal
from epochal.hosting.failure_records import FailureRecords
from epochal.index.group_state import Unit
from epochal.reactions.group_member import Member, stand_in
from tests.support.terminal import Terminal

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "not-moving.md").read_text("utf-8")


def test_groups_show_says_what_the_table_has(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = False

    def handle(delivery: Delivery) -> None:
        if failing:
            raise ValueError("no such gate")

    board = ModuleType("board")
    board.keep = reaction(name="board-1", categories=["Order"], attempts=2)(handle)  # type: ignore[attr-defined]
    board.block = reaction(  # type: ignore[attr-defined]
        name="block-1", categories=["Order"], attempts=2, on_failure="block"
    )(handle)
    monkeypatch.setitem(sys.modules, "board", board)
    terminal, shown = Terminal(), list[str]()

    def show(group: str = "board-1") -> None:
        result = terminal.run("groups", "show", group)
        shown.append(result.output or str(result.exception))

    def append(type_: str) -> None:
        terminal.lines("append", "Order-1", type_)
        terminal.index()

    append("Placed")
    show()
    terminal.run("react", "board:keep", "--until-done")
    show()
    append("Shipped")
    terminal.lines("groups", "pause", "board-1")
    show()
    terminal.lines("groups", "resume", "board-1")
    failing = True
    terminal.run("react", "board:keep", "--until-done")
    show()
    terminal.run("react", "board:block", "--until-done")
    show("block-1")
    (tail, *_) = terminal.deployment.feed.partitions()
    member = Member(reaction=stand_in("new-1"), reader=terminal.deployment.feed)
    records = FailureRecords(member=member, keeps_words=False, on_unrecorded=pytest.fail)
    records.record_failed_load(Unit(tail.partition), ModuleNotFoundError("No module named 'gates'"), 2.0)
    show("new-1")

    first_cells = re.findall(r"^\| (`[^|]*) \|", TEXT.partition("## It has never run")[0], re.MULTILINE)
    phrases = [re.findall(r"`([^`]+)`", cell)[0] for cell in first_cells]
    assert len(phrases) == 8
    # The last is of an indexer that fails; tests/surfaces/cli hold it to that.
    assert [phrase for phrase in phrases[:-1] if phrase not in "\n".join(shown)] == []


def test_its_commands_are_those_that_there_are() -> None:
    commands = re.findall(r"`epochal ([^`]+)`|^epochal (.+)$", TEXT, re.MULTILINE)
    assert len(commands) > 12
    for words in commands:
        command: click.Command = epochal
        rest = [word for word in "".join(words).split() if not word.startswith("--version")]
        while rest and isinstance(command, click.Group):
            command = command.commands[rest.pop(0)]
