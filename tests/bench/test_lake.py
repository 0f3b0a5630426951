"""The bill of a million events in a lake is the one on the page, and rows of a stream share a record."""

from __future__ import annotations

from pathlib import Path

from bench.bill import STEADY, TRICKLE
from bench.lake import CHARGED, bill, charged, rows

COST = Path(__file__).parents[2] / "docs" / "reference" / "cost.md"


def test_the_documented_bill_of_a_lake_is_the_librarys() -> None:
    text = COST.read_text()
    for row in rows():
        assert f"| {' | '.join(row)} |" in text


def test_rows_that_come_together_share_a_record() -> None:
    assert charged(1) == CHARGED
    assert charged(100) < CHARGED / 5


def test_a_lake_costs_at_most_as_much_as_is_promised() -> None:
    assert sum(bill(STEADY).values()) <= 0.05
    assert sum(bill(TRICKLE).values()) <= 0.28
