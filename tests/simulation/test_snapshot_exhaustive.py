"""Snapshots of decision models, exhaustively in small worlds: no decision is made on anything but what there was."""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from epochal.codec import json
from epochal.deciders.model_snapshots import ModelSnapshots
from epochal.deciders.on_queries import Decisions, Model
from epochal.deciders.projections import Projection
from epochal.model.tag_answers import Seen
from epochal.model.tags import Query
from tests.simulation.exploring import each_of
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.snapshot_explorer import BOTH, NARROW, WIDE, Actor, Explorer

BEFORE = (Actor(name="s", tags="a b", model=BOTH), Actor(name="t", tags="a b", model=BOTH))
"""The second finds an event to fold, and keeps a snapshot before it appends another."""


def one_who_decides_while_another_appends() -> Explorer:
    return Explorer(
        before=BEFORE,
        actors=(
            Actor(name="d", tags="a b", model=BOTH),
            Actor(name="e", tags="b", clock=3),
        ),
        unheard=1,
    )


def two_who_decide_on_the_same_model() -> Explorer:
    return Explorer(
        before=BEFORE,
        actors=(
            Actor(name="d", tags="a b", model=BOTH),
            Actor(name="e", tags="a b", model=BOTH, clock=3),
        ),
        unheard=1,
    )


def models_of_the_same_names_that_ask_for_other_events() -> Explorer:
    return Explorer(
        before=(
            Actor(name="s", tags="b"),
            Actor(name="t", tags="a"),
            Actor(name="u", tags="b", model=WIDE),
        ),
        actors=(
            Actor(name="d", tags="a b", model=WIDE),
            Actor(name="e", tags="a b", model=NARROW, clock=3),
        ),
        unheard=1,
    )


def programs_of_two_versions() -> Explorer:
    return Explorer(
        before=BEFORE,
        actors=(
            Actor(name="d", tags="a b", model=BOTH),
            Actor(name="e", tags="a b", model=BOTH, version="!", clock=3),
        ),
        unheard=1,
    )


WORLDS = (
    one_who_decides_while_another_appends,
    two_who_decide_on_the_same_model,
    models_of_the_same_names_that_ask_for_other_events,
    programs_of_two_versions,
)


@each_of(WORLDS, dear=WORLDS[1:])
def test_no_decision_is_made_on_anything_but_what_there_was(world: Callable[[], Explorer]) -> None:
    explorer = world()
    assert explorer.explore() > 150, "a world in which hardly anything happens proves nothing"
    for actor in explorer.actors:
        assert len(explorer.models[actor.name]) > bool(actor.model), f"nobody overtook {actor.name}"


# ------------------------------------------------------------------------------------------------------------- mutants

Projections = Mapping[str, Projection[Any]]


def a_snapshot_claims_what_came_after_it_was_folded(patch: Patch) -> None:
    sound = Decisions.model

    def model(self: Decisions, asked: Projections) -> Model:
        found = sound(self, asked)
        if self.snapshots is not None:
            self.snapshots.keep(found.query, found.states, self.store.read(found.query).position)
        return found

    patch.setattr(Decisions, "model", model)


def what_a_snapshot_has_is_folded_again(patch: Patch) -> None:
    sound = Decisions._read_newer

    def seen(self: Decisions, query: Query, asked: Projections) -> tuple[Mapping[str, Any], Seen]:
        return sound(self, query, asked)[0], self.store.read(query)

    patch.setattr(Decisions, "_read_newer", seen)


def a_condition_rests_on_the_position_of_the_snapshot(patch: Patch) -> None:
    sound = Decisions._read_newer

    def seen(self: Decisions, query: Query, asked: Projections) -> tuple[Mapping[str, Any], Seen]:
        states, found = sound(self, query, asked)
        kept = None if self.snapshots is None else self.snapshots.find(query, asked.keys())
        return states, found if kept is None else replace(found, position=kept[1])

    patch.setattr(Decisions, "_read_newer", seen)


def models_are_told_apart_by_the_names_of_their_projections(patch: Patch) -> None:
    def stream(self: ModelSnapshots, _query: Query, names: Collection[str]) -> str:
        return f"{self.name}-{json.dumps(sorted(names)).hex()}"

    patch.setattr(ModelSnapshots, "_stream", stream)


def a_snapshot_of_any_version_is_good(patch: Patch) -> None:
    sound = ModelSnapshots.find

    def find(self: ModelSnapshots, query: Query, names: Collection[str]) -> Any:
        return sound(self, query, names) or sound(
            replace(self, version="!" if not self.version else ""), query, names
        )

    patch.setattr(ModelSnapshots, "find", find)


@pytest.mark.parametrize(
    ("mutant", "world"),
    [
        (a_snapshot_claims_what_came_after_it_was_folded, one_who_decides_while_another_appends),
        (what_a_snapshot_has_is_folded_again, one_who_decides_while_another_appends),
        (a_condition_rests_on_the_position_of_the_snapshot, one_who_decides_while_another_appends),
        (
            models_are_told_apart_by_the_names_of_their_projections,
            models_of_the_same_names_that_ask_for_other_events,
        ),
        (a_snapshot_of_any_version_is_good, programs_of_two_versions),
    ],
    ids=lambda value: value.__name__,
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], monkeypatch: Patch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match="was decided on|a snapshot tells"):
        world().explore()
