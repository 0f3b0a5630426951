"""`epochal versions`: which versions of the types of events are stored."""

from __future__ import annotations

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.model.events import Event
from epochal.testing.stores import memory_streams
from tests.support.terminal import Terminal


@pytest.fixture
def terminal() -> Terminal:
    made = Terminal(layouts=("pages", "tips"))
    old, new = Event(type="Boarded", data=b'{"name":"Ada"}'), Event(type="Boarded", data=b'{"$v":3,"gate":1}')
    pages, tips = memory_streams(made.tables), memory_tips(made.tables)
    pages.append("Flight-1", [old, new, Event(type="Painted", data=b"\xff"), Event(type="Left", data=b"7")])
    pages.append("Flight-2", [new])
    pages.append("Train-1", [Event(type="Boarded", data=b'{"$v":9}')])
    tips.append("Flight-9", [old])
    made.index()
    return made


def test_events_of_a_category_are_counted_by_type_and_version_in_every_layout(terminal: Terminal) -> None:
    (view,) = terminal.documents("versions", "Flight")
    assert view == {"Boarded": {"1": 2, "3": 2}, "Left": {"untold": 1}, "Painted": {"untold": 1}}
    assert terminal.lines("versions", "Flight") == [
        "Boarded 1      2",
        "Boarded 3      2",
        "Left untold    1",
        "Painted untold 1",
    ]


def test_what_is_pruned_needs_no_upcast(terminal: Terminal) -> None:
    memory_streams(terminal.tables).delete("Flight-1")
    (view,) = terminal.documents("versions", "Flight")
    assert view == {"Boarded": {"1": 1, "3": 1}}
