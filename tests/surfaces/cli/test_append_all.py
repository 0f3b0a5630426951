"""append-all: several streams, all or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epochal.errors import ConflictError, InvalidInput
from tests.support.terminal import Terminal

TRANSFER = [
    {
        "stream": "Account-ann",
        "events": [{"type": "Withdrawn", "data": {"amount": 5}}],
        "expected": "no_stream",
    },
    {"stream": "Account-ben", "events": [{"type": "Deposited"}], "unfolds": [{"type": "Sum", "data": 5}]},
]


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.mark.parametrize("odd", ["\u0085", "\u2028", "\x7f"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_line_ends_where_a_line_feed_is_and_nowhere_else(terminal: Terminal, odd: str, ending: str) -> None:
    lines = [
        json.dumps({**each, "events": [{"type": "Noted", "data": odd}]}, ensure_ascii=False)
        for each in TRANSFER
    ]
    terminal.documents("append-all", "-", stdin=ending.join([*lines, ""]))
    (event,) = terminal.streams.read("Account-ben")
    assert json.loads(event.content) == odd


def test_lines_or_an_array_are_appended_to_all_streams_and_answered_like_the_first(
    terminal: Terminal, tmp_path: Path
) -> None:
    lines = "\n".join(map(json.dumps, TRANSFER))
    first = terminal.documents("append-all", "-", "--key", "t-7", stdin=lines)
    assert [(each["stream"], each["first"], each["version"]) for each in first] == [
        ("Account-ann", 0, 1),
        ("Account-ben", 0, 1),
    ]
    file = tmp_path / "transfer.json"
    file.write_text(json.dumps(TRANSFER))
    again = terminal.documents("append-all", f"@{file}", "--key", "t-7")
    assert again == [{**each, "replayed": True} for each in first]
    assert terminal.lines("append-all", f"@{file}", "--key", "t-7")[0] == (
        "Account-ann: 1 event, appended before, now at version 1"
    )
    more = [
        {"stream": each["stream"], "events": [{"type": "A"}], "expected": each["token"]} for each in first
    ]
    assert [each["version"] for each in terminal.documents("append-all", json.dumps(more))] == [2, 2]


def test_one_that_is_elsewhere_keeps_the_append_from_all(terminal: Terminal) -> None:
    terminal.lines("append", "Account-ann", "Opened")
    result = terminal.run("append-all", json.dumps(TRANSFER))
    assert isinstance(result.exception, ConflictError)
    assert "Account-ann" in str(result.exception)
    assert terminal.run("state", "Account-ben").exit_code != 0


@pytest.mark.parametrize(
    ("appends", "field"),
    [
        ("{", "APPENDS"),
        ('{"stream": "A-1"}', "APPENDS line 1.events"),
        ('{"stream": "$A", "events": [{"type": "A"}]}', "APPENDS line 1.stream"),
        ('[{"events": [{"type": "A"}]}]', "appends[0].stream"),
        ("", "appends"),
    ],
)
def test_a_mistake_is_named_by_its_line(terminal: Terminal, appends: str, field: str) -> None:
    error = terminal.run("append-all", "-", stdin=appends).exception
    assert isinstance(error, InvalidInput)
    assert error.field is not None
    assert error.field.startswith(field)


def test_streams_as_tips_are_appended_to_one_by_one(terminal: Terminal) -> None:
    assert terminal.run("tips", "append-all", "[]").exit_code == 2
