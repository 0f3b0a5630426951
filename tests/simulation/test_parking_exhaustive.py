"""G9 on small worlds, without luck: handling, failing, parking, committing, replaying and giving up, by two reactors of
one group and an operator, with deaths between any two requests: all that can happen to them, state by state.
"""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from epochal.index.group_state import GroupState, Sharing
from epochal.reactions import steering
from tests.simulation.exploring import each_of, is_found_out, left_out
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.parking_explorer import Explorer
from tests.simulation.parking_states import Budget
from tests.simulation.test_reaction_mutants import (
    a_failed_event_counts_as_handled,
    a_parked_stream_goes_on_with_its_next_event,
    a_stream_is_parked_one_event_too_late,
    a_stream_is_unparked_on_a_state_read_afterwards,
    parking_is_no_part_of_the_commit,
    states_are_saved_whoever_was_there,
    the_checkpoint_is_committed_early,
)

FEED = ("A-1", "B-1", "A-1")
"""Streams of events, in the order of the feed. `A-1` is the one that fails."""

BOTH = (("react", 1), ("react", 1), ("replay", 1))


def a_death_anywhere() -> Explorer:
    return Explorer(slots=BOTH, feed=FEED, budget=Budget(fails=2, deaths=1))


def a_lost_answer() -> Explorer:
    return Explorer(slots=BOTH, feed=FEED, budget=Budget(fails=2, unheard=1))


def a_write_that_lands_late() -> Explorer:
    return Explorer(slots=BOTH, feed=FEED, budget=Budget(fails=2, late=1))


def a_parked_stream_that_grows() -> Explorer:
    return Explorer(slots=BOTH, feed=("A-1",), later=("A-1",), budget=Budget(fails=1))


def two_operators() -> Explorer:
    slots = (("react", 2), ("replay", 1), ("replay", 1))
    return Explorer(slots=slots, feed=FEED, budget=Budget(fails=3))


def an_operator_who_gives_up() -> Explorer:
    slots = (("react", 1), ("react", 1), ("discard", 1), ("replay", 1))
    return Explorer(slots=slots, feed=("A-1", "A-1"), budget=Budget(fails=2))


def a_stream_that_blocks() -> Explorer:
    slots = (("react", 2), ("react", 1))
    return Explorer(slots=slots, feed=FEED, on_failure="block", budget=Budget(fails=2, deaths=1))


def a_process_that_is_careful() -> Explorer:
    slots = (("react carefully", 1), ("react", 1), ("replay", 1))
    return Explorer(slots=slots, feed=("A-1", "A-1"), budget=Budget(fails=1, deaths=1))


def a_reset_beside_a_batch() -> Explorer:
    slots = (("react", 1), ("react", 1), ("reset", 1))
    return Explorer(slots=slots, feed=("A-1", "B-1"), budget=Budget(late=1))


def a_reset_in_a_batch() -> Explorer:
    slots = (("react", 2), ("reset", 1))
    return Explorer(slots=slots, feed=("A-1",), later=("B-1",), budget=Budget(unheard=1))


def a_pause_in_a_batch() -> Explorer:
    slots = (("react", 2), ("pause", 1), ("resume", 1))
    return Explorer(slots=slots, feed=("A-1", "B-1"), budget=Budget(deaths=1))


def a_reset_to_a_position() -> Explorer:
    slots = (("react", 2), ("replay", 1), ("reset to 1", 1))
    return Explorer(slots=slots, feed=("A-1", "A-1"), budget=Budget(fails=2))


def a_reset_of_a_process_that_is_careful() -> Explorer:
    slots = (("react carefully", 2), ("reset", 1))
    return Explorer(slots=slots, feed=("A-1",), later=("A-1",), budget=Budget(deaths=1))


def a_pause_beside_a_batch() -> Explorer:
    slots = (("react", 1), ("react", 1), ("pause", 1), ("resume", 1))
    return Explorer(slots=slots, feed=("A-1", "B-1"), budget=Budget(unheard=1))


SHARED = ("A-1", "C-1", "A-1")
"""`A-1` is the second member's, `C-1` the first one's."""


def two_members() -> Explorer:
    slots = (("react", 2), ("react 1", 2))
    return Explorer(slots=slots, feed=SHARED, members=2, budget=Budget(deaths=1))


def two_members_one_of_which_parks() -> Explorer:
    slots = (("react", 1), ("react 1", 1), ("replay", 1))
    return Explorer(slots=slots, feed=SHARED, members=2, budget=Budget(fails=2))


def two_members_whose_answers_are_lost() -> Explorer:
    slots = (("react", 1), ("react 1", 1), ("react 1", 1))
    return Explorer(slots=slots, feed=("A-1", "C-1"), members=2, budget=Budget(unheard=1))


def two_members_that_are_reset() -> Explorer:
    slots = (("react 1", 2), ("reset", 1))
    return Explorer(slots=slots, feed=("C-1", "A-1"), later=("A-1",), members=2, budget=Budget(unheard=1))


