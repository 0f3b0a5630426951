"""`epochal keep --dry-run`."""

from __future__ import annotations

import pytest

from epochal import Event
from epochal.errors import InvalidInput
from tests.support.terminal import Terminal


@pytest.fixture
def terminal() -> Terminal:
    made = Terminal()
    for name in "abcd":
        made.deployment.streams.append("Visit-1", [Event(type=name)])
    made.index()
    return made


def test_what_a_rule_would_prune_is_counted_by_category(terminal: Terminal) -> None:
    assert terminal.lines("keep", "--dry-run", "Visit:1", "Log:30d") == [
        "Visit: 3 events of 1 stream",
        "Log: 0 events of 0 streams",
    ]
    assert terminal.documents("keep", "--dry-run", "Visit:3")[0] == {
        "category": "Visit",
        "streams": 1,
        "events": 1,
    }
    assert len(list(terminal.deployment.streams.read("Visit-1"))) == 4


def test_no_rule_and_nothing_but_a_dry_run_is_refused(terminal: Terminal) -> None:
    refused = terminal.run("keep", "--dry-run", "Visit").exception
    assert isinstance(refused, InvalidInput)
    assert str(refused).startswith("keep: must be Category:100")
    assert terminal.run("keep", "Visit:1").exit_code == 2
