from pathlib import Path

import pytest

from bench.timers import TOGETHER, life, units_of_lives
from epochal.contrib.timers.protocol import SHARDS
from epochal.model.events import Event
from epochal.scheduling import after, later
from epochal.testing.stores import memory_streams

COST = Path(__file__).parents[2] / "docs" / "reference" / "cost.md"


def test_the_documented_figures_are_the_librarys() -> None:
    text = COST.read_text()
    for row in units_of_lives():
        assert f"| {' | '.join(row)} |" in text
    assert f"nothing due takes {SHARDS // 2} read units" in text


@pytest.mark.parametrize(
    ("timers", "read"),
    [(1, 4), (TOGETHER, 2)],
    ids=["alone", "among others"],
)
def test_a_timer_takes_at_most_five_write_units_and_four_read_units(timers: int, read: float) -> None:
    whole = life(timers=timers).whole
    assert whole.write <= 5
    assert whole.read <= read


def test_what_waits_besides_moves_no_figure() -> None:
    assert life() == life(waiting=3_000)


def test_a_setting_costs_nothing_beside_the_append_that_it_goes_with() -> None:
    streams = memory_streams()
    token = streams.append("Loan-1", [Event.json("Made", {})]).token
    reminder = later("reminder", [Event.json("Reminded", {})], at=after(days=14))
    appended = streams.append("Loan-1", [Event.json("Lent", {}), reminder], expected=token)
    assert appended.capacity.write == 1
