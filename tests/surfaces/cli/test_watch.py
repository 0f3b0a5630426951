"""`watch`: tails, and how far groups are behind, look by look."""

from __future__ import annotations

import time
from typing import Any

import pytest

from epochal import Delivery, reaction
from epochal.cli import watch as command
from epochal.codec import json
from epochal.model.events import Event
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from tests.support.terminal import Terminal


@reaction(name="board", categories=["Order"])
def board(_: Delivery) -> None:
    pass


def catch_up(terminal: Terminal) -> None:
    Reactor(member=Member(reaction=board, reader=terminal.store.feed)).run(30_000, seconds=60)


@pytest.fixture
def terminal() -> Terminal:
    """A reaction that has handled one of two entries."""
    made = Terminal()
    made.streams.append("Order-1", [Event(type="Placed")])
    made.index()

    catch_up(made)
    made.streams.append("Order-1", [Event(type="Paid")])
    made.index()
    return made


def looks(terminal: Terminal, *arguments: str) -> list[Any]:
    ran = terminal.run("watch", "--for", "0", "--json", *arguments)
    assert ran.exception is None, ran.exception
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("which", [["--group", "board"], ["--all-groups"]])
def test_a_look_tells_how_far_a_reaction_is_behind(terminal: Terminal, which: list[str]) -> None:
    (look,) = looks(terminal, *which)
    (pages,) = [each for each in look["partitions"] if each["partition"] == 30_000]
    (group,) = pages["groups"]
    assert (group["group"], group["behind"], group["seconds"]) == ("board", 1, 0.0)
    shown = terminal.run("watch", "--for", "0", *which).stdout
    assert "board" in shown
    assert "1 event behind" in shown


@pytest.mark.parametrize(("stream", "types", "events"), [("Order-2", 3, 4), ("Cart-1", 2, 1)])
def test_a_look_counts_the_events_that_a_reaction_reads(
    terminal: Terminal, stream: str, types: int, events: int
) -> None:
    """As the other commands do, whatever the number of entries of the index that has them."""
    terminal.streams.append(stream, [Event(type=f"T{number}") for number in range(types)])
    terminal.index()
    (look,) = looks(terminal, "--group", "board")
    (group,) = [group for each in look["partitions"] for group in each["groups"]]
    assert (group["events"], group["ofAllEvents"]) == (events, False)
    words = f"{events} event{'' if events == 1 else 's'} behind"
    assert words in terminal.run("watch", "--for", "0", "--group", "board").stdout


def test_a_reaction_is_not_behind_where_no_event_that_it_reads_has_come(terminal: Terminal) -> None:
    catch_up(terminal)
    terminal.streams.append("Cart-1", [Event(type="Opened")])
    terminal.index()
    shown = terminal.run("watch", "--for", "0", "--group", "board").stdout
    assert "at the end of the index" in shown
    assert "behind" not in shown


def test_how_long_a_reaction_is_behind_counts_from_when_it_was_not(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(0, 1_000, 5))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    ran = terminal.run("watch", "--for", "12", "--json", "--group", "board")
    found = [json.loads(line)["partitions"] for line in ran.stdout.splitlines()]
    seconds = [each["groups"][0]["seconds"] for look in found for each in look if each["partition"] == 30_000]
    assert seconds == [0, 5, 10]


def test_a_reaction_that_was_not_behind_for_a_while_is_behind_since_it_was_last_seen_so(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    catch_up(terminal)
    now, sleeps = iter(range(0, 1_000, 5)), iter(range(100))

    def sleep(_: float) -> None:
        if next(sleeps) == 1:
            terminal.streams.append("Order-1", [Event(type="Sent")])
            terminal.index()

    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    monkeypatch.setattr(time, "sleep", sleep)
    seconds = [
        group["seconds"]
        for look in looks(terminal, "--for", "17", "--group", "board")
        for each in look["partitions"]
        for group in each["groups"]
        if each["partition"] == 30_000
    ]
    assert seconds == [0, 0, 5, 10]


def test_the_table_of_a_terminal_has_every_row(terminal: Terminal) -> None:
    found = next(iter(command.looks(terminal.store, ["board"], 1.0, 0)))
    assert found.table().row_count == len(list(found.rows())) >= 2


@pytest.mark.parametrize("seconds", ["nan", "inf"])
def test_seconds_that_never_end_are_refused(terminal: Terminal, seconds: str) -> None:
    refused = terminal.run("watch", "--for", seconds)
    assert refused.exit_code == 2
    assert "is not a number of seconds" in refused.output
