"""Where a process runs: as functions, and by `epochal react`."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from epochal.errors import InvalidInput
from epochal.hosting.function import lambda_handler
from tests.contrib.processes.world import Checkout, Outside, checkout
from tests.support.terminal import Terminal

OUTSIDE = Outside()
TABLES = {"EPOCHAL_STREAMS_TABLE": "streams", "EPOCHAL_INDEX_TABLE": "index"}


def reaction_of(handler: Any) -> Any:
    return handler.__self__.reactor.member.reaction


@pytest.mark.parametrize("half", ["inbox", "outbox"])
def test_a_function_runs_the_half_that_it_was_deployed_for(half: str) -> None:
    process = checkout(OUTSIDE)
    for given in (process, Checkout):
        found = reaction_of(lambda_handler(given, {**TABLES, "EPOCHAL_REACTION": f"checkout-{half}"}))
        assert found.name == f"checkout-{half}"
        assert type(found.handler).__name__.lower() == half


def test_a_function_that_was_deployed_for_another_process_does_not_start() -> None:
    with pytest.raises(InvalidInput, match="give both the same name"):
        lambda_handler(checkout(OUTSIDE), {**TABLES, "EPOCHAL_REACTION": "other-inbox"})


def test_a_function_counts_what_is_passed(capsys: pytest.CaptureFixture[str]) -> None:
    handler = lambda_handler(checkout(OUTSIDE), {**TABLES, "EPOCHAL_REACTION": "checkout-inbox"})
    reaction_of(handler).handler.on_passed("late", None)
    line = json.loads(capsys.readouterr().out)
    assert line["Process.late"] == 1


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    module = types.ModuleType("shop")
    module.checkout = checkout(OUTSIDE)  # type: ignore[attr-defined]
    module.Checkout = Checkout  # type: ignore[attr-defined]
    sys.modules["shop"] = module
    path = list(sys.path)
    OUTSIDE.calls.clear()
    OUTSIDE.fails = lambda: False
    yield Terminal()
    sys.path[:] = path
    del sys.modules["shop"]


def settled(terminal: Terminal) -> None:
    """Run it as often as one half has something for the other, once that is indexed."""
    for _ in range(8):
        terminal.index()
        terminal.lines("react", "shop:checkout", "--until-done")


def test_one_command_runs_both_halves(terminal: Terminal) -> None:
    terminal.lines("append", "Order-1", "Placed", '{"total": 10}')
    settled(terminal)
    types_ = [event.type for event in terminal.streams.read("Order-1")]
    assert types_ == ["Placed", "Confirmed"]


@pytest.mark.slow
def test_what_an_outbox_parks_is_listed_and_replayed_by_the_process_name(terminal: Terminal) -> None:
    OUTSIDE.fails = lambda: True
    terminal.lines("append", "Order-1", "Placed", '{"total": 10}')
    settled(terminal)
    (line,) = terminal.lines("parked", "list", "checkout-outbox")
    assert line.startswith("checkout-1  ")
    assert "OSError: nobody answers" in line
    OUTSIDE.fails = lambda: False
    (told,) = terminal.documents("parked", "replay", "shop:Checkout", "checkout-1")
    assert told["unparked"]
    assert [name for name, _ in OUTSIDE.calls] == ["carrier"]
    refused = terminal.run("parked", "replay", "shop:checkout", "checkout-1")
    assert "is not parked by checkout-inbox or checkout-outbox" in str(refused.exception)
