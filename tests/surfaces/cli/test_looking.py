"""Streams, a search and a conversation, on a store in memory; what shells complete, and when there is colour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from epochal.cli import main as command_line
from epochal.cli import output
from epochal.cli.main import SHELLS
from epochal.codec import json
from epochal.model.events import Event
from tests.support.terminal import Terminal


@pytest.fixture
def terminal() -> Terminal:
    """Two conversations in three streams, indexed."""
    made = Terminal()

    def add(stream: str, events: list[Event]) -> None:
        made.streams.append(stream, events)
        made.index()

    add("Order-1", [Event(type="Placed", data=b'{"sku": "A7"}', correlation_id="shop-1")])
    add("Payment-1", [Event(type="Charged", correlation_id="shop-1", causation_id="Order-1@0")])
    add("Order-1", [Event(type="Paid", correlation_id="shop-1", causation_id="Payment-1@0")])
    add("Order-2", [Event(type="Placed", correlation_id="shop-2")])
    return made


def lines(terminal: Terminal, *arguments: str) -> list[Any]:
    """What a command prints with --json."""
    ran = terminal.run(*arguments, "--json")
    assert ran.exception is None, ran.exception
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("command", [("read", "Odd-1"), ("search", "Odd"), ("trace", "odd")])
def test_no_type_and_no_text_tells_a_terminal_what_to_do(
    terminal: Terminal, command: tuple[str, ...]
) -> None:
    data = '"\x9b2J"'.encode()
    terminal.streams.append("Odd-1", [Event(type="\x1b[2J\r\nOrder-9", data=data, correlation_id="odd")])
    terminal.index()
    (line,) = terminal.lines(*command)
    assert "\\x1b[2J\\x0d\\x0aOrder-9" in line
    assert "\\x9b2J" in line


def listed(terminal: Terminal, *words: str) -> list[str]:
    (page,) = terminal.documents("streams", *words)
    return [each["stream"] for each in page["streams"]]


def test_streams_are_listed_once_by_creation_by_category_and_by_name(terminal: Terminal) -> None:
    everything = listed(terminal)
    assert sorted(everything) == ["Order-1", "Order-2", "Payment-1"]
    assert listed(terminal, "--backward") == everything[::-1]
    assert listed(terminal, "--by-name") == sorted(everything)
    assert terminal.lines("streams", "--by-name", "--limit", "2")[-1] == "next Order-2"
    assert terminal.lines("streams", "--by-name", "--from", "Order-2")[1:] == ["no more"]
    assert terminal.run("streams", "--by-name", "--backward").exit_code == 2
    assert listed(terminal, "Payment") == listed(terminal, "--prefix", "P") == ["Payment-1"]
    assert listed(terminal, "Ord") == listed(terminal, "--from", "9999-01-01T00:00Z") == []


def test_a_listing_goes_on_from_where_a_part_has_ended(terminal: Terminal) -> None:
    found, start = list[str](), tuple[str, ...]()
    while True:
        *shown, end = terminal.lines("streams", "--limit", "1", *start)
        found += [each.split()[1] for each in shown]
        if end == "no more":
            break
        start = ("--from", end.removeprefix("next "))
    assert found == listed(terminal)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("a7", ["Order-1@0"]),
        ("PAYMENT", ["Payment-1@0", "Order-1@1"]),
        ("placed", ["Order-1@0", "Order-2@0"]),
        ("shop-2", ["Order-2@0"]),
        ("nothing", []),
    ],
)
def test_a_search_finds_words_in_names_types_data_and_metadata(
    terminal: Terminal, words: str, found: list[str]
) -> None:
    listed = [f"{each['stream']}@{each['index']}" for each in lines(terminal, "search", words)]
    assert sorted(listed) == sorted(found)


@pytest.mark.parametrize("named", ["shop-1", "Order-1@1"])
def test_a_trace_is_a_tree_of_causes(terminal: Terminal, named: str) -> None:
    (view,) = lines(terminal, "trace", named)
    (placed,) = view["roots"]
    (charged,) = placed["caused"]
    (paid,) = charged["caused"]
    assert [each["type"] for each in (placed, charged, paid)] == ["Placed", "Charged", "Paid"]
    assert paid["caused"] == []
    shown = terminal.run("trace", named).stdout.splitlines()
    assert [len(line) - len(line.lstrip()) for line in shown] == [0, 2, 4]


def test_a_trace_of_nothing_says_what_to_try(terminal: Terminal) -> None:
    error = terminal.run("trace", "shop-9").exception
    assert "no event among the last 500 entries" in str(error)
    assert "--items looks further back" in str(error)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_shell_needs_for_completion_is_printed(terminal: Terminal, shell: str) -> None:
    assert "_EPOCHAL_COMPLETE" in terminal.run("completion", shell).stdout


@pytest.mark.parametrize(
    ("typed", "word", "completed"),
    [("epochal stre", 1, "streams"), ("epochal watch --al", 2, "--all-groups")],
)
def test_commands_and_options_are_completed(
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    typed: str,
    word: int,
    completed: str,
) -> None:
    told = {"_EPOCHAL_COMPLETE": "zsh_complete", "COMP_WORDS": typed, "COMP_CWORD": str(word)}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match="0"):
        command_line.main([])
    assert completed in capsysbinary.readouterr().out.decode().splitlines()


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_an_error_is_coloured_on_a_terminal_alone_and_never_with_no_color(
    monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    with CliRunner().isolation(color=True) as (_, err, _):
        output.complain("it is gone")
        assert (b"\x1b[31m" in err.getvalue()) == coloured
    with CliRunner().isolation() as (_, err, _):
        output.complain("it is gone")
        assert err.getvalue() == b"epochal: it is gone\n"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["apend", "Cart-1"], "append"),
        (["index", "stauts"], "status"),
        (["read", "--limt", "3", "Cart-1"], "--limit"),
        (["--stak", "prod", "stats"], "--stack"),
    ],
)
def test_what_is_misspelt_is_answered_with_what_was_meant(
    exits: Callable[..., tuple[int, str, str]], typed: list[str], meant: str
) -> None:
    status, out, err = exits(*typed)
    assert (status, out) == (2, "")
    assert f"'{meant}'" in err
