"""Arguments of a wrong kind are refused with the field's name, where they would be ignored, stored or fail inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from epochal import Event, later
from epochal.contrib.subjects.testing import memory_subjects
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import json_codec
from epochal.deciders.loading import AllowStale
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, Deciders, handle_all
from epochal.deciders.projections import projection
from epochal.errors import InvalidInput
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import memory_streams, memory_tagged_events


@dataclass(frozen=True)
class Placed:
    total: int


CODEC = json_codec(Placed)


def orders() -> Deciders[int, int, Placed]:
    rules = Decider[int, int, Placed](
        initial=lambda: 0,
        evolve=lambda state, event: state + event.total,
        decide=lambda command, _: [Placed(command)],
    )
    return Deciders(streams=memory_streams(), decider=rules, codec=CODEC)


def wrong(value: object) -> Any:
    """A value that type checkers would find."""
    return value


@pytest.mark.parametrize("load", ["x", 5, None, AllowStale])
def test_a_way_of_loading_that_there_is_not_is_refused(load: Any) -> None:
    found = orders()
    with pytest.raises(
        InvalidInput, match="load: must be REQUIRE_LOAD, ALLOW_LAG, ASSUME_EMPTY or AllowStale"
    ):
        found.query("Order-1", lambda state: state, load=load)
    with pytest.raises(InvalidInput, match="load: must be REQUIRE_LOAD"):
        found.handle("Order-1", 7, load=load)
    with pytest.raises(InvalidInput, match="load: must be REQUIRE_LOAD"):
        found.query("Order-1", lambda state: state, load=load, as_of=0)
    assert found.streams.load("Order-1") is None


@pytest.mark.parametrize("max_age", ["1", float("nan")])
def test_an_age_that_is_no_number_of_seconds_is_refused(max_age: Any) -> None:
    with pytest.raises(InvalidInput, match="max_age: must be seconds, not"):
        AllowStale(max_age=max_age)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda subjects: subjects.seal(wrong(None), b""), "subject: must be text, not NoneType"),
        (lambda subjects: subjects.seal("u", wrong("text")), "body: must be bytes, not str"),
        (lambda subjects: subjects.seal("u", wrong(7)), "body: must be bytes, not int"),
        (lambda subjects: subjects.forget(wrong(None)), "subject: must be text, not NoneType"),
        (lambda subjects: subjects.is_forgotten(wrong(b"u")), "subject: must be text, not bytes"),
        (lambda subjects: subjects.unseal(wrong("text")), "body: must be bytes, not str"),
    ],
)
def test_a_subject_is_text_and_its_bodies_are_bytes(call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call(memory_subjects())


@pytest.mark.parametrize("generation", ["1", 1.0, True, None])
def test_a_generation_is_a_whole_number(generation: Any) -> None:
    with pytest.raises(InvalidInput, match="generation: must be a number, not"):
        MemoryStore().read_models.open("m", generation)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"entries": "1"}, "entries: must be a number, not str"),
        ({"entries": None}, "entries: must be a number, not NoneType"),
        ({"max_bytes": "1"}, "max_bytes: must be a number, not str"),
        ({"max_seconds": "1"}, "max_seconds: must be seconds, not str"),
        ({"size_of": 5}, "size_of: must be a function, not int"),
    ],
)
def test_limits_of_a_cache_are_numbers(limits: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Cache(**limits)


@pytest.mark.parametrize("projections", [["taken"], None])
def test_projections_have_names(projections: Any) -> None:
    decisions = Decisions(store=memory_tagged_events())
    message = "projections: must be projections by name, not"
    with pytest.raises(InvalidInput, match=message):
        decisions.handle(projections, lambda _: [])
    with pytest.raises(InvalidInput, match=message):
        decisions.model(projections)
    if projections is not None:
        with pytest.raises(InvalidInput, match=message):
            orders().handle("Order-1", given=projections, decide=lambda _, __: [])


def test_what_stands_under_a_name_is_a_projection() -> None:
    decisions = Decisions(store=memory_tagged_events())
    with pytest.raises(InvalidInput, match="projections.taken: must be a projection, not int"):
        decisions.handle({"taken": wrong(7)}, lambda _: [])


PAIR = "decide: must return a pair of a result and a list of events, not"


@pytest.mark.parametrize("answer", [[Placed(1)], [], None, (1, [Placed(1)], 3)])
def test_a_decision_with_a_result_returns_a_pair(answer: Any) -> None:
    found = orders()
    with pytest.raises(InvalidInput, match=PAIR):
        found.handle("Order-1", decide=lambda _: answer, with_result=True)
    with pytest.raises(InvalidInput, match=PAIR):
        handle_all([found.on("Order-1"), found.on("Order-2")], lambda *_: answer, with_result=True)
    counted = projection(tags=["order:1"], on={"Placed": lambda state, _: state}, initial=0)
    with pytest.raises(InvalidInput, match=PAIR):
        Decisions(store=memory_tagged_events()).handle(
            {"counted": counted}, lambda _: answer, with_result=True
        )


def test_a_list_of_two_is_no_pair_if_both_are_events() -> None:
    with pytest.raises(InvalidInput, match="decide: must return"):
        orders().handle("Order-1", decide=lambda _: wrong([Placed(1), Placed(2)]), with_result=True)


@pytest.mark.parametrize("at", ["soon", "2026-06-01", "", "2026-06-31T09:00"])
def test_a_due_time_that_is_no_time_is_not_told_to_have_a_zone(at: str) -> None:
    with pytest.raises(InvalidInput, match="at: must be an ISO 8601 date and time") as refused:
        later("reminder", [Event(type="Reminded")], at=at)
    assert "2026-01-31T12:00:00Z" in str(refused.value)


def test_a_due_time_without_a_zone_is_told_to_have_one() -> None:
    for at in ("2026-06-01T09:00", "2026-06-01 09:00:00.5"):
        with pytest.raises(InvalidInput, match="at: must have a time zone"):
            later("reminder", [Event(type="Reminded")], at=at)


@pytest.mark.parametrize("value", [10**5000, [-(10**5000)], {"n": 10**5000}], ids=["int", "list", "object"])
def test_an_integer_that_python_does_not_write_out_is_told_by_its_size(value: Any) -> None:
    with pytest.raises(
        InvalidInput, match="must be JSON, and an integer of more digits than Python writes out is not"
    ):
        Event.json("A", value)
