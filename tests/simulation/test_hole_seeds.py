"""What is gone is told, by seed: streams pruned by us, archived or not, and by Equinox, beside writers and readers."""

from __future__ import annotations

from tests.simulation.hole_simulation import replay

SEEDS = 500


def test_whatever_is_pruned_a_reader_gets_what_is_there_without_holes_or_is_told_of_them() -> None:
    played = [replay(seed) for seed in range(SEEDS)]

    assert sum(read.gone is not None for each in played for read in each.seen) > 20
    assert sum(not there for each in played for told in each.told for _, _, there in told) > 20


def test_a_seed_replays_exactly() -> None:
    assert replay(7).world.images() == replay(7).world.images()
