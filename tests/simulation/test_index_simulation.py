"""G6 and G7 under a scheduler: overlapping, crashing, repeated and late invocations, and readers beside them."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.index_world import FATES, run
from tests.simulation.index_writers import LAYOUTS

GROUPS, SIZE = 8, 75
"""Of seeds; what is particular to the other layouts takes fewer to be met."""


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("group", range(GROUPS))
def test_whatever_befalls_the_indexers_the_feed_is_complete_in_order_and_without_doubles(
    group: int, layout: str
) -> None:
    size = SIZE if layout == "tips" else SIZE // 3
    for seed in range(group * size, (group + 1) * size):
        run(seed, layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_seeds_bring_about_all_that_they_are_meant_to(layout: str) -> None:
    met = sum((run(seed, layout).met for seed in range(SIZE)), Counter())
    wanted = {f"delivered again after {rollovers} rollovers" for rollovers in (0, 1, 2, 3)} | set(FATES)
    assert wanted <= {what for what, times in met.items() if times >= 10}, met


def test_a_seed_replays_to_the_letter() -> None:
    for seed, layout in enumerate(LAYOUTS):
        one, two = run(seed, layout), run(seed, layout)
        assert list(one.tables.items("index")) == list(two.tables.items("index"))
        assert one.told == two.told
