"""Tasks of a page that wait for a thread, with their events where these are read in batches.

The thread whose task comes next in a batch reads the batch, while the others handle what they have.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from epochal.feed.batch_reading import BatchReader, Range
from epochal.feed.events import FeedEvent
from epochal.reactions.page_tasks import Task


class TaskQueue:
    """Hands out tasks of different streams in their order. Safe under threads."""

    def __init__(
        self, tasks: Sequence[Task], batches: BatchReader[FeedEvent], must_stop: Callable[[], bool]
    ) -> None:
        """Fill the queue with tasks, and choose those whose events are read in batches.

        Args:
            tasks: the tasks, each of another stream.
            batches: reads the tasks' events in batches, as far as that can be done.
            must_stop: returns whether the tasks that are left will not be handled, so that no event is read for them.
        """
        self._lock = threading.Lock()
        self._waiting = deque(enumerate(tasks))
        self._batches = batches
        self._must_stop = must_stop
        ranges = [_range_of(task) for task in tasks if not task.removals and task.first < task.read_end]
        self._candidates = batches.candidates(ranges)
        self._events: dict[Range, Iterable[FeedEvent]] = {}

    def take(self) -> tuple[int, Task, Iterator[FeedEvent] | None] | None:
        """Remove and return the next task with its number and its events, or None if no task waits.

        The events are None if the task is to read them itself.
        """
        with self._lock:
            if not self._waiting:
                return None
            number, task = self._waiting.popleft()
            range_ = _range_of(task)
            if self._candidates and self._candidates[0] == range_ and not self._must_stop():
                events, self._candidates = self._batches.read(self._candidates)
                self._events.update(events)
            events_read = self._events.pop(range_, None)
            return number, task, None if events_read is None else iter(events_read)

    def clear(self) -> None:
        """Remove all tasks."""
        with self._lock:
            self._waiting.clear()
            self._events.clear()


def _range_of(task: Task) -> Range:
    """Return the range of events that a task reads; it is empty if the task only skips or removes events."""
    return task.stream, task.first, task.read_end
