"""G6 and G7 under a scheduler: overlapping, crashing, repeated and late invocations, and readers beside them."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.index_world import FATES, run

GROUPS, SIZE = 8, 75


@pytest.mark.parametrize("group", range(GROUPS))
def test_whatever_befalls_the_indexers_the_feed_is_complete_in_order_and_without_doubles(group: int) -> None:
    for seed in range(group * SIZE, (group + 1) * SIZE):
        run(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    met = sum((run(seed).met for seed in range(SIZE)), Counter())
    wanted = {f"delivered again after {rollovers} rollovers" for rollovers in (0, 1, 2, 3)} | set(FATES)
    assert wanted <= {what for what, times in met.items() if times >= 10}, met


def test_a_seed_replays_to_the_letter() -> None:
    for seed in (1, 2, 3):
        one, two = run(seed), run(seed)
        assert list(one.tables.items("index")) == list(two.tables.items("index"))
        assert one.told == two.told
