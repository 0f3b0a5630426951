"""G9 under a scheduler: reactors that overlap, die and fail, beside an operator who replays what they parked."""

from __future__ import annotations

from collections import Counter
from functools import cache

from tests.simulation.reaction_world import run
from tests.simulation.seeds import ranges

SIZE, COUNT = 50, 16


@cache
def met(seed: int) -> Counter[str]:
    return run(seed).met


@ranges(SIZE, COUNT)
def test_no_checkpoint_ever_passes_what_is_neither_handled_nor_parked(seeds: range) -> None:
    for seed in seeds:
        met(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    found = sum(map(met, range(SIZE)), Counter())
    wanted = {
        "died in a handler",
        "failed in a handler",
        "died before a request",
        "saved",
        "unparked",
        "parked again",
    }
    assert wanted <= {what for what, times in found.items() if times >= 5}, found


def test_a_seed_replays_to_the_letter() -> None:
    for seed in (1, 2, 3):
        one, two = run(seed), run(seed)
        assert list(one.tables.items("index")) == list(two.tables.items("index"))
        assert one.group.handled == two.group.handled
