"""Handles one stream's events: as many at once as the reaction allows, one by one after a failure, and stops when going
on is useless.

A failure is the handler's own exception. The call is repeated with growing pauses; then the stream is given up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import islice, takewhile
from typing import Final

from epochal.feed.events import FeedEvent
from epochal.feed.hydration import Hydrate
from epochal.feed.reader import FeedReader
from epochal.layout.changes import Removal
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.reactions.definition import Delivery, Reaction, caused_by
from epochal.reactions.failures import Attempt, Failure, OnFailed, failure_of
from epochal.reactions.page_tasks import Task
from epochal.store.driver import Patience

PAUSES: Final = Patience(first=0.2, longest=5.0)
"""Pauses before repeated calls: enough for a hiccup, not for an outage."""

STREAK: Final = 3
"""Streams that may be given up one after the other, while none succeeds, before the whole run stops. So an outage of
a service that handlers depend on parks a few streams in each run, not all streams."""


DELIVERY_BYTES: Final = 16 * 1024 * 1024
"""Bytes of bodies after which a delivery has no more events: compression stores megabytes of spaces in a few bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """How far a task has come.

    Attributes:
        next: first index that is not handled.
        failure: why the task stopped; None if it did not fail.
        left: whether the removal before `next` is not handled either.
    """

    next: int
    failure: Failure | None = None
    left: bool = False


