"""projections list, get, put, delete and orphans."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from epochal.cli.inputs import NotThere
from epochal.cli.main import epochal
from epochal.errors import ConflictError, InvalidInput, MissingBody
from tests.support.terminal import Terminal

LAST = "063934128000000000000000000001"


def put(terminal: Terminal, source: str, processed: int = 1, version: str = "v1") -> list[str]:
    return terminal.lines(
        "projections", "put", "Totals", version, source, "--processed", str(processed), "--last", LAST
    )


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small"
    file.write_bytes(b'{"n":1.50}')
    return file


@pytest.fixture
def large(tmp_path: Path) -> Path:
    file = tmp_path / "large"
    file.write_bytes(os.urandom(6_000_000))
    return file


@pytest.mark.slow
def test_a_state_goes_from_a_file_to_a_file(terminal: Terminal, large: Path, tmp_path: Path) -> None:
    assert put(terminal, str(large), 7) == ["Totals v1: 7 events"]
    assert len(terminal.objects.contents) == 1
    target = tmp_path / "back"
    (line,) = terminal.lines("projections", "get", "Totals", "v1", "--output", str(target))
    assert line.startswith("v1  7 events  6,000,000 bytes, ")
    assert line.endswith(" in the bucket")
    assert target.read_bytes() == large.read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["back", "large"]


def test_a_state_goes_to_standard_output_as_it_is(terminal: Terminal, small: Path) -> None:
    put(terminal, str(small))
    assert terminal.run("projections", "get", "Totals", "v1").stdout_bytes == small.read_bytes()


@pytest.mark.slow
def test_json_has_the_state_and_what_is_known_of_it(terminal: Terminal, small: Path, large: Path) -> None:
    put(terminal, str(small), 3)
    result = terminal.run("projections", "get", "Totals", "v1", "--json")
    assert '"state":{"n":1.50}' in result.stdout
    put(terminal, str(large), 4)
    (found,) = terminal.documents("projections", "get", "Totals", "v1")
    assert (found["eventsProcessed"], found["bytes"]) == (4, 6_000_000)
    assert len(found["state64"]) == 8_000_000


def test_a_state_comes_from_standard_input(terminal: Terminal) -> None:
    arguments = ("projections", "put", "Totals", "v1", "-", "--processed", "0")
    assert terminal.lines(*arguments, stdin="[]") == ["Totals v1: 0 events"]
    (found,) = terminal.documents("projections", "list", "Totals")
    assert (found["bytes"], found["lastSortableId"]) == (2, None)


def test_the_state_that_has_come_further_stays(terminal: Terminal, small: Path, large: Path) -> None:
    put(terminal, str(small), 5)
    result = terminal.run(
        "projections", "put", "Totals", "v1", str(large), "--processed", "4", "--last", LAST
    )
    assert isinstance(result.exception, ConflictError)
    assert result.exception.outcome.events_processed == 5
    assert terminal.run("projections", "get", "Totals", "v1").stdout_bytes == small.read_bytes()


@pytest.mark.slow
def test_orphans_are_listed_and_removed_and_states_are_not(terminal: Terminal, large: Path) -> None:
    put(terminal, str(large), version="v1")
    large.write_bytes(os.urandom(500_000))
    put(terminal, str(large), version="v2")
    put(terminal, str(large), version="v3")
    terminal.lines("projections", "delete", "Totals", "v1")
    (orphan,) = terminal.lines("projections", "orphans", "Totals")
    assert orphan in terminal.objects.contents
    assert terminal.documents("projections", "orphans", "Totals", "--remove") == [{"removed": 1}]
    assert orphan not in terminal.objects.contents
    assert terminal.lines("projections", "orphans", "Totals") == []
    assert terminal.run("projections", "get", "Totals", "v3").stdout_bytes == large.read_bytes()


def test_a_deleted_state_is_gone(terminal: Terminal, small: Path) -> None:
    put(terminal, str(small))
    for _ in range(2):
        assert terminal.lines("projections", "delete", "Totals", "v1") == ["Totals v1: deleted"]
    assert isinstance(terminal.run("projections", "get", "Totals", "v1").exception, NotThere)
    assert terminal.lines("projections", "list", "Totals") == []


def test_a_read_that_fails_leaves_the_file_that_was_there(
    terminal: Terminal, large: Path, tmp_path: Path
) -> None:
    put(terminal, str(large))
    terminal.objects.contents.clear()
    target = tmp_path / "kept"
    target.write_text("kept")
    result = terminal.run("projections", "get", "Totals", "v1", "--output", str(target))
    assert isinstance(result.exception, MissingBody)
    assert target.read_text() == "kept"
    assert not (tmp_path / "kept.part").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "a/b"),
        ("get", "Totals", ""),
        ("put", "Totals", "v1", "/nowhere/at/all", "--processed", "0"),
        ("put", "Totals", "v/1", "-", "--processed", "0"),
        ("put", "Totals", "v1", "-", "--processed", "1", "--last", "x"),
    ],
)
def test_mistakes_are_named(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    result = terminal.run("projections", *arguments, stdin="{}")
    assert isinstance(result.exception, InvalidInput)


def test_a_file_that_cannot_be_written_is_named(terminal: Terminal, small: Path, tmp_path: Path) -> None:
    put(terminal, str(small))
    result = terminal.run("projections", "get", "Totals", "v1", "--output", str(tmp_path / "no" / "where"))
    assert isinstance(result.exception, InvalidInput)
    assert "--output: cannot be written" in str(result.exception)


def test_a_state_of_events_needs_the_last_of_them(terminal: Terminal) -> None:
    result = terminal.run("projections", "put", "Totals", "v1", "-", "--processed", "1", stdin="{}")
    assert result.exit_code == 2


def test_without_its_table_it_says_which_option_is_missing(terminal: Terminal) -> None:
    settings = terminal.store.deployment.settings
    without = {kind: table for kind, table in settings.tables.items() if kind != "projection-states"}
    deployment = replace(terminal.store.deployment, settings=replace(settings, tables=without))
    bare = replace(terminal.store, deployment=deployment)
    result = CliRunner().invoke(epochal, ("projections", "list", "Totals"), obj=lambda: bare)
    assert "--projection-states-table: is needed" in str(result.exception)
