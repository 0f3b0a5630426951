"""`epochal train`: what it prints, and that writers use what it made."""

from __future__ import annotations

import json

from epochal.model.events import Event
from epochal.testing.stores import memory_streams
from tests.support.terminal import Terminal


def fill(terminal: Terminal, streams: int) -> None:
    store = memory_streams(terminal.tables)
    for number in range(streams):
        data = {"order": number * 7919 % 9973, "currency": "EUR", "country": "Germany"}
        store.append(f"Order-{number}", [Event(type="Ordered", data=json.dumps(data).encode())])


def test_it_says_what_a_dictionary_saves_and_puts_it_in_use() -> None:
    terminal = Terminal()
    fill(terminal, 60)
    (view,) = terminal.documents("train", "Order")
    assert (view["category"], view["streams"], view["events"], view["measured"]) == ("Order", 40, 40, 20)
    assert view["after"] < 0.7 * view["before"]
    assert view["inUse"]
    (line,) = terminal.lines("train", "Order")
    figures = f"20 other appends take {view['after']} bytes instead of {view['after']}"
    assert line == f"Order: trained on 40 events of 40 streams; {figures}: nothing was changed"


def test_it_says_which_dictionary_is_in_use_now() -> None:
    terminal = Terminal()
    fill(terminal, 60)
    (line,) = terminal.lines("train", "Order")
    assert line.rpartition(": ")[2].startswith("dictionary ")
    assert line.endswith(" is in use")


def test_of_too_few_events_it_makes_nothing() -> None:
    terminal = Terminal()
    fill(terminal, 6)
    assert terminal.lines("train", "Order") == ["Order: nothing to train on: 4 events of 4 streams"]
