"""G1, G2 and G3 for appends to several streams of pages, without luck: all that can happen to them, state by state."""

# mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from epochal.layout import key_records
from epochal.pages import attempts, batch, commit, evidence, several, several_key, streams_part
from epochal.pages.appending import append
from epochal.pages.batch import Packed
from epochal.pages.several_key import SeveralKey
from epochal.plan.ops import Steps
from tests.simulation.exploring import Budget, each_of, is_found_out, left_out
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.page_actors import Rule
from tests.simulation.page_verdicts import applied_if_anything_is_there, never_applied, unknowable
from tests.simulation.several_explorer import A, Actor, B, Explorer, Move, Prune

NEVER = Rule()
ALWAYS = Rule(full=frozenset(range(20)))
ODD = Rule(full=frozenset(range(1, 20, 2)))
TIGHT = Rule(tight=frozenset(range(20)))


def moves(name: str, *expects: Any, rule: Rule = NEVER, **fields: Any) -> Actor:
    """A process that appends to both streams for each expectation."""
    return Actor(
        does=tuple(Move(name=f"{name}{k}", expects=each, **fields) for k, each in enumerate(expects)),
        rule=rule,
    )


def two_who_move_on_what_they_know() -> Explorer:
    return Explorer(
        actors=(moves("a", "none", "known", rule=ODD), moves("b", "any", "known", rule=ALWAYS, clock=1)),
        budget=Budget(unheard=1, late=1),
    )


def one_who_moves_among_those_who_append() -> Explorer:
    """An append to one stream alone is no transaction, and takes the place of the next like any other."""
    return Explorer(
        before=(moves("s", "any"),),
        actors=(
            moves("a", "any", "known", rule=ODD),
            moves("b", "any", streams=(A,), rule=ALWAYS),
            moves("c", "any", streams=(B,), clock=1),
        ),
        budget=Budget(unheard=1, late=1),
    )


def one_whose_streams_are_pruned() -> Explorer:
    return Explorer(
        before=(moves("s", "any", rule=ALWAYS),),
        actors=(
            moves("a", "any", rule=ALWAYS),
            moves("b", "any", streams=(A,), rule=ALWAYS),
            Actor(does=(Prune(stream=A, before=3), Prune(stream=B, before=3))),
        ),
        budget=Budget(unheard=1, late=1),
    )


def batches_that_no_page_takes() -> Explorer:
    return Explorer(
        before=(moves("s", "any"),),
        actors=(moves("a", "any", "known", rule=TIGHT), moves("b", "any", clock=1)),
        budget=Budget(unheard=1, late=1),
    )


def unfolds_among_events() -> Explorer:
    return Explorer(
        before=(moves("s", "any", rule=ODD),),
        actors=(
            moves("u", "any", "known", events=0, unfolds="u", rule=ALWAYS),
            moves("a", "any", "known", rule=ODD),
        ),
        budget=Budget(unheard=1, late=1),
    )


def two_under_one_key() -> Explorer:
    """Each asks twice, the second time expecting what no longer is."""
    return Explorer(
        actors=(
            moves("a", "none", "first", key="k", rule=ALWAYS),
            moves("b", "any", "none", key="k", clock=1),
        ),
        budget=Budget(unheard=1, late=1),
    )


def one_under_a_key_whose_streams_are_pruned() -> Explorer:
    return Explorer(
        actors=(
            moves("a", "none", "any", key="k", rule=ALWAYS),
            moves("b", "any", rule=ALWAYS),
            Actor(does=(Prune(stream=A, before=2), Prune(stream=B, before=2))),
        ),
        budget=Budget(unheard=1),
    )


WORLDS = (
    two_who_move_on_what_they_know,
    one_who_moves_among_those_who_append,
    one_whose_streams_are_pruned,
    batches_that_no_page_takes,
    unfolds_among_events,
    two_under_one_key,
    one_under_a_key_whose_streams_are_pruned,
)


@each_of(
    WORLDS,
    dear=(
        one_who_moves_among_those_who_append,
        one_whose_streams_are_pruned,
        batches_that_no_page_takes,
        one_under_a_key_whose_streams_are_pruned,
    ),
)
def test_an_append_is_in_all_of_its_streams_once_or_in_none(world: Callable[[], Explorer]) -> None:
    explorer = world()

    assert explorer.explore() > 500, "a world in which hardly anything happens proves nothing"
    assert "Appended" in explorer.met


