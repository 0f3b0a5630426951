"""G9 under a scheduler: reactors that overlap, die and fail, beside an operator who replays what they parked."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.reaction_world import run

GROUPS, SIZE = 4, 50


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_checkpoint_ever_passes_what_is_neither_handled_nor_parked(group: int) -> None:
    for seed in range(group * SIZE, (group + 1) * SIZE):
        run(seed)


def test_the_seeds_bring_about_all_that_they_are_meant_to() -> None:
    met = sum((run(seed).met for seed in range(SIZE)), Counter())
    wanted = {
        "died in a handler",
        "failed in a handler",
        "died before a request",
        "saved",
        "unparked",
        "parked again",
    }
    assert wanted <= {what for what, times in met.items() if times >= 5}, met


def test_a_seed_replays_to_the_letter() -> None:
    for seed in (1, 2, 3):
        one, two = run(seed), run(seed)
        assert list(one.tables.items("index")) == list(two.tables.items("index"))
        assert one.group.handled == two.group.handled
