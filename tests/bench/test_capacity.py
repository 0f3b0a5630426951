import pytest

from bench.calving import run
from bench.capacity import BOUNDS, charged
from bench.workloads import contend, in_batches, load_and_append
from epochal.layout.tips.calving import ByCost


# What `make test` has of these is in tests/contract/test_cost.py, with other events.
@pytest.mark.proof
@pytest.mark.parametrize(("workload", "bound"), BOUNDS.items(), ids=["stored direct", "with brotli"])
def test_a_thousand_appends_of_300_bytes_take_no_more_units_than_promised(ddbl, workload, bound):
    spent = charged(ddbl, workload)

    assert workload.length == 1000
    assert workload.size == 300
    assert spent.write / workload.length <= bound
    assert spent == run(workload, ByCost()), "the memory interpreter charges what DynamoDB charges"


@pytest.mark.proof
def test_loading_and_appending_costs_less_than_the_adapter_aett_and_the_fat_tip(ddbl):
    cost = load_and_append(ddbl, "json")

    assert cost.dollars < 1.38
    assert cost.stored < 300


@pytest.mark.proof
def test_ten_events_in_one_append_share_its_write_units(ddbl):
    assert in_batches(ddbl, "json").units.write < 1


@pytest.mark.proof
def test_writers_on_one_stream_lose_nothing(ddbl):
    assert contend(ddbl, "direct").kept == 160
