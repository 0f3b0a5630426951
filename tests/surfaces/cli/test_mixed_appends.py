"""append and append-all of events with tags, and on the condition of a query."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochal.errors import ConflictError
from tests.support.terminal import Terminal


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_an_event_with_tags_is_appended_on_a_condition_and_printed_with_them(terminal: Terminal) -> None:
    course = '{"items": [{"tags": ["course:1"]}]}'
    arguments = ("append", "Student-1", "Enrolled", "--tag", "course:1", "--tag", "a", "--fail-if", course)
    (made,) = terminal.documents(*arguments)
    assert made["version"] == 1
    refused = terminal.run(*arguments)
    assert isinstance(refused.exception, ConflictError)
    assert "stored events match the condition: Enrolled" in str(refused.exception)
    assert terminal.run(*arguments, "--after", made["position"]).exit_code == 0

    (first, _) = terminal.documents("read", "Student-1")
    assert first["tags"] == ["a", "course:1"]
    assert "Enrolled  a  course:1" in terminal.run("read", "Student-1").output
    (found, *_) = terminal.documents("tagged", "query", "--tag", "course:1")
    assert (found["stream"], found["index"]) == ("Student-1", 0)


def test_the_position_of_one_with_tags_is_printed_on_a_line_of_its_own(terminal: Terminal) -> None:
    lines = terminal.lines("append", "Student-1", "Enrolled", "--tag", "course:1")
    assert lines[0] == "Student-1: 1 event, now at version 1"
    (position,) = [line.removeprefix("position ") for line in lines[1:]]
    course = '{"items": [{"tags": ["course:1"]}]}'
    again = ("append", "Student-2", "Enrolled", "--tag", "course:1", "--fail-if", course)
    assert terminal.run(*again, "--after", position).exit_code == 0


def test_events_in_batches_go_on_at_the_position_of_those_before(terminal: Terminal) -> None:
    course = '{"items": [{"tags": ["course:1"]}]}'
    events = json.dumps([{"type": "Enrolled", "tags": ["course:1"]}] * 3)
    assert (
        len(
            terminal.documents("append", "Student-1", "--events", events, "--batch", "1", "--fail-if", course)
        )
        == 3
    )


def test_several_streams_are_appended_to_on_a_condition(terminal: Terminal) -> None:
    course = '{"items": [{"tags": ["course:1"]}]}'
    appends = json.dumps(
        [{"stream": f"Student-{n}", "events": [{"type": "Enrolled", "tags": ["course:1"]}]} for n in (1, 2)]
    )
    assert terminal.run("append-all", appends, "--fail-if", course).exit_code == 0
    assert isinstance(terminal.run("append-all", appends, "--fail-if", course).exception, ConflictError)
    assert len(terminal.documents("tagged", "query", "--tag", "course:1")) == 3


def test_an_import_leaves_events_of_streams_to_the_copies_of_these_and_says_so(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.run("append", "Student-1", "Enrolled", "--tag", "course:1")
    terminal.run("tagged", "append", "Opened", "1", "--tag", "course:1")
    history = tmp_path / "history"
    history.write_text(terminal.run("tagged", "read", "course:1", "--json").output)

    other = Terminal()
    result = other.run("tagged", "import", str(history))
    assert "left out 1 event of streams" in result.output
    assert [each["type"] for each in other.documents("tagged", "read", "course:1")] == ["Opened"]
