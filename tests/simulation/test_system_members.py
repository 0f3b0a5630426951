"""The whole system by seed, where each reaction has three members of each partition."""

from __future__ import annotations

from functools import partial

import pytest

from epochal.hosting.reaction_function import ReactionFunction
from tests.simulation import system_world
from tests.simulation.mutants import Patch, play_all
from tests.simulation.system_checks import play

SEEDS = range(50)


@pytest.fixture(autouse=True)
def _three(monkeypatch: Patch) -> None:
    monkeypatch.setattr(system_world, "Reaction", partial(system_world.Reaction, members=3))


def test_whatever_was_written_is_handled_by_one_of_the_members() -> None:
    shares, died = set[int](), 0
    for seed in SEEDS:
        world = play(seed)
        shares |= {
            len(each.group.state(partition).shares)
            for each in world.consumers
            for partition in each.partitions
        }
        died += world.met["died reacting"]
    assert shares == {3}
    assert died > 10


def test_members_that_nobody_wakes_are_found_out(monkeypatch: Patch) -> None:
    monkeypatch.setattr(ReactionFunction, "_wake_members", lambda *_: None)
    with pytest.raises(AssertionError, match="does not come to rest"):
        play_all(play, len(SEEDS))
