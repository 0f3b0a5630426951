import pytest

from bench.calving import run
from bench.capacity import BOUNDS, charged
from bench.workloads import contend, in_batches, load_and_append
from epochal.contrib.equinox.calving import ByCost


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
def test_loading_and_appending_costs_less_than_the_adapter_aett_and_the_fat_tip():
    cost = load_and_append("tips", "json")

    assert cost.dollars < 1.38
    assert cost.stored < 350


# Castore, an item for each event, is the cheapest of the rivals: 0.81 and 1.54 dollars a million.
@pytest.mark.parametrize(
    ("size", "loads", "dollars"),
    [
        pytest.param(300, "program", 0.75, marks=pytest.mark.proof),
        pytest.param(300, "read", 0.75, marks=pytest.mark.proof),
        pytest.param(300, "lagging", 0.69, marks=pytest.mark.proof),
        (300, "cached", 0.64),
        pytest.param(1000, "program", 0.805, marks=pytest.mark.proof),
        pytest.param(1000, "read", 0.775, marks=pytest.mark.proof),
        pytest.param(1000, "lagging", 0.71, marks=pytest.mark.proof),
        pytest.param(1000, "cached", 0.65, marks=pytest.mark.proof),
    ],
)
def test_loading_and_appending_on_pages_costs_less_than_an_item_for_each_event(size, loads, dollars):
    assert load_and_append("pages", "json", size, loads).dollars <= dollars


def test_ten_events_in_one_append_share_its_write_units():
    assert in_batches("tips", "json").units.write < 1
    assert in_batches("pages", "json").units.write <= 0.13


@pytest.mark.proof
def test_writers_on_one_stream_lose_nothing(ddbl):
    assert contend(ddbl, "pages", "direct").stored == 160
    assert contend(ddbl, "tips", "direct").stored == 160


@pytest.mark.proof
def test_programs_with_plain_calls_on_one_stream_waste_hardly_more_than_deciders(ddbl):
    took = contend(ddbl, "pages", "json", "program")

    assert took.stored == 160
    assert took.wasted < 400
