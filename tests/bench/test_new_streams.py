from collections.abc import Callable

import pytest

from bench.new_streams import BATCH, MOST_UNITS, Watched, index, index_again, rebuild
from epochal.index.epochs import EpochLimits

LIMITS = EpochLimits(streams=2_000)


@pytest.mark.parametrize("measure", [index, pytest.param(rebuild, marks=pytest.mark.proof)])
def test_many_new_streams_grow_no_epoch_past_its_limits_and_their_marks_are_a_tenth_of_a_unit_each_at_most(
    measure: Callable[[int, EpochLimits], Watched],
) -> None:
    watched = measure(12_000, LIMITS)
    watched.check(12_000)
    assert len(watched.closed) >= 5
    assert max(watched.held) <= 2 * (LIMITS.streams + BATCH)
    assert max(watched.requests) < 60


def test_an_event_of_one_of_many_streams_costs_a_tenth_of_a_unit_for_marks_at_most() -> None:
    """An epoch has a fifth of the streams, as one within the standard limits has of a million; so an event has the same
    share of what an epoch costs.
    """
    watched = index_again(10_000, LIMITS)
    assert len(watched.closed) >= 3
    assert 0 < (watched.units.write + watched.units.read) / 10_000 <= MOST_UNITS
