from functools import cache

import pytest

from bench.index_contention import LOADS, WINDOW, Load, Measured, World

EXTREMES = [
    load
    for load in LOADS
    if load.shards not in {4, 100, 400}
    and load.kinesis != 4
    and not (load.together or load.eager or load.window > WINDOW)
    and (load.shards, load.rate) != (200, 100)
]


@cache
def played(load: Load) -> Measured:
    return World(load=load, seconds=4).play()


@pytest.mark.parametrize(
    "load",
    [load if load in EXTREMES else pytest.param(load, marks=pytest.mark.proof) for load in LOADS],
    ids=str,
)
def test_what_the_index_costs_stays_within_its_bound_however_many_shards_there_are(load: Load) -> None:
    played(load).fail()


def test_a_single_shard_is_never_refused_and_asks_for_no_more_than_it_writes() -> None:
    measured = played(Load(shards=1, rate=1_000, units=14, late=1.1))
    assert measured.refused == 0
    assert measured.requests < 4 * measured.invocations


@pytest.mark.parametrize("load", [load for load in LOADS if load.kinesis and not load.eager], ids=str)
def test_through_kinesis_forty_shards_cost_what_one_does(load: Load) -> None:
    """No more than 30 units for 1,000 heads, and 1.5 seconds, at most."""
    assert (load.shards, load.units <= 30, load.late <= 1.5) == (40, True, True)


@pytest.mark.parametrize(("rate", "shards", "saves"), [(100, 1, True), (1_000, 2, False)])
def test_kinesis_saves_dollars_where_there_are_many_shards_and_few_heads(
    rate: float, shards: int, saves: bool
) -> None:
    """Besides its shards: one is $10.95 a month, in which 100 heads a second are 260 million."""
    loads = [load for load in LOADS if load.rate == rate and load.shards == 40 and not load.together]
    plain = next(load for load in loads if not load.kinesis)
    through = next(load for load in loads if load.kinesis == shards)
    spent, instead = (played(load).dollars for load in (plain, through))
    assert (instead < spent / 4) is saves
    assert instead < 0.15


def test_a_longer_window_saves_more_than_any_rest() -> None:
    """Lambda charges for a rest, and not for its window."""
    loads = [load for load in LOADS if (load.shards, load.rate) == (200, 1_000)]
    resting = next(load for load in loads if load.window == WINDOW)
    waiting = next(load for load in loads if load.window > WINDOW)
    assert (waiting.units <= 60, waiting.late <= 12) == (True, True)
    assert waiting.units < resting.units / 5
