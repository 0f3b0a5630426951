from pathlib import Path

import pytest

from bench.tagged_pages import BOUNDS, SIZES, units

COST = Path(__file__).parents[2] / "docs" / "reference" / "cost.md"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tags", BOUNDS)
def test_a_tagged_event_takes_no_more_write_units_than_promised_and_one_request(tags, size):
    write, requests = units(tags, size)

    assert f"| {tags} | {size:,} | {write:.2f} | {requests:.2f} |\n" in COST.read_text()
    assert write <= BOUNDS[tags]
    assert requests == (1 if tags else 2)
