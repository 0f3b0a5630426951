"""Indexers that rest where they crowd a partition: under whatever befalls them, and as long as they should."""

from __future__ import annotations

from collections import Counter
from functools import cache

from tests.simulation.rest_walk import walk
from tests.simulation.rest_world import run
from tests.simulation.seeds import ranges

SIZE, COUNT = 40, 20

WALKS = 500


@cache
def met(seed: int) -> Counter[str]:
    return run(seed).met


@ranges(SIZE, COUNT)
def test_whatever_befalls_indexers_that_rest_nothing_is_lost_and_rests_are_as_they_should_be(
    seeds: range,
) -> None:
    for seed in seeds:
        met(seed)


@ranges(WALKS, COUNT)
def test_a_rest_is_as_long_as_the_entries_of_others_ask_for(seeds: range) -> None:
    for seed in seeds:
        walk(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    found = sum((met(seed) for seed in range(SIZE)), Counter())
    wanted = {
        "rests",
        "is spread over half a rest",
        "is cut short",
        "is ended",
        "dies in its rest",
        "dies at a request",
        "comes again",
        "fails",
    }
    assert wanted == {what for what, times in found.items() if times >= 3}, found


def test_a_seed_replays_to_the_letter() -> None:
    one, two = run(17), run(17)
    assert list(one.tables.items("index")) == list(two.tables.items("index"))
    assert (one.log, one.met, one.time.now) == (two.log, two.met, two.time.now)