WORLDS = {
    a_death_anywhere: {"parked", "replay"},
    a_lost_answer: {"parked", "replay"},
    a_write_that_lands_late: {"parked", "replay"},
    a_parked_stream_that_grows: {"parked", "replay"},
    two_operators: {"parked", "replay"},
    an_operator_who_gives_up: {"parked", "replay", "discard"},
    a_stream_that_blocks: set(),
    a_process_that_is_careful: {"parked", "replay"},
    a_reset_beside_a_batch: {"reset", "counted"},
    a_reset_to_a_position: {"parked", "replay", "reset", "reset to 1", "counted"},
    a_reset_of_a_process_that_is_careful: {"parked", "reset", "counted", "ahead"},
    a_pause_beside_a_batch: set(),
    a_reset_in_a_batch: {"reset", "counted"},
    a_pause_in_a_batch: set(),
    two_members: {"shared"},
    two_members_one_of_which_parks: {"parked", "replay", "shared"},
    two_members_whose_answers_are_lost: {"shared"},
    two_members_that_are_reset: {"reset", "shared", "counted"},
}
"""Each with what must come about in it."""


DEAR = (
    a_lost_answer,
    a_death_anywhere,
    a_parked_stream_that_grows,
    an_operator_who_gives_up,
    a_stream_that_blocks,
    a_process_that_is_careful,
    a_reset_of_a_process_that_is_careful,
    a_reset_beside_a_batch,
    a_pause_beside_a_batch,
    two_members_whose_answers_are_lost,
)


@each_of(WORLDS, dear=DEAR)
def test_nothing_that_can_happen_lets_a_checkpoint_pass_what_is_neither_handled_nor_parked(
    world: Callable[[], Explorer],
) -> None:
    explorer = world()
    assert explorer.explore() > 1_000, "a world in which hardly anything happens proves nothing"
    assert explorer.met == WORLDS[world]


def a_reset_unparks_whatever_waits(patch: Patch) -> None:
    patch.setattr(steering, "_still_parked", lambda *_: {})


def a_reset_keeps_what_is_ahead(patch: Patch) -> None:
    moved = steering._state_at
    patch.setattr(steering, "_state_at", lambda state, *to: replace(moved(state, *to), ahead=state.ahead))


def a_member_commits_for_all(patch: Patch) -> None:
    def whole(self: Sharing, _: GroupState, part: GroupState, share: int) -> GroupState:
        return replace(part, shares=(part.checkpoint,) * self.members)

    patch.setattr(Sharing, "joined", whole)


def a_member_takes_every_other_for_one_of_another_share(patch: Patch) -> None:
    patch.setattr(Sharing, "is_others", lambda *_: True)


def a_member_does_not_ask_whether_its_group_was_reset(patch: Patch) -> None:
    is_others = Sharing.is_others

    def lenient(self: Sharing, before: GroupState, after: GroupState, share: int) -> bool:
        return is_others(self, before, replace(after, generation=before.generation), share)

    patch.setattr(Sharing, "is_others", lenient)


def a_member_forgets_what_others_have_parked(patch: Patch) -> None:
    joined = Sharing.joined

    def alone(self: Sharing, state: GroupState, part: GroupState, share: int) -> GroupState:
        return joined(self, replace(state, parked={}), part, share)

    patch.setattr(Sharing, "joined", alone)


@left_out(
    (parking_is_no_part_of_the_commit, a_death_anywhere, "passed"),
    (states_are_saved_whoever_was_there, a_parked_stream_that_grows, "goes back"),
    (a_stream_is_unparked_on_a_state_read_afterwards, a_parked_stream_that_grows, "passed|never"),
    (a_parked_stream_goes_on_with_its_next_event, a_parked_stream_that_grows, "comes before"),
    (a_failed_event_counts_as_handled, a_stream_that_blocks, "passed|comes before"),
    (a_stream_is_parked_one_event_too_late, an_operator_who_gives_up, "passed"),
    (the_checkpoint_is_committed_early, a_stream_that_blocks, "passed"),
    (states_are_saved_whoever_was_there, a_reset_in_a_batch, "passed|never came"),
    (states_are_saved_whoever_was_there, a_pause_in_a_batch, "in a pause|ends a pause"),
    (a_member_commits_for_all, two_members, "passed|never"),
    (a_member_takes_every_other_for_one_of_another_share, two_members_that_are_reset, "passed|never"),
    (a_member_does_not_ask_whether_its_group_was_reset, two_members_that_are_reset, "passed"),
    (a_member_forgets_what_others_have_parked, two_members_one_of_which_parks, "passed|never"),
    (a_reset_unparks_whatever_waits, a_reset_to_a_position, "comes before|passed|counts"),
    (a_reset_keeps_what_is_ahead, a_reset_to_a_position, "passed|never came"),
)
def test_a_rule_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], found: str, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
