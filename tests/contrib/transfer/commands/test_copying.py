"""`epochal copy`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner

from epochal import Event
from epochal.cli.main import epochal
from epochal.cli.target import Choice, OpenedStore
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.transfer.importing import commands as importing
from epochal.errors import EpochalError
from epochal.settings import Settings
from epochal.store.streams import Streams
from tests.support.terminal import Terminal


@pytest.fixture
def terminal() -> Terminal:
    made = Terminal(layouts=("tips", "journal"))
    for stream in ("Cart-1", "Cart-2", "Order-1"):
        made.deployment.tips.append(stream, [Event(type="Opened"), Event(type="Paid")])
    made.index()
    return made


def pages(terminal: Terminal) -> Streams:
    return terminal.deployment.streams


def test_named_streams_are_copied_and_each_is_told(terminal: Terminal) -> None:
    one, two, sums = terminal.documents("copy", "Cart-1", "Order-1", "Cart-1")
    assert [(each["stream"], each["ending"], each["copied"], each["compared"]) for each in (one, two)] == [
        ("Cart-1", "copied", 2, 2),
        ("Order-1", "copied", 2, 2),
    ]
    assert len(one["digest"]) == 64
    assert (sums["streams"], sums["copied"], sums["unsound"]) == (2, 4, 0)
    assert [event.type for event in pages(terminal).read("Cart-1")] == ["Opened", "Paid"]
    assert pages(terminal).load("Cart-2") is None


def test_a_category_is_copied_and_a_second_run_has_nothing_to_do(terminal: Terminal) -> None:
    assert terminal.lines("copy", "--category", "Cart") == ["2 streams visited, 4 events copied"]
    assert terminal.lines("copy", "--category", "Cart") == ["0 streams visited, 0 events copied"]
    assert terminal.lines("copy", "--category", "Cart", "--again") == ["2 streams visited, 0 events copied"]
    assert terminal.lines("copy", "--all") == ["3 streams visited, 2 events copied"]


def test_a_dry_run_writes_nothing(terminal: Terminal) -> None:
    lines = terminal.lines("copy", "--all", "--dry-run")
    assert lines == ["3 streams visited, 6 events would be copied"]
    assert pages(terminal).load("Cart-1") is None
    assert terminal.lines("copy", "--all") == ["3 streams visited, 6 events copied"]


def test_a_copy_that_is_not_the_same_ends_with_an_error_that_names_it(terminal: Terminal) -> None:
    pages(terminal).append("Cart-1", [Event(type="Foreign")])
    result = terminal.run("copy", "--all", "--json")
    assert isinstance(result.exception, EpochalError)
    assert "Cart-1" in str(result.exception)
    assert '"ending":"differs"' in result.stdout
    assert '"unsound":1' in result.stdout


def test_what_is_pruned_and_deleted_is_told(terminal: Terminal) -> None:
    terminal.deployment.tips.prune("Cart-1", 1)
    terminal.deployment.tips.delete("Cart-2")
    lines = terminal.lines("copy", "--all")
    assert lines == ["3 streams visited, 3 events copied; 1 with pruned events; 1 tombstone"]
    assert terminal.lines("copy", "Cart-1")[0].endswith("from event 1 on: earlier events are pruned")


def test_streams_are_copied_back_to_tips(terminal: Terminal) -> None:
    pages(terminal).append("Trip-1", [Event(type="Booked")])
    terminal.lines("copy", "Trip-1", "--from-layout", "pages", "--to-layout", "tips")
    assert [event.type for event in terminal.deployment.tips.read("Trip-1")] == ["Booked"]


def test_aggregates_become_streams(terminal: Terminal) -> None:
    aggregates = terminal.deployment.aggregates
    aggregates.append(
        AggregateId(type="Bill", value="1"),
        [AggregateEvent(type="Made", data=b"{}")],
        snapshot=b'{"seq_nr": 1}',
    )
    terminal.index()
    lines = terminal.lines("copy", "--all", "--from-layout", "journal", "--snapshots-as", "State")
    assert lines == ["1 stream visited, 1 event copied"]
    state = pages(terminal).load("Bill-1")
    assert state is not None
    assert [each.type for each in state.unfolds] == ["State"]


def test_streams_are_copied_to_another_stack_in_the_same_place(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, asked = Terminal(), []

    def opened(choice: Choice) -> OpenedStore:
        asked.append(choice)
        return other.store

    monkeypatch.setattr(importing, "open_store", opened)
    place = ("--region", "eu-west-1", "--endpoint", "http://127.0.0.1:1")
    terminal.lines(*place, "copy", "--all", "--to-stack", "epochal-prod-store", "--to-layout", "tips")
    (choice,) = asked
    assert choice == Choice(
        settings=Settings(), stack="epochal-prod-store", endpoint="http://127.0.0.1:1", region="eu-west-1"
    )
    assert [event.type for event in other.deployment.tips.read("Cart-1")] == ["Opened", "Paid"]
    assert pages(terminal).load("Cart-1") is None


@pytest.mark.parametrize(
    "arguments", [(), ("Cart-1", "--all"), ("--all", "--category", "Cart"), ("Cart-1", "--category", "Cart")]
)
def test_what_is_to_be_copied_is_said_in_one_way(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    assert terminal.run("copy", *arguments).exit_code == 2


def test_a_layout_is_not_copied_to_itself(terminal: Terminal) -> None:
    result = terminal.run("copy", "--all", "--to-layout", "tips")
    assert "--to-layout: must differ from --from-layout" in str(result.exception)


@pytest.mark.parametrize("table", ["tips", "streams"])
@pytest.mark.parametrize(
    "command", ["append Cart-1 Paid", "read Cart-1", "state Cart-1", "prune Cart-1 1", "delete Cart-1"]
)
def test_a_command_on_streams_of_a_layout_that_the_store_has_not_says_so(table: str, command: str) -> None:
    terminal = Terminal()
    settings = replace(terminal.deployment.settings, tables={})
    deployment = replace(terminal.deployment, settings=settings)
    store = OpenedStore.of(deployment, list, str)
    words = command.split() if table == "streams" else ["tips", *command.split()]
    result = CliRunner().invoke(epochal, words, obj=lambda: store)
    assert f"--{table}-table: is needed for streams in the" in str(result.exception)


@pytest.mark.parametrize(("option", "layout"), [("--from-layout", "journal"), ("--to-layout", "pages")])
def test_a_layout_that_the_store_has_not_is_told(option: str, layout: str) -> None:
    terminal = Terminal()
    settings = replace(terminal.deployment.settings, tables={"tips": "tips"})
    store = replace(terminal.store, deployment=replace(terminal.deployment, settings=settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Terminal, "store", store)
        result = terminal.run("copy", "--all", option, layout)
    assert f"is needed for streams in the {layout} layout" in str(result.exception)
