import pytest

from bench.index_contention import LOADS, Load, World


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_what_the_index_costs_stays_within_its_bound_however_many_shards_there_are(load: Load) -> None:
    World(load=load, seconds=4).play().fail()


def test_a_single_shard_is_never_refused_and_asks_for_no_more_than_it_writes() -> None:
    measured = World(load=Load(shards=1, rate=1_000, units=14, late=1.1), seconds=4).play()
    assert measured.refused == 0
    assert measured.requests < 4 * measured.invocations


@pytest.mark.parametrize("load", [load for load in LOADS if load.kinesis and not load.eager], ids=str)
def test_through_kinesis_forty_shards_cost_what_one_does(load: Load) -> None:
    """No more than 30 units for 1,000 heads, and 1.5 seconds, at most."""
    assert (load.shards, load.units <= 30, load.late <= 1.5) == (40, True, True)
