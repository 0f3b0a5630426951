"""Every two ways to steer a group, beside each other and a process that runs it, and some three: all that can happen,
state by state. The group has handled one stream ahead of its checkpoint and parked another there, so that a reset to
where it is has something to bring again.
"""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement

import pytest

from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState
from epochal.index.groups import LoadedState, StateConflict
from epochal.reactions import group_member, parking, reactor, steering
from epochal.reactions.group_member import Member
from epochal.reactions.page_tasks import advance_parked
from epochal.reactions.parking import Parking
from epochal.reactions.reset_effect import ResetEffect
from tests.simulation.exploring import each_of, is_found_out, left_out
from tests.simulation.mutants import Mutant, Patch
from tests.simulation.parking_explorer import Explorer
from tests.simulation.parking_states import Budget

FEED = ("A-1", "B-1", "A-1", "C-1")
BEGUN = GroupState(ahead={"B-1": 1}, parked={"A-1": 1})
MODEL = GroupState(checkpoint=Checkpoint.of(0, 1), ahead={"B-1": 1}, parked={"A-1": 1})

OPERATIONS = (
    *("reset", "reset to here", "reset to 1", "reset to the tail"),
    *("pause", "resume", "delete", "begin"),
    *("replay", "discard", "skip", "react 1 of 2"),
)
"""The last is a process that runs the group with another number of members."""


ONE_FAILURE = Budget(fails=1)


def steered(*operations: str, budget: Budget = ONE_FAILURE, begun: GroupState | None = BEGUN) -> Explorer:
    return Explorer(
        slots=(("react", 1), *((each, 1) for each in operations)),
        feed=FEED,
        max_events=1,
        budget=budget,
        begun=begun,
        model=MODEL if "begin" in operations else None,
    )


def pairs() -> list[object]:
    """Each two operations; those that are no reset beside another operation, or take long, are for `make proof`."""
    return [
        pytest.param((one, other), marks=[] if _is_quick(one, other) else [pytest.mark.proof])
        for one, other in combinations_with_replacement(OPERATIONS, 2)
    ]


def _is_quick(one: str, other: str) -> bool:
    beside_a_reset = one == "reset" and not other.startswith(("reset", "react"))
    return beside_a_reset or {one, other} in ({"delete", "begin"}, {"reset to here", "resume"})


@pytest.mark.parametrize("operations", pairs(), ids=" and ".join)
def test_of_two_who_steer_a_group_that_runs_each_does_what_it_promises(operations: tuple[str, str]) -> None:
    explorer = steered(*operations)
    assert explorer.explore() > 100
    assert {"reset", "counted"} <= explorer.met or not any(each.startswith("reset") for each in operations)
    assert ("begin" in explorer.met) == (set(operations) == {"begin", "delete"})
    assert {"replay", "discard", "skip", "delete"} & {*operations} <= explorer.met


def a_reset_that_is_unheard_beside_a_replay() -> Explorer:
    return steered("reset", "replay", budget=Budget(fails=1, unheard=1))


def a_reset_that_comes_late_beside_a_replay() -> Explorer:
    return steered("reset to here", "replay", budget=Budget(fails=1, late=1))


def a_deletion_that_comes_late_beside_a_reset() -> Explorer:
    return steered("delete", "reset to 1", budget=Budget(fails=1, deaths=1))


def a_group_that_begins_like_another_beside_a_process_of_its_own() -> Explorer:
    return steered("begin", "react", begun=None)


def a_reset_of_a_group_that_begins_like_another() -> Explorer:
    return steered("begin", "reset", begun=None)


def a_renamed_group_whose_stream_is_replayed() -> Explorer:
    return steered("begin", "replay", begun=None)


def a_replay_beside_a_deletion_and_a_beginning() -> Explorer:
    return steered("replay", "delete", "begin")


def a_discard_beside_a_reset_and_a_pause() -> Explorer:
    return steered("discard", "reset to here", "pause")


WORLDS = {
    a_reset_that_is_unheard_beside_a_replay: {"reset", "replay", "ahead", "counted"},
    a_reset_that_comes_late_beside_a_replay: {"reset", "replay", "ahead", "counted"},
    a_deletion_that_comes_late_beside_a_reset: {"reset", "delete", "counted"},
    a_group_that_begins_like_another_beside_a_process_of_its_own: {"begin"},
    a_reset_of_a_group_that_begins_like_another: {"begin", "reset", "counted"},
    a_renamed_group_whose_stream_is_replayed: {"begin", "replay"},
    a_replay_beside_a_deletion_and_a_beginning: {"begin", "replay", "delete"},
    a_discard_beside_a_reset_and_a_pause: {"discard", "reset", "counted"},
}
"""Each with what must come about in it."""


