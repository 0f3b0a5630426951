import pytest

from bench.tail import BOUND, SHARED_BOUND, measured
from epochal.feed.waiting import LONGEST_POLL


@pytest.mark.parametrize("large", [False, True])
def test_a_thousand_readers_at_the_tail_take_300_units_a_second_apart_and_ten_in_one_process(large):
    assert 1_000 * measured(1, large=large).units <= BOUND
    together = measured(1_000, large=large, seconds=60)
    assert together.units <= SHARED_BOUND
    assert together.late <= LONGEST_POLL
