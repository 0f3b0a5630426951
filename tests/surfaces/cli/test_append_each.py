"""append-each: many appends, each for itself."""

from __future__ import annotations

import json

import pytest

from tests.support.terminal import Terminal

LINES = [
    {"stream": "Seat-1", "events": [{"type": "Taken"}], "expected": "no_stream", "idempotencyKey": "k"},
    {"stream": "Seat-2", "events": [{"type": "Taken"}]},
    {"stream": "Seat-2", "events": [{"type": "Taken"}], "expected": "no_stream"},
    {"stream": "Seat-2", "events": [{"type": "Freed"}], "expected": 1},
    {"stream": "Seat-3", "events": [{"type": "T", "tags": ["a"]}], "failIf": {"items": [{"tags": ["a"]}]}},
    {"stream": "Seat-4", "events": [{"type": "T", "tags": ["b"]}], "failIf": {"items": [{"tags": ["b"]}]}},
]


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_lines_are_appended_each_for_itself_and_answered_in_their_order(terminal: Terminal) -> None:
    terminal.run("append", "Seat-0", "T", "--tag", "b")
    result = terminal.run("append-each", "-", stdin="\n".join(map(json.dumps, LINES)))
    assert result.exit_code == 1
    *made, refused = result.stdout.splitlines()
    assert made == [
        "Seat-1: 1 event, now at version 1",
        "Seat-2: 1 event, now at version 1",
        "Seat-2: expected no_stream, but the stream is at version 1",
        "Seat-2: 1 event, now at version 2",
        "Seat-3: 1 event, now at version 1",
    ]
    assert refused.startswith("Seat-4: ")
    assert [event.type for event in terminal.streams.read("Seat-2")] == ["Taken", "Freed"]
    assert list(terminal.streams.read("Seat-4")) == []


def test_json_says_the_same_and_repeats_are_made_once(terminal: Terminal) -> None:
    first = terminal.documents("append-each", json.dumps(LINES[:2]))
    assert [(each["stream"], each["version"], each["replayed"]) for each in first] == [
        ("Seat-1", 1, False),
        ("Seat-2", 1, False),
    ]
    again = terminal.run("append-each", json.dumps([LINES[0], LINES[2]]), "--json")
    replayed, refused = map(json.loads, again.stdout.splitlines())
    assert replayed == {**first[0], "replayed": True}
    assert (refused["stream"], refused["error"]) == ("Seat-2", "WrongExpectedVersion")


def test_the_position_of_one_with_tags_is_in_its_json(terminal: Terminal) -> None:
    (made,) = terminal.documents("append-each", json.dumps([LINES[4]]))
    beyond = {**LINES[4], "after": made["position"]}
    assert terminal.run("append-each", json.dumps([LINES[4]])).exit_code == 1
    assert terminal.run("append-each", json.dumps([beyond])).exit_code == 0


def test_more_than_a_call_takes_are_made_in_their_order(terminal: Terminal) -> None:
    lines = [{"stream": "Seat-1", "events": [{"type": "Taken"}], "expected": at} for at in range(501)]
    assert terminal.documents("append-each", json.dumps(lines))[-1]["version"] == 501
