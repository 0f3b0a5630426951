"""G3 and G11 for tagged events: racers on conditions that overlap, in orders that a seed chooses, under faults."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from epochal.model.outcomes import Appended, Conflict
from epochal.plan.ops import Execute
from epochal.testing.memory import Faults
from tests.simulation.dcb_history import check_tables
from tests.simulation.dcb_world import World, event, piecemeal, query
from tests.simulation.histories import schedule
from tests.simulation.scheduler import Process, run

QUERIES = (
    query(("T", "a:1")),
    query(("T", "a:1"), ("T", "b:1")),
    query(("T V", "a:1 b:1")),
    query(("V", "c:1"), ("T", "b:1")),
)
RACED = event("T", "a:1", "b:1")
"""What every racer appends: it matches each of the queries."""

SEEDS = {2: 100, 3: 100, 4: 80, 8: 40, 16: 15, 32: 6, 64: 3}
"""Racers, with how many orders are tried."""


def race(racers: int, seed: int, *, known: bool) -> tuple[World, list[object]]:
    """Racers with positions of before the race, or without."""
    luck, world, answers = random.Random(seed), World(), []
    world.store("before").append([event("U", "a:1", "b:1", "c:1")])
    positions = [world.store("before").read(each).position if known else None for each in QUERIES]

    def racer(number: int) -> Callable[[Execute], None]:
        def body(execute: Execute) -> None:
            store = world.store(f"racer {number}", piecemeal(execute), skew=number * (-1) ** number * 10**9)
            at = number % len(QUERIES)
            answers.append(store.try_append([RACED], fail_if=QUERIES[at], after=positions[at]))

        return body

    faults = [Faults(world.tables.execute, schedule(luck, 0.1, 30)) for _ in range(racers)]
    run(
        {
            str(number): Process(str(number), each.execute, racer(number))
            for number, each in enumerate(faults)
        },
        luck.choice,
    )
    for each in faults:
        each.land()
    return world, answers


@pytest.mark.parametrize("known", [True, False], ids=["with a position", "without"])
@pytest.mark.parametrize(
    "racers", [each if each in (2, 8) else pytest.param(each, marks=pytest.mark.proof) for each in SEEDS]
)
def test_of_racers_on_overlapping_conditions_exactly_one_commits(racers: int, known: bool) -> None:
    for seed in range(SEEDS[racers]):
        world, answers = race(racers, seed, known=known)

        assert len(answers) == racers
        assert sum(isinstance(answer, Appended) for answer in answers) == 1, f"seed {seed}"
        (winner,) = (answer.events[0].id for answer in answers if isinstance(answer, Appended))
        lost = [answer for answer in answers if isinstance(answer, Conflict)]
        assert all([found.id for found in answer.events] == [winner] for answer in lost), f"seed {seed}"
        assert [each.type for each in world.events()] == ["U", "T"]
        check_tables(world)
