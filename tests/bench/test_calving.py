import pytest

from bench.calving import BOUND, SIZES, UNFOLDS, best_course, corpus, measure, run
from bench.corpus import Workload
from epochal.contrib.equinox.calving import ByCost, Fixed


@pytest.mark.proof
@pytest.mark.parametrize("unfold", UNFOLDS[:2], ids=["without unfold", "with a 1 KB unfold"])
@pytest.mark.parametrize("size", [100, 700, 4096])  # all of them: `make bench`
def test_a_thousand_appends_by_cost_stay_within_a_tenth_of_the_optimum(size, unfold):
    for workload in corpus([size], [unfold], lengths=[1000]):
        assert run(workload, ByCost()).write <= BOUND * best_course(workload).units


@pytest.mark.parametrize("length", [20, pytest.param(100, marks=pytest.mark.proof)])
def test_short_streams_by_cost_stay_within_an_eighth_of_the_optimum_whoever_writes(length):
    results = [measure(workload) for workload in corpus(SIZES[::4], lengths=[length])]

    assert max(result.excess for result in results) <= 1.125


def test_calving_by_cost_in_one_transaction_stays_within_a_tenth_of_its_own_optimum():
    for size in (100, 300, 700, 1500):
        workload = Workload(size=size, jitter=0.5, length=300)
        best = best_course(workload, transactional=True).units
        assert run(workload, ByCost(mode="transactional")).write <= BOUND * best


@pytest.mark.proof
def test_a_fixed_tip_of_32_kib_with_transactional_calves_costs_more_than_ten_times_as_much():
    workload = Workload(size=300)
    fixed = run(workload, Fixed()).write

    assert fixed > 10 * run(workload, ByCost()).write
    assert fixed / 1000 == pytest.approx(17.6, abs=0.5)


def test_a_workload_is_the_same_every_time_it_is_made():
    workload = Workload(size=300, jitter=0.5, kind="json", unfold=1024, length=100)

    assert list(workload.appends()) == list(workload.appends())
