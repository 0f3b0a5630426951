"""`epochal prune` and `epochal delete`: they ask, remove what was confirmed, all of it, and say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.cli.inputs import NotThere
from epochal.contrib.equinox import memory_tips, pruning
from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.port import ARCHIVE
from epochal.contrib.equinox.streams import Tips
from epochal.errors import StreamDeleted, WrongExpectedVersion
from epochal.layout.tables import store_tables
from epochal.model.events import Event
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.support.terminal import Terminal


@pytest.fixture
def filled(terminal: Terminal) -> Terminal:
    """A stream of six events, an item for each but the last."""
    streams = replace(terminal.streams, layout=Tips(calving=Fixed(max_events=1)))
    for nth in range(6):
        streams.append("Cart-1", [Event(type=f"E{nth}")])
    return terminal


def indices(terminal: Terminal) -> list[int]:
    return [event.index for event in terminal.streams.read("Cart-1")]


def test_prune_asks_and_does_nothing_without_a_yes(filled: Terminal) -> None:
    result = filled.run("prune", "Cart-1", "4", stdin="n\n")
    assert result.exit_code != 0
    assert "4 events of Cart-1 will be removed. Continue?" in result.stderr
    assert indices(filled) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("command", [("prune", "Cart-1", "1"), ("delete", "Cart-1")], ids=["prune", "delete"])
def test_where_nobody_can_answer_it_is_said_how_to_go_on(filled: Terminal, command: tuple[str, ...]) -> None:
    result = filled.run(*command, stdin="")
    assert result.exit_code == 2
    assert "No terminal to confirm on; pass --yes." in result.stderr
    assert indices(filled) == [0, 1, 2, 3, 4, 5]


def test_one_event_is_one_event(filled: Terminal) -> None:
    assert (
        "1 event of Cart-1 will be removed. Continue?"
        in filled.run("prune", "Cart-1", "1", stdin="n\n").stderr
    )


def test_prune_removes_what_is_below_and_says_how_much(filled: Terminal) -> None:
    assert filled.lines("prune", "Cart-1", "4", "--yes") == ["Cart-1: pruned below 4, 4 items deleted"]
    assert indices(filled) == [4, 5]
    (view,) = filled.documents("prune", "Cart-1", "99", "--yes")
    assert view == {"stream": "Cart-1", "lowWater": 6, "deleted": 1, "done": True}


def test_prune_goes_on_until_all_items_are_deleted(filled: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochal.contrib.equinox.pruning.prune.__kwdefaults__", {"deletes": 2})
    (view,) = filled.documents("prune", "Cart-1", "5", "--yes")
    assert (view["deleted"], view["done"]) == (5, True)


def test_delete_asks_and_leaves_a_tombstone(filled: Terminal) -> None:
    result = filled.run("delete", "Cart-1", stdin="n\n")
    assert "6 events of Cart-1 will be deleted; the stream takes no more events. Continue?" in result.stderr
    assert indices(filled) == [0, 1, 2, 3, 4, 5]
    assert filled.lines("delete", "Cart-1", stdin="y\n") == ["Cart-1: deleted at version 6, 5 items deleted"]
    assert indices(filled) == []
    assert isinstance(filled.run("append", "Cart-1", "E").exception, StreamDeleted)


def test_delete_that_leaves_open_lets_the_stream_go_on(filled: Terminal) -> None:
    (view,) = filled.documents("delete", "Cart-1", "--leave-open", "--yes")
    assert view == {"stream": "Cart-1", "lowWater": 6, "deleted": 5, "done": True}
    filled.lines("append", "Cart-1", "E")
    assert indices(filled) == [6]


def test_delete_of_another_version_than_expected_removes_nothing(filled: Terminal) -> None:
    result = filled.run("delete", "Cart-1", "--expected", "5", "--yes")
    assert isinstance(result.exception, WrongExpectedVersion)
    assert indices(filled) == [0, 1, 2, 3, 4, 5]


def test_what_comes_while_it_asks_is_not_deleted(filled: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def meanwhile(*_: object, **__: object) -> bool:
        filled.streams.append("Cart-1", [Event(type="late")])
        return True

    monkeypatch.setattr("click.confirm", meanwhile)
    result = filled.run("delete", "Cart-1")
    assert isinstance(result.exception, WrongExpectedVersion)
    assert indices(filled) == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("command", [("prune", "None-1", "1"), ("delete", "None-1")])
def test_a_stream_that_is_not_there_is_named(terminal: Terminal, command: tuple[str, ...]) -> None:
    assert isinstance(terminal.run(*command, "--yes").exception, NotThere)


class Archiving(Terminal):
    """A terminal on a store that has an archive."""

    @property
    def streams(self) -> Streams:
        streams = super().streams
        return replace(streams, archive=replace(streams, table=ARCHIVE.kind))


@pytest.fixture
def archiving() -> Archiving:
    terminal = Archiving(
        named="tips", tables=MemoryTables({spec.kind: spec for spec in (*store_tables(), ARCHIVE)})
    )
    streams = replace(terminal.streams, layout=Tips(calving=Fixed(max_events=1)))
    for nth in range(6):
        streams.append("Cart-1", [Event(type=f"E{nth}")])
    return terminal


def test_prune_hands_events_to_the_archive_first(archiving: Archiving) -> None:
    assert archiving.lines("prune", "Cart-1", "4", "--yes") == ["Cart-1: pruned below 4, 4 items deleted"]
    assert indices(archiving) == [0, 1, 2, 3, 4, 5]
    assert [event.index for event in memory_tips(archiving.tables).read("Cart-1")] == [4, 5]


def test_delete_goes_on_to_the_end_whatever_the_archive_has(
    archiving: Archiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = dict(pruning.delete.__kwdefaults__)
    monkeypatch.setattr("epochal.contrib.equinox.pruning.delete.__kwdefaults__", {**defaults, "deletes": 2})
    (view,) = archiving.documents("delete", "Cart-1", "--yes")
    assert (view["deleted"], view["done"]) == (5, True)
    assert indices(archiving) == []
