"""The simulation of reactions is worth its time: take any one rule out, and a seed finds out.

Each mutant breaks what DESIGN §5.11, or the module it is in, asks for. The seeds are those that the unchanged code
passes.
"""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from epochal.errors import EpochalError
from epochal.feed.events import FeedEvent
from epochal.index import groups
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState
from epochal.index.groups import LoadedState, StateConflict
from epochal.layout.changes import Span
from epochal.reactions import failures, group_member, handling, page_tasks, parking, reactor
from epochal.reactions.group_member import Member
from epochal.reactions.handling import TaskProgress, Work
from epochal.reactions.page_tasks import PageTasks, Task, TaskResults
from epochal.reactions.parking import Parking, Replayed
from tests.simulation.group_checks import Violation
from tests.simulation.mutants import Mutants, Patch, play_all
from tests.simulation.reaction_world import run

SEEDS = 300

MUTANTS = Mutants()
mutant = MUTANTS.add


@mutant()
def the_checkpoint_is_committed_early(patch: Patch) -> None:
    settled = page_tasks.after_tasks

    def early(state: GroupState, todo: PageTasks, done: TaskResults) -> GroupState:
        return replace(settled(state, todo, done), checkpoint=todo.next)

    patch.setattr(reactor, "after_tasks", early)


@mutant()
def states_are_saved_whoever_was_there(patch: Patch) -> None:
    save = Member.save

    def blind(self: Member, held: LoadedState, state: GroupState) -> LoadedState | StateConflict:
        found = self.load(int(held.stream.split("_")[1]))
        return save(self, replace(held, known_head=found.known_head), state)

    patch.setattr(Member, "save", blind)


@mutant()
def parking_is_no_part_of_the_commit(patch: Patch) -> None:
    settled = page_tasks.after_tasks

    def apart(state: GroupState, todo: PageTasks, done: TaskResults) -> GroupState:
        return replace(settled(state, todo, done), parked=state.parked)

    patch.setattr(reactor, "after_tasks", apart)


@mutant(dear=True)
def a_parked_stream_goes_on_with_its_next_event(patch: Patch) -> None:
    tasks_of = page_tasks.tasks_of

    def unaware(spans: Sequence[Span], following: Checkpoint, state: GroupState, **options: Any) -> PageTasks:
        return tasks_of(spans, following, replace(state, parked={}), **options)

    patch.setattr(reactor, "tasks_of", unaware)


@mutant()
def a_failed_event_counts_as_handled(patch: Patch) -> None:
    handle = Work._handle

    def past(self: Work, task: Task, events: Iterator[FeedEvent]) -> TaskProgress:
        progress = handle(self, task, events)
        return TaskProgress(next=progress.next + 1) if progress.failure is not None else progress

    patch.setattr(Work, "_handle", past)


@mutant()
def a_stream_is_parked_one_event_too_late(patch: Patch) -> None:
    failure = failures.failure_of
    patch.setattr(
        handling,
        "failure_of",
        lambda stream, index, cause, tries, **more: failure(stream, index + 1, cause, tries, **more),
    )


@mutant()
def a_stream_is_unparked_on_a_state_read_afterwards(patch: Patch) -> None:
    def blind(
        self: Parking, partition: int, stream: str, go_on: Callable[[int], TaskProgress], _: float
    ) -> Replayed:
        _, index = self._load_parked(partition, stream)
        progress = go_on(index)
        if progress.failure is None:
            held = self.reactor.member.load(partition)
            if stream in parking._state(held).parked:
                state = page_tasks.unpark(parking._state(held), stream, progress.next)
                self.reactor.member.save(held, state)
        return Replayed(next=progress.next, unparked=progress.failure is None)

    patch.setattr(Parking, "_catch_up", blind)


@mutant()
def what_is_ahead_is_believed_to_be_further(patch: Patch) -> None:
    patch.setattr(GroupState, "next_of", lambda self, stream: self.ahead.get(stream, -1) + 1)


@mutant()
def an_unfinished_task_counts_as_finished(patch: Patch) -> None:
    patch.setattr(
        page_tasks, "_finished", lambda task, done: task.stream in done.parked or task.stream in done.reached
    )


@mutant(dear=True)
def a_replay_that_fails_unparks_all_the_same(patch: Patch) -> None:
    catch_up = Parking._catch_up

    def lenient(
        self: Parking, partition: int, stream: str, go_on: Callable[[int], TaskProgress], ends: float
    ) -> Replayed:
        return catch_up(self, partition, stream, lambda index: TaskProgress(next=go_on(index).next), ends)

    patch.setattr(Parking, "_catch_up", lenient)


@mutant()
def another_process_is_overlooked(patch: Patch) -> None:
    """The refusal is taken for success: what is held is not what is stored, and the next save is blind to it."""
    save = groups.save

    def deaf(table: str, held: LoadedState, state: GroupState, ids: Any) -> Any:
        saved = yield from save(table, held, state, ids)
        if isinstance(saved, StateConflict):
            return LoadedState(stream=held.stream, state=state, known_head=saved.held.known_head)
        return saved

    patch.setattr(group_member, "save", deaf)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_a_broken_rule_is_found_out(name: str, monkeypatch: Patch) -> None:
    change, _ = MUTANTS[name]
    change(monkeypatch)
    with pytest.raises((Violation, EpochalError, AssertionError)):
        play_all(run, SEEDS)
