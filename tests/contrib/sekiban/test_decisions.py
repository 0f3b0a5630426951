from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import Projection, projection
from epochal.errors import Contended, InvalidInput
from epochal.model.events import Event
from epochal.plan.ops import QUICKEST
from tests.contrib.sekiban.world import World, event


@pytest.fixture
def world() -> World:
    return World()


def count(tag: str, kind: str = "Added") -> Projection[int]:
    return projection(tags=[tag], initial=0, on={kind: lambda total, _: total + 1})


def test_a_model_is_one_read_of_all_its_projections(world: World) -> None:
    store = world.store()
    store.append([event("Added", "a:1", "b:1"), event("Added", "a:1"), event("Other", "b:1")])
    model = Decisions(store=store).model(
        {"a": count("a:1"), "b": count("b:1"), "other": count("b:1", "Other")}
    )
    assert model.states == {"a": 2, "b": 1, "other": 1}


def test_a_decision_on_an_unchanged_model_is_one_append(world: World) -> None:
    decide = Decisions(store=world.store())
    decided = decide.handle({"a": count("a:1")}, lambda _: [event("Added", "a:1")])
    assert [each.type for each in decided.events] == ["Added"]
    assert decided.model.states == {"a": 0}


def test_a_decision_overtaken_is_made_again_on_what_stood_in_the_way_without_a_second_read(
    world: World,
) -> None:
    store, seen = world.store(), []

    def rules(model: Mapping[str, Any]) -> list[Event]:
        seen.append(model["a"])
        if len(seen) == 1:
            store.append([event("Added", "a:1"), event("Noise", "a:1")])
        return [event("Added", "a:1")]

    requests: list[int] = []
    before = world.meter.requests
    Decisions(store=store).handle({"a": count("a:1")}, rules)
    requests.append(world.meter.requests - before)
    assert seen == [0, 1]
    # heads; the rival's heads and transaction; refused; entries and events in the way; transaction
    assert requests == [1 + 2 + 1 + 2 + 1]


def test_who_is_refused_again_gives_way_and_from_the_second_time_on_reads_what_came_during_the_pause(
    world: World,
) -> None:
    others, seen, waited = world.store(), [], []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            others.append([event("Added", "a:1")])

    def rules(model: Mapping[str, Any]) -> list[Event]:
        seen.append(model["a"])
        if len(seen) <= 3:
            others.append([event("Added", "a:1")])
        return [event("Added", "a:1")]

    store = world.store()
    slow = replace(store, driver=replace(store.driver, luck=lambda: 1.0, clock=lambda: 0.0, sleep=pause))
    Decisions(store=slow).handle({"a": count("a:1")}, rules)
    assert seen == [0, 1, 2, 4]
    assert waited == [32 * QUICKEST, 48 * QUICKEST]


def test_a_decision_for_nothing_writes_nothing(world: World) -> None:
    decided = Decisions(store=world.store()).handle({"a": count("a:1")}, lambda _: [])
    assert decided.events == ()
    assert list(world.tables.items("events")) == []


def test_a_decision_that_is_always_overtaken_gives_up(world: World) -> None:
    store = world.store()

    def rules(_: Mapping[str, Any]) -> list[Event]:
        store.append([event("Added", "a:1")])
        return [event("Added", "a:1")]

    with pytest.raises(Contended):
        Decisions(store=store, attempts=3).handle({"a": count("a:1")}, rules)
    assert len(list(world.tables.items("events"))) == 3
    with pytest.raises(InvalidInput, match="attempts: must be at least 1"):
        Decisions(store=store, attempts=0)


def test_the_domains_own_errors_pass_through_and_nothing_is_written(world: World) -> None:
    def rules(_: Mapping[str, Any]) -> list[Event]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Decisions(store=world.store()).handle({"a": count("a:1")}, rules)
    assert list(world.tables.items("events")) == []


def test_a_model_of_nothing_is_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="projections"):
        Decisions(store=world.store()).model({})
