"""What a page of the feed leaves a group to do, and the group's state once some of it is done. Pure.

    parked            left alone: what waits for the stream is read from the store when it is replayed
    ahead             what has been handled before is not handled again
    all done          the checkpoint moves past the page
    only some done    the checkpoint stays, and `ahead` remembers what was done

The checkpoint never passes an event that is neither handled nor parked (GUARANTEES G9).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from epochal.index.checkpoints import Checkpoint
from epochal.index.groups import MAX_NAMES, MAX_PARKED, GroupState
from epochal.model.spans import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Events of one stream to be handled: those from `first` up to, and without, `end`."""

    stream: str
    first: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTasks:
    """The tasks of a page of the feed that ends at `next`, in feed order of their first events."""

    tasks: tuple[Task, ...]
    seen: Mapping[str, int]
    next: Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResults:
    """What became of the tasks so far.

    Attributes:
        reached: by stream, the first index that is not handled.
        parked: by stream, the first index that is not handled, and will not be before it is replayed.
    """

    reached: Mapping[str, int] = field(default_factory=dict)
    parked: Mapping[str, int] = field(default_factory=dict)


def tasks_of(spans: Iterable[Span], following: Checkpoint, state: GroupState) -> PageTasks:
    """What is to be done about a page of the feed that ends at `following`."""
    tasks: dict[str, Task] = {}
    seen: dict[str, int] = {}
    for span in spans:
        seen[span.stream] = span.next
        first = max(span.index, state.next_of(span.stream))
        if span.stream in state.parked or first >= span.next:
            continue
        task = tasks.get(span.stream) or Task(stream=span.stream, first=first, end=span.next)
        tasks[span.stream] = replace(task, end=span.next)
    return PageTasks(tasks=tuple(tasks.values()), seen=seen, next=following)


def settled(state: GroupState, todo: PageTasks, done: TaskResults) -> GroupState:
    """The state after what is done of a page. The checkpoint passes nothing but what is handled or parked."""
    parked = {**state.parked, **done.parked}
    begun = {task.stream: task.first for task in todo.tasks}
    further = {stream: index for stream, index in done.reached.items() if index > begun[stream]}
    ahead = {**state.ahead, **further}
    complete = all(_finished(task, done) for task in todo.tasks)
    if complete:
        ahead = {stream: index for stream, index in ahead.items() if index > todo.seen.get(stream, -1)}
    return replace(
        state,
        checkpoint=todo.next if complete else state.checkpoint,
        parked=parked,
        ahead={stream: index for stream, index in ahead.items() if stream not in parked},
        trying={stream: times for stream, times in state.trying.items() if stream not in done.reached},
    )


def may_park(state: GroupState, streams: Collection[str]) -> bool:
    """Whether there is room to park these streams too."""
    parked = state.parked.keys() | streams
    return len(parked) <= MAX_PARKED and sum(len(stream.encode()) for stream in parked) <= MAX_NAMES


def unparked(state: GroupState, stream: str, following: int) -> GroupState:
    """A parked stream goes on: everything below `following` is handled or given up."""
    parked = {name: index for name, index in state.parked.items() if name != stream}
    return replace(state, parked=parked, ahead={**state.ahead, stream: following})


def still_parked(state: GroupState, stream: str, index: int) -> GroupState:
    """A parked stream has been handled up to `index`, or further by another."""
    return replace(state, parked={**state.parked, stream: max(index, state.parked[stream])})


def _finished(task: Task, done: TaskResults) -> bool:
    return task.stream in done.parked or done.reached.get(task.stream, -1) >= task.end
