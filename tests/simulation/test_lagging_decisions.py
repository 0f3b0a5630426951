"""Decisions on loads that may lag are those that the stream's latest state leads to, whichever replicas answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.deciders.cache import Cache
from epochal.deciders.folding import Loaded
from epochal.deciders.loading import ALLOW_LAG, Loader
from epochal.store.driver import Driver, Meter
from epochal.testing.stores import memory_tables
from tests.layouts.deciders.tally import (
    CODEC,
    DECIDER,
    STRATEGIES,
    Refused,
    Tallies,
    Tally,
    TallyEvent,
    add,
    clear,
    evolve,
)
from tests.simulation.mutants import Mutants, Patch
from tests.simulation.seeds import ranges
from tests.simulation.world import NOON
from tests.support.lagging import Lagging
from tests.support.stream_layouts import WAYS

S = "Tally-1"
SEEDS = 300
STEPS = 14
PRUNED = ("snapshot", "multi-snapshot", "custom")
"""Strategies whose states outlive their events."""

Decide = Callable[[Tally], Sequence[TallyEvent]]

MUTANTS = Mutants()
mutant = MUTANTS.add


class World:
    """Processes that decide on one stream, and its true state."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.strategy = self.luck.choice(list(STRATEGIES))
        tables = memory_tables()
        lagging = Lagging(tables, self.luck.choice)
        self.streams = replace(
            memory_tips(tables),
            driver=Driver(execute=lagging.execute, meter=Meter(), sleep=lambda _: None),
            layout=self.luck.choice(list(WAYS.values())),
            fresh=self.luck.randbytes,
            now=lambda: NOON,
        )
        self.deciders = [self._decider(None), self._decider(Cache()), self._decider(Cache(entries=1))]
        self.state = Tally()

    def step(self) -> None:
        """One transaction, which another may overtake, or a prune."""
        if self.strategy in PRUNED and self.luck.random() < 0.2:
            self.streams.prune(S, self.luck.randint(0, 30))
            return
        decide = self._command()
        chance = iter([self.luck.random() < 0.3])

        def overtaken(state: Tally) -> Sequence[TallyEvent]:
            decided = decide(state)
            if decided and next(chance, False):
                faster = self._decider(None).handle(S, decide=add(self.luck.randint(1, 9)))
                self.state = reduce(evolve, faster.events, self.state)
            return decided

        try:
            outcome = self.luck.choice(self.deciders).handle(S, decide=overtaken, load=ALLOW_LAG)
        except Refused:
            with pytest.raises(Refused):
                decide(self.state)
            return
        expected = tuple(decide(self.state))
        self.state = reduce(evolve, expected, self.state)
        assert (outcome.events, outcome.state) == (expected, self.state), (
            "decided on a state that was not the latest"
        )

    def _command(self) -> Decide:
        if self.luck.random() < 0.2:
            return clear
        return add(self.luck.randint(-12, 9))

    def _decider(self, cache: Cache | None) -> Tallies:
        return Tallies(
            streams=self.streams, decider=DECIDER, codec=CODEC, access=STRATEGIES[self.strategy], cache=cache
        )


def play(seed: int) -> None:
    """One seed; raises `AssertionError` where a decision is not that of the latest state, or is none at all."""
    world = World(seed)
    try:
        for _ in range(STEPS):
            world.step()
    except (Exception, pytest.fail.Exception) as fault:
        message = f"seed {seed}: {world.strategy}: {type(fault).__name__}: {fault}"
        raise AssertionError(message) from fault


@ranges(100, SEEDS // 100)
def test_a_decision_is_that_of_the_latest_state(seeds: range) -> None:
    for seed in seeds:
        play(seed)


@mutant("decided on|DID NOT RAISE|Refused")
def a_load_that_may_lag_is_trusted_where_nothing_is_stored(patch: Patch) -> None:
    lagging = Loader.read_lagging

    def trusted(self: Loader[Any, Any], *given: Any) -> Loaded[Any]:
        return replace(lagging(self, *given), confirmed=True)

    patch.setattr(Loader, "read_lagging", trusted)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_seeds_find_every_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS.find_out(name, monkeypatch, play, SEEDS)
