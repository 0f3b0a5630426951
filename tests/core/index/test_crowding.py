from __future__ import annotations

import pytest

from epochal.index.crowding import CALM, CROWD, LENGTHENING, LONGEST, WORTHWHILE, Crowding
from epochal.index.ingestion import MOST_SPREAD, Partition


def measured(rate: float, *, seconds: float = 2.0, changes: int = 10, batches: int = 12) -> Crowding:
    """Batches, each some seconds after the one before, while others write so many entries a second."""
    crowding = Crowding()
    for batch in range(batches + 1):
        crowding.count_others(round(rate * seconds))
        crowding.measure(batch * seconds, changes)
    return crowding


@pytest.mark.parametrize("rate", [0, 1, 30, CALM])
def test_up_to_a_rate_nobody_rests(rate: float) -> None:
    assert measured(rate).rest == 0.0


def test_above_it_the_rest_grows_with_the_rate_up_to_the_longest() -> None:
    rests = [measured(CALM + more).rest for more in (5, 10, 20)]
    assert rests == pytest.approx([LENGTHENING * more for more in (5, 10, 20)], rel=0.01)
    assert measured(1_000).rest == LONGEST


def test_few_busy_writers_do_not_rest_however_often_they_write() -> None:
    """Four shards without a window write some eighty entries a second, three between two batches of one of them."""
    assert measured(100, seconds=3 / 100).rest == 0.0
    assert measured(100, seconds=CROWD / 100).rest > 0


def test_a_batch_that_brings_next_to_nothing_does_not_rest() -> None:
    assert measured(100, changes=WORTHWHILE - 1).rest == 0.0
    assert measured(100, changes=WORTHWHILE).rest > 0


def test_the_first_batch_of_a_process_does_not_rest_and_one_burst_counts_for_half() -> None:
    crowding = Crowding()
    crowding.count_others(1_000)
    crowding.measure(5.0, 10)
    assert crowding.rest == 0.0
    crowding.count_others(160)
    crowding.measure(7.0, 10)
    assert crowding.rate == 40.0


def test_once_the_others_are_gone_nobody_rests() -> None:
    crowding = measured(200)
    assert crowding.rest > 0
    crowding.measure(100.0, 10)
    assert crowding.rest == 0.0


@pytest.mark.parametrize("back", [2.0, 5.0, 3_600.0])
def test_a_clock_that_was_set_back_says_nothing_about_the_rate(back: float) -> None:
    crowding = measured(CALM / 2)
    crowding.count_others(round(CALM))
    crowding.measure(26.0 - back, 10)
    assert (crowding.rate, crowding.rest) == (pytest.approx(CALM / 2, rel=0.02), 0.0)


def test_a_clock_that_was_set_back_by_nearly_all_of_an_interval_makes_an_indexer_rest_twice_at_most() -> None:
    crowding = measured(CALM / 2)
    rests = []
    for batch in range(5):
        crowding.count_others(round(CALM))
        crowding.measure(24.001 + 2.0 * batch, 10)
        rests.append(crowding.rest)
    assert all(rests[:2])
    assert not any(rests[2:])


def test_an_epoch_that_begins_anew_counts_as_no_entries() -> None:
    crowding = Crowding()
    crowding.count_others(-40)
    assert crowding.others == 0


def test_where_indexers_rest_tries_are_spread_over_half_a_rest() -> None:
    partition = Partition(number=0)
    partition.crowding.rest = 2.0
    for _ in range(12):
        partition.refused()
    assert partition.spread == 1.0 > MOST_SPREAD
