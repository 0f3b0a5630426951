from dataclasses import replace

import pytest

from bench.page_replay import LAGGING, STRONG, Took, beside_boto3, in_memory, within


def test_a_replay_of_pages_takes_450_read_units_for_5000_events_and_half_where_lag_is_allowed():
    assert within(in_memory(500), 500)


def test_a_bound_that_is_missed_is_told():
    took = {
        way: Took(seconds=1, requests=4, read=of * 100)
        for way, of in (("strong", STRONG), ("lagging", LAGGING))
    }

    assert within(took, 100)
    for way, kept in took.items():
        assert not within({**took, way: replace(kept, read=kept.read + 0.5)}, 100)


@pytest.mark.proof
def test_a_replay_of_pages_is_faster_than_boto3_that_queries_an_item_for_each_event(ddbl):
    """1.2 times in `make bench`, which is run on a machine that does nothing else."""
    assert beside_boto3(ddbl, 5_000, rounds=6).best_ratio("library", "bare") > 1