@each_of(WORLDS, dear=[each for each in WORLDS if each is not a_renamed_group_whose_stream_is_replayed])
def test_so_does_each_of_three_and_where_answers_are_lost(world: Callable[[], Explorer]) -> None:
    explorer = world()
    assert explorer.explore() > 100
    assert explorer.met >= WORLDS[world]


def a_reset_keeps_what_is_ahead(patch: Patch) -> None:
    moved = steering._state_at
    patch.setattr(steering, "_state_at", lambda state, *to: replace(moved(state, *to), ahead=state.ahead))


def a_reset_looks_no_further_than_the_checkpoints(patch: Patch) -> None:
    begin = ResetEffect.__init__

    def short(self: ResetEffect, *about: object) -> None:
        begin(self, *about)  # type: ignore[arg-type]
        self.unmet = {}

    patch.setattr(ResetEffect, "__init__", short)


def a_reset_unparks_nothing(patch: Patch) -> None:
    patch.setattr(steering, "_still_parked", lambda state, _: state.parked)


def a_replay_does_not_ask_whether_its_group_was_reset(patch: Patch) -> None:
    patch.setattr(parking, "_is_same_run", lambda *_: True)


def a_group_that_begins_anew_has_the_number_of_the_one_before(patch: Patch) -> None:
    for module in (reactor, steering):
        patch.setattr(module, "with_generation_drawn", lambda state, _: state)


def a_skip_notes_its_place_on_any_state(patch: Patch) -> None:
    def blind(self: Parking, partition: int, stream: str, _: int | None = None) -> int:
        _, waits = self._load_parked(partition, stream)
        held = self.reactor.member.load(partition)
        if held.state is not None and stream in held.state.parked:
            self.reactor.member.save(held, advance_parked(held.state, stream, waits + 1))
        return waits + 1

    patch.setattr(Parking, "skip", blind)


def a_reset_makes_a_deleted_group_anew(patch: Patch) -> None:
    save = Member.save

    def anew(self: Member, held: LoadedState, state: GroupState) -> LoadedState | StateConflict:
        saved = save(self, held, state)
        if (
            isinstance(saved, StateConflict)
            and saved.held.state is None
            and self.reaction.handler is group_member._never
        ):
            return StateConflict(held=replace(saved.held, state=GroupState()))
        return saved

    patch.setattr(Member, "save", anew)


def a_reset_beside_a_pause() -> Explorer:
    return steered("reset to here", "pause")


def a_reset_beside_a_replay() -> Explorer:
    return steered("reset", "replay")


def a_reset_beside_a_skip() -> Explorer:
    return steered("reset", "skip")


def a_reset_beside_a_deletion() -> Explorer:
    return steered("reset to here", "delete")


def a_deletion_beside_a_replay() -> Explorer:
    return steered("delete", "replay")


@left_out(
    (a_reset_keeps_what_is_ahead, a_reset_beside_a_pause, "never came"),
    (a_reset_looks_no_further_than_the_checkpoints, a_reset_beside_a_pause, "counts|never came"),
    (a_reset_unparks_nothing, a_reset_beside_a_pause, "counts|never came"),
    (a_replay_does_not_ask_whether_its_group_was_reset, a_reset_beside_a_replay, "passed|never came"),
    (a_replay_does_not_ask_whether_its_group_was_reset, a_deletion_beside_a_replay, "passed|never came"),
    (
        a_group_that_begins_anew_has_the_number_of_the_one_before,
        a_deletion_beside_a_replay,
        "passed|never came",
    ),
    (a_skip_notes_its_place_on_any_state, a_reset_beside_a_skip, "more than an event|passed|never"),
    (a_reset_makes_a_deleted_group_anew, a_reset_beside_a_deletion, "begins a group"),
)
def test_a_rule_of_steering_that_is_left_out_is_found_out(
    mutant: Mutant, world: Callable[[], Explorer], found: str, monkeypatch: Patch
) -> None:
    is_found_out(mutant, world, found, monkeypatch)
