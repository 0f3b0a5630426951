"""The folds of the demo's read models, over a dictionary."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from epochal.feed.events import FeedEvent
from epochal.reactions.definition import Delivery
from epochal.testing.feeds import MemoryStore
from examples.flights import dataset
from examples.flights.happenings import by_moment, in_order
from examples.flights.reacting import BROKEN, FOLDER, busiest, declared, expected
from examples.flights.reactions.boards import delay_table, departures_board
from stacks.stages import stage_from

ROOT = Path(__file__).resolve().parents[2]


def batches(count: int) -> list:  # type: ignore[type-arg]
    return list(islice(by_moment(in_order(dataset.days(1), dataset.zones())), count))


def test_the_board_says_what_has_become_of_each_flight() -> None:
    board, table = expected(batches(3_000))
    assert len(board) == 842
    assert board["2013-01-01/UA1545/EWR"] == {
        "from": "EWR",
        "to": "IAH",
        "due": 515,
        "late": 2,
        "state": "departed",
    }
    assert {each["state"] for each in board.values()} == {"departed", "cancelled"}
    assert table["IAH"]["landings"] > 10
    assert sum(each["landings"] for each in table.values()) == 831


@pytest.mark.filterwarnings("ignore:no stream of the category 'Unassigned' has come")
@pytest.mark.filterwarnings("ignore:no event of the type 'FlightCancelled' has come")
@pytest.mark.slow
def test_reactions_make_the_same_documents_out_of_the_feed() -> None:
    day = batches(3_000)
    aircraft = [each.stream for each in day[:60]]
    feed, some = MemoryStore(), [each for each in day if each.stream in aircraft]
    for batch in some:
        feed.streams.append(batch.stream, batch.events)
    board, table = feed.read_models.open("departures", 1), feed.read_models.open("delays", 1)
    feed.react(departures_board(board))
    feed.react(delay_table(table, ()))
    expected_board, expected_table = expected(some)
    assert {key: board.get(key) for key in expected_board} == expected_board
    assert {key: table.get(key) for key in expected_table} == expected_table != {}


@pytest.mark.slow
def test_both_are_declared_for_the_stage_that_the_demo_deploys_and_one_is_told_for_whom_it_is_broken() -> (
    None
):
    broken = busiest(batches(3_000))
    stage = stage_from("dev", declared({"dev": {"aggregate_types": ["order"]}}, broken), {})
    assert stage.read_models
    assert stage.of_layouts["aggregate_types"] == ("order",)
    assert stage.reactions["airport-delays"].environment == {BROKEN: broken}
    for each in stage.reactions.values():
        module, _, name = each.handler.partition(".")
        assert f"{name} = lambda_handler(" in (ROOT / each.entry / f"{module}.py").read_text()


def test_what_is_deployed_imports_nothing_of_the_demo() -> None:
    folder = ROOT / FOLDER
    assert not [path for path in folder.glob("*.py") if "examples" in path.read_text()]


def test_a_broken_scale_fails_on_its_aircraft_alone() -> None:
    handle = delay_table(MemoryStore().read_models.open("delays", 1), {"Aircraft-N1"})
    event = FeedEvent(stream="Aircraft-N2", index=0, type="FlightDeparted", data=b"{}")
    handle(Delivery(group="airport-delays", partition=0, stream="Aircraft-N2", events=(event,)))
