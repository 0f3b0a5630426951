from collections.abc import Callable

import pytest

from bench.new_streams import BATCH, Watched, index, rebuild
from epochal.index.epochs import EpochLimits

LIMITS = EpochLimits(streams=5_000)


@pytest.mark.parametrize("measure", [index, pytest.param(rebuild, marks=pytest.mark.proof)])
def test_many_new_streams_grow_no_epoch_past_its_limits_and_no_batch_takes_more_than_another(
    measure: Callable[[int, EpochLimits], Watched],
) -> None:
    watched = measure(30_000, LIMITS)
    watched.check(30_000)
    assert len(watched.closed) >= 5
    after_the_first_epoch = watched.requests[6:]
    assert max(after_the_first_epoch) <= 1.1 * min(after_the_first_epoch)
    assert max(watched.held) <= 2 * (LIMITS.streams + BATCH)
