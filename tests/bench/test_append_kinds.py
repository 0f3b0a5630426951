"""What kinds of appends cost is what the page on cost says."""

from pathlib import Path

import pytest

from bench.append_kinds import CELLS, KEYS, KINDS, TYPE, cost, declared_type, key_rows, row
from bench.bill import STEADY, TRICKLE, UNCONDITIONAL, bill

COST = (Path(__file__).parents[2] / "docs" / "reference" / "cost.md").read_text("utf-8")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_page_has_the_units_of_each_kind_of_append(kind):
    assert f"{row(kind)}\n" in COST


def test_the_page_has_what_a_key_costs_on_a_busy_stream():
    for line in key_rows():
        assert f"{line}\n" in COST, line


def test_a_key_that_was_made_after_the_append_before_costs_nothing():
    fresh, *older = map(cost, KEYS)
    assert (fresh.write, fresh.read, fresh.requests) == (1, 0, 1)
    assert all(each.write == 1 and each.read > 1 for each in older)
    assert all(each.read <= 3 and each.requests <= 3 for each in older[:-1]), (
        "the last page comes with those before"
    )


@pytest.mark.parametrize(("tags", "without", "declared"), [(1, 1, 4), (2, 4, 6)])
def test_a_type_that_is_declared_makes_an_event_cost_as_if_it_had_a_tag_more(tags, without, declared):
    assert declared_type((), tags) == pytest.approx(without, abs=0.1)
    assert declared_type((TYPE,), tags) == pytest.approx(declared, abs=0.1)
    assert (
        f"{declared} write units instead of {without}" in COST or f"{declared} instead of {without}" in COST
    )


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: f"{cells.a_second:,}")
def test_the_page_has_the_arithmetic_of_cells(cells):
    assert f"{cells.row}\n" in COST


def test_the_page_has_the_bill_of_appends_without_an_expected_version():
    steady, trickle = (sum(bill(UNCONDITIONAL, pace).values()) for pace in (STEADY, TRICKLE))
    row = next(line for line in COST.splitlines() if line.startswith("| appends without `If-Match`"))
    figures = [float(figure) for figure in row.strip("| ").split(" | ")[1:]]
    assert figures == [pytest.approx(steady, abs=0.02), pytest.approx(trickle, abs=0.02)]
