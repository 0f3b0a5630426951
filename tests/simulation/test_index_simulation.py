"""G6 and G7 under a scheduler: overlapping, crashing, repeated and late invocations, and readers beside them."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.simulation.index_world import FATES, run
from tests.simulation.index_writers import LAYOUTS
from tests.simulation.seeds import ranges

SIZE, COUNT = 25, 48
"""Of seeds; what is particular to the other layouts takes fewer to be met."""


JUMBLED = 0.4
"""How likely a change is to come twice, and late, where Kinesis brings it."""


@cache
def met(seed: int, layout: str, jumbled: float = 0.0) -> Counter[str]:
    return run(seed, layout, jumbled=jumbled).met


@pytest.mark.parametrize("layout", LAYOUTS)
@ranges(SIZE, COUNT)
def test_whatever_befalls_the_indexers_the_feed_is_complete_in_order_and_without_doubles(
    seeds: range, layout: str
) -> None:
    third = 1 if layout == "tips" else 3
    for seed in range(seeds.start // third, seeds.stop // third):
        met(seed, layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@ranges(SIZE, COUNT)
def test_so_it_is_where_changes_come_twice_and_in_any_order(seeds: range, layout: str) -> None:
    third = 1 if layout == "tips" else 3
    for seed in range(seeds.start // third, seeds.stop // third):
        met(seed, layout, JUMBLED)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_and_there_the_seeds_bring_about_both(layout: str) -> None:
    found = sum((met(seed, layout, JUMBLED) for seed in range(SIZE)), Counter())
    assert {what for what, times in found.items() if times >= 10} >= {
        "comes after a later one",
        "comes twice",
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_seeds_bring_about_all_that_they_are_meant_to(layout: str) -> None:
    found = sum((met(seed, layout) for seed in range(SIZE)), Counter())
    wanted = {f"delivered again after {rollovers} rollovers" for rollovers in (0, 1, 2, 3)} | set(FATES)
    assert wanted <= {what for what, times in found.items() if times >= 10}, found


def test_a_seed_replays_to_the_letter() -> None:
    for seed, layout in enumerate(LAYOUTS):
        one, two = run(seed, layout), run(seed, layout)
        assert list(one.tables.items("index")) == list(two.tables.items("index"))
        assert one.told == two.told
