"""aggregate append, show and events."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from epochal.cli.inputs import NotThere
from epochal.cli.main import epochal
from epochal.cli.target import OpenedStore
from epochal.errors import EpochalError, InvalidInput, WrongExpectedVersion
from tests.support.terminal import Terminal

CART = ("order", "7")


def begun(terminal: Terminal) -> str:
    """An aggregate with a first event; its lock."""
    (made,) = terminal.documents("aggregate", "append", *CART, "Placed", '{"n": 1}', "--snapshot", '{"n": 1}')
    lock: str = made["lock"]
    return lock


def test_an_appended_event_is_shown_after_its_snapshot(terminal: Terminal) -> None:
    (made,) = terminal.documents(
        "aggregate", "append", *CART, "Placed", '{"total": 1.10}', "--snapshot", '{"total": 1.10}'
    )
    assert (made["aggregate"], made["first"], made["lastSeqNr"]) == ("order-7", 1, 1)
    assert (made["version"], made["lock"]) == (1, "1.1")
    terminal.lines("aggregate", "append", *CART, "Paid", "--expected", "1.1", "--at", "2013-01-01T10:00:00Z")
    (shown,) = terminal.documents("aggregate", "show", *CART)
    assert (shown["snapshot"], shown["snapshotSeqNr"]) == ({"total": Decimal("1.10")}, 1)
    assert (shown["version"], shown["lastSeqNr"], shown["lock"]) == (2, 2, "2.2")
    (event,) = shown["events"]
    assert event == {
        "seqNr": 2,
        "type": "Paid",
        "occurredAt": "2013-01-01T10:00:00.0000000+00:00",
        "data": None,
    }


def test_people_get_lines(terminal: Terminal) -> None:
    at = ("--at", "2013-01-01T10:00:00Z")
    assert terminal.lines("aggregate", "append", *CART, "Placed", "1", "--snapshot", "{}", *at) == [
        "order-7: 1 event, now at version 1"
    ]
    terminal.lines("aggregate", "append", *CART, "Paid", "2", *at)
    assert terminal.lines("aggregate", "show", *CART) == [
        "aggregate  order-7",
        "version    2",
        "last event 2",
        "lock       2.2",
        "snapshot   @1 {}",
        "order-7       2  2013-01-01T10:00:00  Paid  2",
    ]


def test_several_events_are_one_append(terminal: Terminal) -> None:
    begun(terminal)
    lines = '{"type": "A", "data": 1}\n{"type": "B", "data": 2, "occurredAt": "2013-01-01T00:00:00Z"}\n'
    (made,) = terminal.documents("aggregate", "append", *CART, "--events", "-", stdin=lines)
    assert (made["first"], made["lastSeqNr"], made["version"]) == (2, 3, 2)


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ((), range(1, 206)),
        (("--from", "100"), range(100, 206)),
        (("--from", "99", "--limit", "3"), range(99, 102)),
    ],
)
def test_events_are_printed_from_a_number_on(
    terminal: Terminal, options: tuple[str, ...], numbers: range
) -> None:
    begun(terminal)
    for _ in range(3):
        terminal.lines("aggregate", "append", *CART, "--events", "-", stdin='{"type": "A", "data": 1}\n' * 68)
    found = terminal.documents("aggregate", "events", *CART, *options)
    assert [each["seqNr"] for each in found] == list(numbers)


@pytest.mark.parametrize("expected", ["no_stream", "0", "2", "2.2"])
def test_an_expectation_that_fails_is_an_error_and_nothing_is_written(
    terminal: Terminal, expected: str
) -> None:
    begun(terminal)
    result = terminal.run(
        "aggregate", "append", *CART, "Paid", "1", "--snapshot", "{}", "--expected", expected
    )
    assert isinstance(result.exception, WrongExpectedVersion)
    assert len(terminal.lines("aggregate", "events", *CART)) == 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("append", "order", "", "Placed", "1", "--snapshot", "{}"), "value"),
        (("append", "or der", "1", "Placed", "1", "--snapshot", "{}"), "type"),
        (("append", *CART, "Placed", "{"), "DATA"),
        (("append", *CART, "Placed", "1"), "snapshot"),
        (("append", *CART, "Placed", "1", "--snapshot", "{"), "--snapshot"),
        (("append", *CART, "Placed", "1", "--snapshot", "{}", "--at", "noon"), "--at"),
        (("append", *CART, "Placed", "1", "--snapshot", "{}", "--expected", "x"), "--expected"),
        (("append", *CART, "--events", '[{"type": "A"}]', "--snapshot", "{}"), "events[0].data"),
        (("append", *CART, "--events", "[]", "--snapshot", "{}"), "events"),
    ],
)
def test_input_that_breaks_a_rule_is_refused_by_name(
    terminal: Terminal, arguments: tuple[str, ...], field: str
) -> None:
    result = terminal.run("aggregate", *arguments)
    assert isinstance(result.exception, InvalidInput)
    assert result.exception.field == field
    assert list(terminal.tables.items("snapshot")) == []


@pytest.mark.parametrize(
    "arguments",
    [(), ("Placed", "1", "--events", "[]"), ("--events", "[]", "--at", "2013-01-01T10:00:00Z")],
)
def test_a_command_that_makes_no_sense_is_told_so(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    assert terminal.run("aggregate", "append", *CART, *arguments).exit_code == 2


@pytest.mark.parametrize("command", ["show", "events"])
def test_an_aggregate_that_is_not_there_is_an_error(terminal: Terminal, command: str) -> None:
    assert isinstance(terminal.run("aggregate", command, *CART).exception, NotThere)


def test_where_no_tables_of_aggregates_are_named_the_option_is(terminal: Terminal) -> None:
    deployment = terminal.store.deployment
    tables = {kind: table for kind, table in deployment.settings.tables.items() if kind != "journal"}
    bare = replace(deployment, settings=replace(deployment.settings, tables=tables))
    store: OpenedStore = replace(terminal.store, deployment=bare)
    result = CliRunner().invoke(epochal, ["aggregate", "show", *CART], obj=lambda: store)
    assert isinstance(result.exception, EpochalError)
    assert "--journal-table: is needed for aggregates" in str(result.exception)


def test_a_type_that_holds_a_dash_and_is_not_declared_is_an_error(terminal: Terminal) -> None:
    result = terminal.run("aggregate", "append", "gift-card", "7", "Issued", "1", "--snapshot", "{}")
    assert isinstance(result.exception, InvalidInput)
    assert result.exception.field == "type"
    assert "'gift-card' contains - but is not among the types declared" in result.exception.rule


def test_a_key_makes_a_repeated_call_one_append(terminal: Terminal) -> None:
    begun(terminal)
    for replayed in (False, True):
        (made,) = terminal.documents("aggregate", "append", *CART, "Paid", "--key", "k")
        assert (made["first"], made["replayed"]) == (2, replayed)


@pytest.mark.parametrize(
    "text", ['[{"type": "A", "data": 1}]', '{"type": "A", "data": 1}\n{"type": "B", "data": 2}\n']
)
def test_a_file_that_begins_with_a_byte_order_mark_is_read_without_it(
    terminal: Terminal, tmp_path: Path, text: str
) -> None:
    begun(terminal)
    file = tmp_path / "events.json"
    file.write_text(text, "utf-8-sig")
    terminal.lines("aggregate", "append", *CART, "--events", f"@{file}")
    terminal.lines("aggregate", "append", *CART, "--events", "-", stdin="\ufeff" + text)
    assert [each["type"] for each in terminal.documents("aggregate", "events", *CART)][1] == "A"
