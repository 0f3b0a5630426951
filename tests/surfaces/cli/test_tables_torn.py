"""`epochal tables torn`: what it tells of a table that was a replica, and how it ends."""

from __future__ import annotations

import time
from functools import partial

import pytest

from epochal import Event, StreamAppend
from epochal.care.partial_replication import Replica
from epochal.cli import stats
from epochal.cli.inputs import Unsound
from epochal.pages.items import page_key
from epochal.plan.ops import Delete
from tests.support.terminal import Terminal


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    later = time.time_ns() + 3_600 * 1_000_000_000
    monkeypatch.setattr(stats, "Replica", partial(Replica, now=later))
    return Terminal()


def lose(terminal: Terminal, *streams: str) -> None:
    for stream in streams:
        key = page_key(stream, 0)
        terminal.deployment.driver.ask(Delete(table="streams", key=key))


def append_both(terminal: Terminal) -> bool:
    both = [StreamAppend(stream=name, events=[Event(type="Paid")]) for name in ("Cart-1", "Cart-2")]
    return terminal.deployment.streams.append_all(both, idempotency_key="k").replayed


def test_a_table_that_came_whole_is_said_to_be(terminal: Terminal) -> None:
    append_both(terminal)
    assert terminal.lines("tables", "torn") == ["0 repaired; no partial writes are left"]
    assert terminal.documents("tables", "torn") == []


def test_what_can_be_mended_is_left_until_that_is_asked_for(terminal: Terminal) -> None:
    append_both(terminal)
    lose(terminal, "Cart-1", "Cart-2")
    ended = terminal.run("tables", "torn")
    assert isinstance(ended.exception, Unsound)
    assert "a key is on record without its append (of an append at" in ended.output
    assert ended.output.rstrip().endswith("not repaired: --mend repairs it")

    line, last = terminal.lines("tables", "torn", "--mend")
    assert line.startswith("$Idempotency-")
    assert line.endswith(": repaired")
    assert last == "1 repaired; no partial writes are left"
    assert terminal.lines("tables", "torn") == ["0 repaired; no partial writes are left"]
    assert not append_both(terminal)


def test_what_cannot_be_mended_says_what_to_do_and_the_status_is_1(terminal: Terminal) -> None:
    append_both(terminal)
    lose(terminal, "Cart-1")
    ended = terminal.run("tables", "torn", "--mend")
    assert str(ended.exception) == "the table has only part of 1 write"
    assert ended.exit_code == 1
    assert (
        "which is in Cart-2): not repaired: append the rest, as far as it is wanted, under another key"
        in ended.output
    )
    (found,) = (each for each in terminal.run("tables", "torn", "--json").output.splitlines() if each)
    assert '"kind":"part"' in found.replace(" ", "")