class Streak:
    """Counts streams given up in a row. Safe under threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._length = 0

    @property
    def over(self) -> bool:
        """Whether so many streams failed in a row that going on is useless."""
        return self._length >= STREAK

    def note(self, *, failed: bool) -> None:
        """Count a stream that failed, or start over after one that did not."""
        with self._lock:
            self._length = self._length + 1 if failed else 0


@dataclass(frozen=True, kw_only=True)
class Work:
    """Handles tasks of one partition.

    Attributes:
        reaction: reaction whose handler is called.
        call: calls the handler, and waits until it is done.
        reader: reads events, and has the clock.
        partition: partition of the feed.
        ends: clock reading after which no further call is made.
        on_failed: called with each call that fails, from several threads.
        streak: counts streams that failed in a row.
    """

    reaction: Reaction
    call: Callable[[Delivery], object]
    reader: FeedReader
    partition: int
    ends: float
    on_failed: OnFailed = lambda _attempt: None
    streak: Streak = field(default_factory=Streak)

    @cached_property
    def _hydrate(self) -> Hydrate:
        """Function that reads the events of a stream."""
        return self.reader.hydrate(self.partition)

    def handle(self, task: Task, events: Iterator[FeedEvent] | None = None) -> TaskProgress:
        """Handle a task's events and removals until done, one fails for good, or time ends; return progress.

        Args:
            events: the task's events, if they have been read.
        """
        progress = TaskProgress(next=task.first)
        for part in task.parts if task.removals else (task,):
            progress = self._handle_part(part, events)
            if progress.next > part.first or progress.failure is not None:
                self.streak.note(failed=progress.failure is not None)
            if progress.next < part.end or progress.failure is not None or progress.left:
                return progress
        return progress

    def _handle_part(self, part: Task, events: Iterator[FeedEvent] | None) -> TaskProgress:
        """Handle the events, or the one removal, of a part of a task; return the progress."""
        if self.must_stop():
            return TaskProgress(next=part.first, left=bool(part.removals))
        for removal in part.removals:
            stuck = self._retry(
                part.stream, part.first, partial(self._call, part.stream, (), removal=removal)
            )
            if stuck is not None:
                return replace(stuck, left=True)
        if part.first == part.end:
            return TaskProgress(next=part.end)
        if part.first == part.read_end:
            return self._skip(part, part.first)
        if events is None:
            events = self._hydrate(part.stream, part.first, part.read_end)
        return self._handle(part, events)

    def _handle(self, task: Task, events: Iterator[FeedEvent]) -> TaskProgress:
        """Deliver a task's events in batches until its end, a failure or an unreadable event; return progress."""
        covered = task.first
        while batch := _batch(events, self.reaction.max_events):
            readable = tuple(takewhile(self._needs_no_body, batch))
            if readable:
                chosen, end = tuple(filter(self.reaction.wants_event, readable)), readable[-1].index + 1
                following = task.end if end >= task.read_end else end
                progress = self._deliver(task.stream, chosen, following)
                if progress.next < following or self.must_stop():
                    return progress
                covered = following if chosen else covered
            if len(readable) < len(batch):
                return self._unreadable(batch[len(readable)])
        return TaskProgress(next=task.end) if covered >= task.end else self._skip(task, covered)

    def _skip(self, task: Task, covered: int) -> TaskProgress:
        """Call the reaction's `skipped`, if any, for the events from index `covered` to the end of a task."""
        if self.reaction.skipped is None:
            return TaskProgress(next=task.end)
        call = partial(self._call, task.stream, (), following=task.end)
        return self._retry(task.stream, covered, call) or TaskProgress(next=task.end)

    def _needs_no_body(self, event: FeedEvent) -> bool:
        """Return whether an event can be read, or is not wanted anyway."""
        return event.fault is None or not self.reaction.wants_event(event)

    def _unreadable(self, event: FeedEvent) -> TaskProgress:
        """Fail at an event that cannot be read; a retry would not help."""
        assert event.fault is not None  # noqa: S101  # it could not pass
        return TaskProgress(
            next=event.index, failure=failure_of(event.stream, event.index, event.fault, 1, sealed=False)
        )

    def _deliver(self, stream: str, events: tuple[FeedEvent, ...], following: int) -> TaskProgress:
        """Deliver a batch's wanted events: all at once and, if that fails, one by one; return the progress.

        Args:
            following: index after the events that the batch covers.
        """
        end = TaskProgress(next=following)
        cause = self._call(stream, events, 1, following=following) if events else None
        if cause is None:
            return end
        for event in events:
            covers = following if event is events[-1] else event.index + 1
            call = partial(self._call, stream, (event,), following=covers)
            first = cause if len(events) == 1 else None
            stuck = self._retry(stream, event.index, call, first, event=event)
            if stuck is not None:
                return stuck
        return end

    def _retry(
        self,
        stream: str,
        index: int,
        call: Callable[[int], Exception | None],
        cause: Exception | None = None,
        *,
        event: FeedEvent | None = None,
    ) -> TaskProgress | None:
        """Call the handler until it succeeds; return None then, or progress if attempts or time run out.

        Args:
            cause: error of a first attempt that was already made.
            event: the event, unless a removal is delivered. If its body is sealed, the message of its error is not
                kept.
        """
        for attempt in range(1 if cause is None else 2, self.reaction.attempts + 1):
            if cause is not None:
                self.reader.driver.sleep(PAUSES.wait(attempt - 1, self.reader.driver.luck()))
            if self.must_stop():
                return TaskProgress(next=index)
            cause = call(attempt)
            if cause is None:
                return None
        assert cause is not None  # noqa: S101  # at least one attempt is made, here or before
        sealed = self.reaction.sealed or (event is not None and event.is_sealed)
        return TaskProgress(
            next=index,
            failure=failure_of(stream, index, cause, self.reaction.attempts, sealed=sealed),
        )

    def _call(
        self,
        stream: str,
        events: tuple[FeedEvent, ...],
        attempt: int,
        removal: Removal | None = None,
        following: int | None = None,
    ) -> Exception | None:
        """Call the handler once; report a failure and return its exception, or None."""
        delivery = Delivery(
            group=self.reaction.name,
            partition=self.partition,
            stream=stream,
            events=events,
            attempt=attempt,
            removal=removal,
            next=following,
        )
        try:
            with caused_by(*events):
                self.call(delivery)
        except Exception as cause:  # noqa: BLE001  # whatever a user's handler raises is its failure
            first = events[0].index if events else following or 0
            self.on_failed(
                Attempt(
                    partition=self.partition,
                    stream=stream,
                    index=first if removal is None else removal.end,
                    type=events[0].type if events else "" if removal is None else removal.kind,
                    events=len(events),
                    number=attempt,
                    error=cause,
                    keeps_sealed=self.reaction.sealed,
                    batch=events,
                )
            )
            return cause
        return None

    def must_stop(self) -> bool:
        """Return whether time is over, or too many streams failed in a row."""
        return self.streak.over or self.reader.driver.clock() >= self.ends


def _batch(events: Iterator[FeedEvent], most: int) -> tuple[FeedEvent, ...]:
    """Take the events of one delivery: at most `most`, and no more once they have `DELIVERY_BYTES`."""
    taken: list[FeedEvent] = []
    size = 0
    for event in islice(events, most):
        taken.append(event)
        data, meta = event.data, event.meta
        if isinstance(data, bytes) and isinstance(meta, bytes):  # what is in the bucket takes no memory here
            size += len(data) + len(meta)
            if size >= DELIVERY_BYTES:
                break
    return tuple(taken)
