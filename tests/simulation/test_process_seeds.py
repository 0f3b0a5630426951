"""Processes under a scheduler: two runners that overlap and die, over a network that fails, beside an operator."""

from __future__ import annotations

from collections import Counter
from functools import cache

from tests.simulation.process_world import run
from tests.simulation.seeds import ranges

SIZE, COUNT = 10, 200


@cache
def met(seed: int) -> Counter[str]:
    return run(seed).met


@ranges(SIZE, COUNT)
def test_each_output_has_one_effect_in_order_and_each_input_is_taken_once(seeds: range) -> None:
    for seed in seeds:
        met(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    found = sum(map(met, range(2 * SIZE)), Counter())
    wanted = {"died at a request", "set back", "the outside failed", "died outside", "fired", "replayed"}
    assert wanted <= {what for what, times in found.items() if times >= 3}, found


def test_a_seed_replays_to_the_letter() -> None:
    for seed in (1, 2, 3):
        one, two = run(seed), run(seed)
        assert list(one.tables.items("streams")) == list(two.tables.items("streams"))
        assert one.outside.calls == two.outside.calls
