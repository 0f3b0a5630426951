"""What an append takes in bulk: at most what is promised."""

from __future__ import annotations

import pytest

from bench.bill import BULK, BULK_OF_ONE, Setup
from bench.bulk import BOUNDS, took


@pytest.mark.parametrize("setup", BOUNDS, ids=lambda setup: setup.name)
def test_an_append_takes_no_more_than_promised(setup: Setup) -> None:
    assert took(setup).within(BOUNDS[setup])


def test_an_append_in_bulk_costs_less_than_half_and_to_one_stream_half_of_that() -> None:
    assert took(BULK).dollars <= 0.90
    assert took(BULK_OF_ONE).dollars <= took(BULK).dollars / 2
