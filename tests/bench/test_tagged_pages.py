import re
from pathlib import Path

import pytest

from bench.tagged_pages import BOUNDS, SIZES, units

COST = Path(__file__).parents[2] / "docs" / "reference" / "cost.md"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tags", BOUNDS)
def test_a_tagged_event_takes_no_more_write_units_than_promised_and_one_request(tags, size):
    write, requests = units(tags, size)

    # A slow machine's clock makes stamps some bytes longer, and with them, once in a hundred, a page.
    rows = re.findall(
        rf"^\| {tags} \| ([\d.]+) \| ([\d.]+) \| {requests:.2f} \|$", COST.read_text(), re.MULTILINE
    )
    assert len(rows) == 1
    assert write == pytest.approx(float(rows[0][SIZES.index(size)]), abs=0.05)
    assert write <= BOUNDS[tags]
    assert requests == (1 if tags else 2)
