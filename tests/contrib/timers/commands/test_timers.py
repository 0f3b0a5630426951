"""epochal timers, and append --later."""

from __future__ import annotations

import re

import pytest

from epochal.cli.inputs import NotThere
from epochal.contrib.timers.stores import timers_of
from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.moments import parse_time
from epochal.scheduling import after, later
from epochal.store.tagged_importer import marked
from epochal.testing.stores import memory_tables
from tests.support.terminal import Terminal

HOUR = 3_600 * 10**7


def test_an_event_is_appended_later_by_a_timer_that_is_listed() -> None:
    terminal = Terminal()
    assert terminal.lines("append", "Loan-17", "Reminded", '{"times": 1}', "--later", "reminder=14d") == [
        "Loan-17: 1 event, now at version 1"
    ]
    (timer,) = timers_of(terminal.streams).pending("Loan-17")
    assert terminal.lines("timers", "list", "Loan-17") == [
        f"Loan-17  reminder  {timer.due[:19]}  set at 0  Reminded"
    ]
    assert terminal.documents("timers", "list", "Loan-17") == [
        {
            "name": "reminder",
            "due": timer.due,
            "set": 0,
            "events": [{"type": "Reminded", "data": {"times": 1}}],
        }
    ]


@pytest.mark.parametrize(
    ("when", "hours"), [("2w", 336), ("3d", 72), ("36h", 36), ("90m", 1.5), ("1800s", 0.5)]
)
def test_a_span_is_written_in_its_unit(when: str, hours: float) -> None:
    terminal = Terminal()
    terminal.lines("append", "Loan-17", "Reminded", "--later", f"reminder={when}")
    (timer,) = timers_of(terminal.streams).pending("Loan-17")
    assert timer.ticks - parse_time(timer.timestamp) == hours * HOUR


def test_several_events_come_later_together_at_a_moment() -> None:
    terminal = Terminal()
    events = '[{"type": "Fined"}, {"type": "Closed", "tags": ["loan:17"]}]'
    terminal.lines("append", "Loan-17", "--events", events, "--later", "fine=2030-06-01T09:00:00+02:00")
    (timer,) = timers_of(terminal.streams).pending("Loan-17")
    assert (timer.due, [event.type for event in timer.events]) == (
        "2030-06-01T07:00:00.0000000+00:00",
        ["Fined", "Closed"],
    )


def test_a_timer_of_a_copy_is_listed_as_one() -> None:
    terminal = Terminal()
    setting = later("fine", [Event(type="Fined")], at="2030-06-01T09:00:00Z")
    terminal.streams.append("Loan-17", [marked(setting)])
    assert terminal.lines("timers", "list", "Loan-17") == [
        "Loan-17  fine  2030-06-01T09:00:00  set at 0  Fined  a copy, which fires only in the original stream"
    ]


def test_a_timer_is_called_off_once() -> None:
    terminal = Terminal()
    terminal.lines("append", "Loan-17", "Reminded", "--later", "reminder=14d")
    (timer,) = timers_of(terminal.streams).pending("Loan-17")
    assert terminal.lines("timers", "cancel", "Loan-17", "reminder") == [
        f"Loan-17: cancelled reminder, which was due at {timer.due[:19]}"
    ]
    assert terminal.lines("timers", "list", "Loan-17") == []
    refused = terminal.run("timers", "cancel", "Loan-17", "reminder")
    assert isinstance(refused.exception, NotThere)


@pytest.mark.parametrize(
    "later", ["reminder", "reminder=14", "reminder=30x", "reminder=2030-06-01T09:00:00", "reminder="]
)
def test_a_time_of_a_timer_that_is_none_is_refused_by_the_option_with_the_forms_that_it_has(
    later: str,
) -> None:
    terminal = Terminal(tables=memory_tables())
    refused = terminal.run("append", "Loan-17", "Reminded", "--later", later)
    assert re.match(
        r"--later: must be NAME=WHEN, where WHEN is 30s, 90m, .* or a time such as", str(refused.exception)
    )
    assert terminal.streams.load("Loan-17") is None


@pytest.mark.parametrize("later", ["a b=14d", "=14d", "reminder=99999999w", "a=999999999w"])
def test_a_malformed_timer_is_refused(later: str) -> None:
    terminal = Terminal(tables=memory_tables())
    refused = terminal.run("append", "Loan-17", "Reminded", "--later", later)
    assert isinstance(refused.exception, InvalidInput)
    assert terminal.streams.load("Loan-17") is None


@pytest.mark.parametrize("arguments", [("--unfold", "S=1"), ("--events", "[]", "--batch", "1")])
def test_later_goes_with_events_all_of_them(arguments: tuple[str, ...]) -> None:
    assert Terminal().run("append", "Loan-17", *arguments, "--later", "reminder=14d").exit_code == 2


def test_a_timer_of_tags_is_listed_and_called_off_by_them() -> None:
    terminal = Terminal()
    tagged, tags = terminal.streams.tagged, ["show:1", "seat:4A"]
    timers_of(tagged).schedule(tags, "hold", [Event(type="Lapsed", tags=("seat:4A",))], at=after(minutes=10))
    (timer,) = timers_of(tagged).pending(tags)
    line = f"seat:4A, show:1  hold  {timer.due[:19]}  set at {timer.setting}  Lapsed"
    assert terminal.lines("timers", "list", "--tag", "seat:4A") == [line]
    both = [part for tag in tags for part in ("--tag", tag)]
    missing = terminal.run("timers", "cancel", "hold", "--tag", "seat:4A")
    assert isinstance(missing.exception, NotThere)
    assert terminal.lines("timers", "cancel", *both, "hold") == [
        f"seat:4A, show:1: cancelled hold, which was due at {timer.due[:19]}"
    ]
    assert timers_of(tagged).pending(tags) == ()


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("list", "Loan-17", "--tag", "a"),
        ("cancel", "hold"),
        ("cancel", "Loan-17", "hold", "--tag", "a"),
    ],
)
def test_a_stream_or_tags_are_given(arguments: tuple[str, ...]) -> None:
    refused = Terminal().run("timers", *arguments).exception
    assert isinstance(refused, InvalidInput)
    assert refused.field == "STREAM"
