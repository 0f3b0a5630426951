"""What goes with an append is written once where its events are, and else not at all: all that can happen, by state."""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from epochal.pages import commit, keyed_appends
from epochal.plan.ops import Steps, Transact
from tests.simulation.also_explorer import AlsoExplorer, GiveBack, With, act
from tests.simulation.exploring import Budget, each_of, is_found_out, left_out
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.page_actors import Rule
from tests.simulation.page_verdicts import applied_if_anything_is_there, never_applied
from tests.simulation.several_explorer import A, Actor, B, Prune

NEVER = Rule()
ALWAYS = Rule(full=frozenset(range(20)))
ODD = Rule(full=frozenset(range(1, 20, 2)))
TIGHT = Rule(tight=frozenset(range(20)))


def does(*moves: Any, rule: Rule = NEVER) -> Actor:
    return Actor(does=moves, rule=rule)


def alone(name: str, **fields: Any) -> With:
    return With(name=name, **{"streams": (A,), **fields})


def explorer(*actors: Actor, before: Actor | None = None, **budget: int) -> AlsoExplorer:
    first = () if before is None else (before,)
    return AlsoExplorer(actors=actors, acts=act, before=first, budget=Budget(**budget))


def two_who_count_in_one_stream() -> AlsoExplorer:
    return explorer(
        does(alone("a0"), alone("a1", expects="known"), rule=ODD),
        does(alone("b0", expects="none"), alone("b1"), rule=ALWAYS),
        unheard=1,
        late=1,
        partly=1,
    )


def two_who_count_in_two_streams() -> AlsoExplorer:
    return explorer(
        does(With(name="a0"), With(name="a1", expects="known"), rule=ODD),
        does(With(name="b0"), alone("b1", streams=(B,)), rule=ALWAYS),
        unheard=1,
        late=1,
    )


def two_who_claim_one_name() -> AlsoExplorer:
    """Each in a stream that it begins, so that nothing but the name is in the way."""
    return explorer(
        does(alone("a", expects="none", claims=True)),
        does(alone("b", streams=(B,), expects="none", claims=True)),
        does(alone("c", streams=(B,), claims=True), rule=ALWAYS),
        unheard=1,
        late=1,
        partly=1,
    )


def a_seat_that_is_given_back() -> AlsoExplorer:
    """An append that was refused for want of a seat may arrive again when there is one."""
    return explorer(
        does(alone("a", sits=True)),
        does(GiveBack()),
        does(alone("b", sits=True, streams=(B,))),
        unheard=1,
        late=1,
    )


def pages_that_no_batch_fits() -> AlsoExplorer:
    return explorer(
        does(alone("a0"), alone("a1", expects="known"), rule=TIGHT),
        does(alone("b", claims=True), rule=ALWAYS),
        before=does(alone("s")),
        unheard=1,
        late=1,
    )


def a_stream_that_is_pruned() -> AlsoExplorer:
    return explorer(
        does(alone("a", claims=True), rule=ALWAYS),
        does(alone("b"), rule=ALWAYS),
        does(Prune(stream=A, before=3)),
        before=does(alone("s"), rule=ALWAYS),
        unheard=1,
        late=1,
    )


def two_under_one_key_of_a_stream() -> AlsoExplorer:
    """The name that the first has claimed is in the way of its repeats."""
    return explorer(
        does(alone("a", expects="none", key="k", claims=True), alone("a", key="k", claims=True), rule=ALWAYS),
        does(alone("a", key="k", claims=True, clock=1)),
        does(alone("m", counts=False)),
        unheard=1,
        late=1,
        partly=1,
    )


def two_under_one_key_of_two_streams() -> AlsoExplorer:
    return explorer(
        does(With(name="a", expects="none", key="k", claims=True), With(name="a", key="k", claims=True)),
        does(With(name="a", key="k", claims=True, clock=1), rule=ALWAYS),
        unheard=1,
        late=1,
        partly=1,
    )


WORLDS = (
    two_who_count_in_one_stream,
    two_who_count_in_two_streams,
    two_who_claim_one_name,
    a_seat_that_is_given_back,
    pages_that_no_batch_fits,
    a_stream_that_is_pruned,
    two_under_one_key_of_a_stream,
    two_under_one_key_of_two_streams,
)


@each_of(WORLDS, dear=(two_who_claim_one_name, two_under_one_key_of_a_stream))
def test_what_goes_with_an_append_is_written_once_or_not_at_all(world: Callable[[], AlsoExplorer]) -> None:
    found = world()

    assert found.explore() > 100, "a world in which hardly anything happens proves nothing"
    assert "Appended" in found.met
    if world in (two_who_claim_one_name, a_seat_that_is_given_back):
        assert found.met >= {"Unmet", "unsure"}


# ------------------------------------------------------------------------------------------------------------- mutants


def what_goes_with_it_is_left_out(patch: Patch) -> None:
    def pages_alone(plan: Any) -> Transact:
        return Transact(writes=plan.all[: len(plan.all) - len(plan.also)])

    patch.setattr(commit, "_operation", pages_alone)


def a_refused_append_is_not_looked_for(patch: Patch) -> None:
    patch.setattr(commit, "_judge", never_applied)


def what_is_in_the_way_is_taken_for_ours(patch: Patch) -> None:
    patch.setattr(commit, "_judge", applied_if_anything_is_there)


def a_lost_try_that_may_still_arrive_is_forgotten(patch: Patch) -> None:
    patch.setattr(commit, "check_over", lambda *_: None)


def a_record_that_was_not_told_of_is_not_asked_for(patch: Patch) -> None:
    sound = commit._split_refusal

    def as_told(plan: Any, refusal: Any) -> Any:
        own, stood = sound(plan, refusal)
        return replace(own, failed=(False,) * len(own.items)), stood

    patch.setattr(commit, "_split_refusal", as_told)


def a_stream_is_not_searched_where_a_condition_fails(patch: Patch) -> None:
    sound = keyed_appends.PageAttempts.settle

    def unless_loaded(attempts: Any, head: Any, *about: Any, **how: Any) -> Steps[Any]:
        return None if attempts.also else (yield from sound(attempts, head, *about, **how))

    patch.setattr(keyed_appends.PageAttempts, "settle", unless_loaded)


@left_out(
    (what_goes_with_it_is_left_out, two_who_count_in_one_stream, "more or less often"),
    (a_refused_append_is_not_looked_for, two_who_count_in_one_stream, "times|and it is"),
    (a_refused_append_is_not_looked_for, two_who_count_in_two_streams, "times|and it is"),
    (a_refused_append_is_not_looked_for, two_who_claim_one_name, "kept it from being made"),
    (what_is_in_the_way_is_taken_for_ours, two_who_count_in_one_stream, "and it is at"),
    (a_lost_try_that_may_still_arrive_is_forgotten, a_seat_that_is_given_back, "and then it is"),
    (
        a_record_that_was_not_told_of_is_not_asked_for,
        two_under_one_key_of_two_streams,
        "a repeat is told",
    ),
    (a_stream_is_not_searched_where_a_condition_fails, two_under_one_key_of_a_stream, "a repeat is told"),
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], AlsoExplorer], found: str, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
