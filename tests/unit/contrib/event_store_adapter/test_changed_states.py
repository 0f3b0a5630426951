"""Snapshots of aggregates of a class that has changed since: the state is made from the events."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.contrib.event_store_adapter.deciders import AggregateDeciders, every, json_state
from tests.unit.contrib.event_store_adapter.world import ALICE, World
from tests.unit.deciders.changed_states import CHANGES, Program


def on(world: World, program: Program, events: int = 1, **changes: Any) -> AggregateDeciders[int, Any, Any]:
    """A program on aggregates, which keeps a snapshot every so many events."""
    return AggregateDeciders(
        store=world.store(),
        decider=program.decider,
        codec=program.codec,
        state=json_state(program.kind, **changes),
        policy=every(events),
    )


@pytest.mark.parametrize("events", [1, 2, 50])
@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_of_a_changed_class_gives_way_to_the_events(change: str, events: int) -> None:
    before, after = CHANGES[change]
    world = World()
    for amount in (5, 4):
        on(world, before, events).handle(ALICE, amount)
    assert on(world, after, events).query(ALICE, lambda state: state) == after.folded(5, 4)
    assert on(world, after, events).handle(ALICE, 3).state == after.folded(5, 4, 3)
    assert on(world, after, events).query(ALICE, lambda state: state) == after.folded(5, 4, 3)
