"""G2, G3 and G11 for tagged events on small worlds, without luck: all that can happen to them, state by state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from epochal.layout import queries
from epochal.layout.queries import Fence
from epochal.model.positions import Position
from epochal.model.tags import Query
from tests.simulation.dcb_explorer import Explorer, Writer
from tests.simulation.dcb_world import event, query
from tests.simulation.exploring import Budget, each_of, is_found_out, left_out
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.test_dcb_mutants import (
    a_moved_fence_is_followed_without_looking_for_matches,
    an_event_is_new_only_within_the_reach_of_every_item,
    an_id_is_what_the_clock_says,
    fences_are_not_checked,
    own_events_are_not_looked_for_where_a_condition_fails,
)


def ids(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def both_tags(number: int) -> Writer:
    return Writer(event=event("T", "a", "b", id_=ids(number)))


EITHER, A, B = query(("", "a"), ("", "b")), query(("", "a")), query(("", "b"))


def a_reader_of_two_heads_and_two_rivals() -> Explorer:
    """Heads are read one by one, while others move both."""
    first = replace(both_tags(1), query=EITHER, reads=True)
    second = Writer(event=event("T", "b", id_=ids(2)), query=B, reads=True, clock=3)
    return Explorer(
        actors=(first, second, replace(both_tags(3), clock=1)), budget=Budget(unheard=1, forgotten=1, late=1)
    )


def items_that_name_two_tags() -> Explorer:
    first = Writer(event=event("T", "a", "b", id_=ids(1)), query=query(("", "a b")), reads=True)
    second = Writer(
        event=event("T", "a", id_=ids(2)), query=query(("T", "b"), ("U", "a")), reads=True, clock=3
    )
    return Explorer(actors=(first, second, replace(both_tags(3), clock=9)), budget=Budget(unheard=1, late=1))


def an_answer_lost() -> Explorer:
    first = replace(both_tags(1), query=A)
    return Explorer(
        actors=(first, Writer(event=event("T", "a", id_=ids(2)), clock=1), replace(both_tags(3), query=B)),
        budget=Budget(unheard=2, forgotten=1, crashes=1),
    )


def a_transaction_that_lands_late() -> Explorer:
    first = replace(both_tags(1), query=EITHER, reads=True)
    return Explorer(
        actors=(
            first,
            Writer(event=event("U", "b", id_=ids(2)), query=B, clock=1),
            Writer(event=event("T", "a", id_=ids(3)), clock=9),
        ),
        budget=Budget(late=2, unheard=1),
    )


def the_same_append_made_twice() -> Explorer:
    """By a user who was not told how the first call ended."""
    first = replace(both_tags(1), query=A)
    return Explorer(
        actors=(first, first, Writer(event=event("T", "a", id_=ids(2)), clock=1)),
        budget=Budget(forgotten=1, unheard=1, crashes=1),
    )


def conditions_by_type() -> Explorer:
    by_type = Writer(event=event("T", id_=ids(1)), query=query(("T", "")), reads=True)
    return Explorer(
        actors=(
            by_type,
            Writer(event=event("T", "a", id_=ids(2)), query=query(("", "")), clock=1),
            Writer(event=event("U", "a", id_=ids(3)), query=query(("T", "")), clock=9),
        ),
        type_heads=True,
        budget=Budget(unheard=1, late=1),
    )


def a_refusal_that_meets_another_transaction() -> Explorer:
    """DynamoDB names a conflict of transactions in the place of some reasons, and the others are not told."""
    first = replace(both_tags(1), query=EITHER, reads=True)
    second = replace(both_tags(2), query=EITHER, reads=True, clock=3)
    return Explorer(
        actors=(first, second, Writer(event=event("T", "b", id_=ids(3)), clock=1)),
        budget=Budget(partly=2, unheard=1),
    )


def a_condition_that_is_narrower_than_what_was_read() -> Explorer:
    """Heads of both of its tags were read, one by one, and only one of them for its type."""
    first = Writer(
        event=event("T", "a", "b", id_=ids(1)),
        query=query(("T", "a b")),
        broader=query(("T", "b"), ("U", "a")),
        reads=True,
    )
    second = replace(both_tags(2), query=query(("T", "b")), broader=EITHER, reads=True, clock=3)
    return Explorer(
        actors=(first, second, Writer(event=event("T", "b", id_=ids(3)), query=B, clock=1)),
        budget=Budget(unheard=1, late=1),
    )


def one_of_its_tags_is_enough_for_a_narrower_item(patch: Patch) -> None:
    sound = queries.fence_after

    def any_of_them(query: Query, position: Position, *, type_heads: bool) -> Fence:
        return replace(sound(query, position, type_heads=type_heads), together=frozenset())

    patch.setattr(queries, "fence_after", any_of_them)


WORLDS = (
    a_condition_that_is_narrower_than_what_was_read,
    a_reader_of_two_heads_and_two_rivals,
    items_that_name_two_tags,
    an_answer_lost,
    a_transaction_that_lands_late,
    the_same_append_made_twice,
    conditions_by_type,
    a_refusal_that_meets_another_transaction,
)


DEAR = (
    a_condition_that_is_narrower_than_what_was_read,
    a_reader_of_two_heads_and_two_rivals,
    items_that_name_two_tags,
    a_transaction_that_lands_late,
    an_answer_lost,
    conditions_by_type,
)


@each_of(WORLDS, dear=DEAR)
def test_nothing_that_can_happen_breaks_a_condition_or_makes_an_append_twice(
    world: Callable[[], Explorer],
) -> None:
    explorer = world()
    assert explorer.explore() > 3_000, "a world in which hardly anything happens proves nothing"
    assert explorer.conflicts, "nobody met anybody"


@left_out(
    (
        an_event_is_new_only_within_the_reach_of_every_item,
        a_reader_of_two_heads_and_two_rivals,
        "not seen",
    ),
    (
        one_of_its_tags_is_enough_for_a_narrower_item,
        a_condition_that_is_narrower_than_what_was_read,
        "not seen",
    ),
    (fences_are_not_checked, items_that_name_two_tags, "not seen"),
    (a_moved_fence_is_followed_without_looking_for_matches, an_answer_lost, "not seen"),
    (own_events_are_not_looked_for_where_a_condition_fails, the_same_append_made_twice, "yet its event"),
    (
        a_moved_fence_is_followed_without_looking_for_matches,
        a_refusal_that_meets_another_transaction,
        "not seen",
    ),
    (an_id_is_what_the_clock_says, a_transaction_that_lands_late, "do not increase|order|a gap"),
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], found: str, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
