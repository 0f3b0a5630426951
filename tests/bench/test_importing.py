from dataclasses import replace

import pytest

from bench.importing import MEMORY, compared, missed


@pytest.fixture(scope="module")
def imported(ddbl):
    return compared(ddbl, 600)


def test_an_import_writes_what_its_dry_run_told_and_no_unit_more(imported):
    dry, real = imported

    assert (dry.written, real.written, real.unlike) == (600, 600, 0)
    assert real.units == dry.units > 0
    assert 0 < real.peak < MEMORY


def test_an_import_that_costs_more_or_loses_something_is_found(imported):
    dry, real = imported
    cheap = replace(real, units=10.0)
    assert missed(600, replace(dry, units=10.0), cheap) == []
    assert missed(600, replace(dry, units=5.0), cheap) == ["10 write units, and 5 were told"]
    assert missed(600, dry, replace(cheap, written=599)) == ["of 600 events 599 are there"]
    assert missed(600, dry, replace(cheap, peak=MEMORY + 2**20)) == ["an import takes 513 MB"]
