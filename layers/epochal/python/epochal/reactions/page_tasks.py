"""Pure functions that divide a page of the feed into tasks, and compute a group's state after some of them.

    parked            the stream is skipped: its events are read from the store when it is replayed
    ahead             events that were handled before are not handled again
    all done          the checkpoint moves past the page
    only some done    the checkpoint stays, and `ahead` has what was done

The checkpoint never passes an event that is neither handled nor parked (GUARANTEES G9).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

from epochal.feed.filters import Predicate
from epochal.feed.results import PlacedRemoval
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState
from epochal.index.groups import MAX_NAMES, MAX_PARKED
from epochal.layout.changes import Removal, Span
from epochal.lazy_dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Events of one stream to be handled, from `first` to `end` - 1, and removals among them.

    Attributes:
        skipped: number of events at the end that the reaction does not take, according to the index; they are not read.
    """

    stream: str
    first: int
    end: int
    removals: tuple[Removal, ...] = ()
    skipped: int = 0

    @property
    def read_end(self) -> int:
        """Index after the last event that is read."""
        return self.end - self.skipped

    @property
    def parts(self) -> Iterator[Task]:
        """The task divided in order into tasks of events, and tasks of one removal."""
        first = self.first
        for removal in self.removals:
            index = max(first, min(removal.next, self.end))
            if index > first:
                yield self._events_between(first, index)
            yield Task(stream=self.stream, first=index, end=index, removals=(removal,))
            first = index
        if first < self.end:
            yield self._events_between(first, self.end)

    def _events_between(self, first: int, end: int) -> Task:
        """Return the task of some of the events, without removals."""
        skipped = end - min(end, max(first, self.read_end))
        return Task(stream=self.stream, first=first, end=end, skipped=skipped)

    def extended(self, task: Task) -> Task:
        """Return this task with a later one of the same stream.

        Skipped events at the beginning are left out: those that follow are delivered, and cover them.
        """
        removals = (*self.removals, *task.removals)
        if task.first == task.end:
            return replace(self, removals=removals)
        if task.first == task.read_end:
            skipped = task.end - max(self.read_end, self.first)
            return replace(self, end=task.end, removals=removals, skipped=skipped)
        first = self.first if self.read_end > self.first or removals else task.first
        return replace(self, first=first, end=task.end, removals=removals, skipped=task.skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTasks:
    """The tasks of a page of the feed, in feed order of their first events.

    Attributes:
        tasks: one task for each stream, or for each of its runs.
        seen: by stream, the index after its last event of the page.
        next: checkpoint after the page.
    """

    tasks: tuple[Task, ...]
    seen: Mapping[str, int]
    next: Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResults:
    """What became of a page's tasks so far.

    Attributes:
        reached: by stream, the first index that is not handled.
        parked: by stream, the first index that is not handled, and will not be before the stream is replayed.
        left: streams of which a removal is not handled, though all events before it are.
    """

    reached: Mapping[str, int] = field(default_factory=dict)
    parked: Mapping[str, int] = field(default_factory=dict)
    left: Collection[str] = ()


def tasks_of(
    spans: Sequence[Span],
    following: Checkpoint,
    state: GroupState,
    *,
    in_order: bool = False,
    removals: Sequence[PlacedRemoval] = (),
    is_skipped: Predicate = lambda _: False,
) -> PageTasks:
    """Return the tasks of a page of the feed: what is neither parked nor handled before.

    Args:
        following: checkpoint after the page.
        in_order: whether events of a stream become several tasks if another stream's events are between them.
        is_skipped: returns whether the reaction takes none of a span's events, and only has to know of them.
    """
    tasks: list[Task] = []
    places: dict[str, int] = {}
    seen: dict[str, int] = {}
    for task in _tasks(spans, removals, is_skipped):
        if task.removals:
            first, done = task.first, state.next_of(task.stream) > task.first
        else:
            seen[task.stream] = task.end
            first = max(task.first, state.next_of(task.stream))
            done = first >= task.end
        if task.stream in state.parked or done:
            continue
        place = places.get(task.stream)
        if place is None or (in_order and (place < len(tasks) - 1 or task.removals or tasks[place].removals)):
            places[task.stream] = len(tasks)
            tasks.append(_rest_of(task, first) if first > task.first else task)
        else:
            tasks[place] = tasks[place].extended(task)
    return PageTasks(tasks=tuple(tasks), seen=seen, next=following)


def _rest_of(task: Task, first: int) -> Task:
    """Return a task of events without those before an index."""
    return replace(task, first=first, skipped=min(task.skipped, task.end - first))


def _tasks(spans: Sequence[Span], removals: Sequence[PlacedRemoval], is_skipped: Predicate) -> Iterator[Task]:
    """Iterate over each span and each removal of a page as a task, in order."""
    pending = deque(removals)
    for place, span in enumerate(spans):
        while pending and pending[0][0] == place:
            yield _removal_task(pending.popleft()[1])
        skipped = len(span.types) if is_skipped(span) else 0
        yield Task(stream=span.stream, first=span.index, end=span.next, skipped=skipped)
    yield from (_removal_task(removal) for _, removal in pending)


def _removal_task(removal: Removal) -> Task:
    """Build the task of a removal."""
    return Task(stream=removal.stream, first=removal.next, end=removal.next, removals=(removal,))


def after_tasks(state: GroupState, todo: PageTasks, done: TaskResults) -> GroupState:
    """Return the group's state after these results; the checkpoint moves only if the page is complete.

    It passes nothing but what is handled or parked.
    """
    parked = {**state.parked, **done.parked}
    starts = {task.stream: task.first for task in reversed(todo.tasks)}
    advanced = {stream: index for stream, index in done.reached.items() if index > starts[stream]}
    ahead = {**state.ahead, **advanced}
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
    """Return whether there is room to park these streams too."""
    parked = state.parked.keys() | streams
    return len(parked) <= MAX_PARKED and sum(len(stream.encode()) for stream in parked) <= MAX_NAMES


def unpark(state: GroupState, stream: str, following: int) -> GroupState:
    """Return the state with a stream unparked, whose events below `following` are handled."""
    parked = {name: index for name, index in state.parked.items() if name != stream}
    return replace(state, parked=parked, ahead={**state.ahead, stream: following})


def advance_parked(state: GroupState, stream: str, index: int) -> GroupState:
    """Return the state with a parked stream handled up to `index`, or further if another got further."""
    return replace(state, parked={**state.parked, stream: max(index, state.parked[stream])})


def _finished(task: Task, done: TaskResults) -> bool:
    """Return whether a task is handled completely or its stream is parked."""
    is_reached = done.reached.get(task.stream, -1) >= task.end and task.stream not in done.left
    return task.stream in done.parked or is_reached