# ------------------------------------------------------------------------------------------------------------- mutants


def streams_are_written_one_after_the_other(patch: Patch) -> None:
    def alone(table: str, appends: Sequence[Any], *_: Any, **__: Any) -> Steps[Any]:
        results: list[Any] = []
        for each in appends:
            results.append((yield from append(table, *each)))  # noqa: PERF401  a generator cannot be listed
        return tuple(results)

    patch.setattr(several, "append_all", alone)


def a_refused_append_is_not_looked_for(patch: Patch) -> None:
    patch.setattr(commit, "_judge", never_applied)


def whatever_is_in_the_way_is_taken_for_ours(patch: Patch) -> None:
    patch.setattr(commit, "_judge", applied_if_anything_is_there)


def pruned_events_count_as_never_written(patch: Patch) -> None:
    patch.setattr(evidence, "is_pruned", lambda *_: False)


def what_pages_tell_is_not_asked_for(patch: Patch) -> None:
    patch.setattr(commit, "_judge", unknowable)


def what_is_in_the_way_is_not_held_to_what_was_expected(patch: Patch) -> None:
    patch.setattr(streams_part, "accepts", lambda *_: True)


def stamps_are_what_the_clock_says(patch: Patch) -> None:
    patch.setattr(batch, "_after", lambda now, _last: now)


def a_page_is_left_without_being_closed(patch: Patch) -> None:
    def as_it_is(_table: str, _batch: Packed, known: Any) -> Steps[Any]:
        yield from ()
        return known

    patch.setattr(attempts, "_close_first", as_it_is)


def a_refusal_is_told_though_any_version_would_do(patch: Patch) -> None:
    patch.setattr(streams_part, "accepts", lambda *_: False)


def the_record_is_no_part_of_the_transaction(patch: Patch) -> None:
    kept = key_records.make_record_put

    def free(*given: Any) -> Any:
        return replace(kept(*given), condition=None)

    patch.setattr(several_key, "make_record_put", free)


def a_conflict_is_told_without_asking_for_the_record(patch: Patch) -> None:
    def unasked(*_: Any) -> Steps[None]:
        yield from ()

    patch.setattr(several_key, "load_record", unasked)


def a_repeat_is_told_of_what_it_would_have_written(patch: Patch) -> None:
    kept = SeveralKey.outcome_in

    def its_own(key: SeveralKey, table: str, found: Any, tries: Any) -> Steps[Any]:
        sent = (key_records.read_record(plan.records[0].item).made for plan in tries)
        return (yield from kept(key, table, replace(found, made=max((*sent, found.made))), tries))

    patch.setattr(SeveralKey, "outcome_in", its_own)


@left_out(
    (streams_are_written_one_after_the_other, two_who_move_on_what_they_know, "not in the other"),
    (
        a_refused_append_is_not_looked_for,
        one_who_moves_among_those_who_append,
        "in its streams|and it is at",
    ),
    (whatever_is_in_the_way_is_taken_for_ours, two_who_move_on_what_they_know, "and it is at"),
    pytest.param(
        pruned_events_count_as_never_written,
        one_whose_streams_are_pruned,
        "in its streams",
        marks=pytest.mark.proof,
    ),
    (what_pages_tell_is_not_asked_for, one_who_moves_among_those_who_append, "evidence"),
    (
        what_is_in_the_way_is_not_held_to_what_was_expected,
        two_who_move_on_what_they_know,
        "expected|was there",
    ),
    (the_record_is_no_part_of_the_transaction, two_under_one_key, "in its streams|and it is at|a fork"),
    (a_conflict_is_told_without_asking_for_the_record, two_under_one_key, "a repeat is told"),
    (a_repeat_is_told_of_what_it_would_have_written, two_under_one_key, "although its record exists"),
    (stamps_are_what_the_clock_says, two_who_move_on_what_they_know, "increase"),
    (a_page_is_left_without_being_closed, batches_that_no_page_takes, "a fork"),
    (
        a_refusal_is_told_though_any_version_would_do,
        one_who_moves_among_those_who_append,
        "in conflict with",
    ),
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], found: str, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
