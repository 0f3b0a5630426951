"""What is gone is told, by seed: streams pruned by us, archived or not, and by Equinox, beside writers and readers."""

from __future__ import annotations

from functools import cache

from tests.simulation.hole_simulation import replay
from tests.simulation.seeds import ranges

SIZE, COUNT = 100, 20


@cache
def met(seed: int) -> tuple[int, int]:
    """How often a read was told of a hole, and a prune of what is not there."""
    played = replay(seed)
    gone = sum(read.gone is not None for read in played.seen)
    return gone, sum(not there for told in played.told for _, _, there in told)


@ranges(SIZE, COUNT)
def test_whatever_is_pruned_a_reader_gets_what_is_there_without_holes_or_is_told_of_them(
    seeds: range,
) -> None:
    for seed in seeds:
        met(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    gone, absent = zip(*map(met, range(SIZE)), strict=True)
    assert sum(gone) > SIZE / 20
    assert sum(absent) > SIZE / 20


def test_a_seed_replays_exactly() -> None:
    assert replay(7).world.images() == replay(7).world.images()
