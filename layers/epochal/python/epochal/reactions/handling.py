"""Handling one stream's events: as many at once as asked for, one by one after a failure, and no more when it is no
use.

A failure is the handler's own exception. The call is repeated with growing pauses; then the stream is given up, and
what that means is not decided here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Final

from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedEvent
from epochal.reactions.causes import caused_by
from epochal.reactions.progress import Task
from epochal.reactions.reaction import Delivery, Reaction
from epochal.reactions.traces import trace_of
from epochal.store.driver import Patience

PAUSES: Final = Patience(first=0.2, longest=5.0)
"""Pauses before repeated calls: enough for a hiccup, not for an outage."""

STREAK: Final = 3
"""Streams that may be given up one after the other, while none succeeds, before the whole run stops. So an outage of
what handlers depend on parks a few streams a run, and not all there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A stream was given up at an event.

    Attributes:
        cause: kind and words of what the handler raised.
        trace: where it was raised, which has no values; empty where nothing was raised.
    """

    stream: str
    index: int
    cause: str
    attempts: int
    trace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A call of a handler that failed.

    Attributes:
        index: of the first of its `events`.
        number: 1, and more where it repeated one that failed.
    """

    partition: int
    stream: str
    index: int
    events: int
    number: int
    error: Exception

    def __str__(self) -> str:
        """For people: where, and why."""
        more = f" and {self.events - 1} more" if self.events > 1 else ""
        return f"{self.stream} at {self.index}{more}, attempt {self.number}: {words_of(self.error)}"


OnFailed = Callable[[Attempt], None]
"""Called with each call that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a task has come: `next` is the first index that is not handled."""

    next: int
    failure: Failure | None = None


class Streak:
    """Counts streams given up in a row; safe under threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._length = 0

    @property
    def over(self) -> bool:
        """Whether going on is useless."""
        return self._length >= STREAK

    def note(self, *, failed: bool) -> None:
        """Take in how a stream ended."""
        with self._lock:
            self._length = self._length + 1 if failed else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Handles tasks of one partition.

    Attributes:
        reader: reads their events, and has the clock.
        call: calls the reaction's handler, and waits until it is done.
        on_failed: called with each call that fails; from several threads.
        ends: clock reading after which no further call is made.
    """

    reaction: Reaction
    call: Callable[[Delivery], object]
    reader: FeedReader
    partition: int
    ends: float
    on_failed: OnFailed = lambda _attempt: None
    streak: Streak = field(default_factory=Streak)

    def handle(self, task: Task) -> Progress:
        """Handle a task's events until they end, fail for good, or time is over."""
        if self._out_of_time():
            return Progress(next=task.first)
        progress = self._handle(task)
        if progress.failure is not None or progress.next > task.first:
            self.streak.note(failed=progress.failure is not None)
        return progress

    def _handle(self, task: Task) -> Progress:
        events = self.reader.events(self.partition, task.stream, task.first, task.end)
        while batch := tuple(islice(events, self.reaction.max_events)):
            sound = tuple(takewhile(self._can_pass, batch))
            if sound:
                progress = self._deliver(task.stream, sound)
                if progress.next <= sound[-1].index or self._out_of_time():
                    return progress
            if len(sound) < len(batch):
                return self._unreadable(batch[len(sound)])
        return Progress(next=task.end)

    def _can_pass(self, event: FeedEvent) -> bool:
        return event.fault is None or not self.reaction.wants_event(event)

    def _unreadable(self, event: FeedEvent) -> Progress:
        """An event that cannot be read fails like one that cannot be handled; a retry would not help."""
        assert event.fault is not None  # noqa: S101  # it could not pass
        return Progress(next=event.index, failure=_failure(event.stream, event.index, event.fault, 1))

    def _deliver(self, stream: str, batch: tuple[FeedEvent, ...]) -> Progress:
        """Deliver what is wanted of a batch: all at once and, where that fails, one by one."""
        end = Progress(next=batch[-1].index + 1)
        events = tuple(filter(self.reaction.wants_event, batch))
        cause = self._call(stream, events, 1) if events else None
        if cause is None:
            return end
        for event in events:
            stuck = self._insist(stream, event, cause if len(events) == 1 else None)
            if stuck is not None:
                return stuck
        return end

    def _insist(self, stream: str, event: FeedEvent, cause: Exception | None) -> Progress | None:
        """Deliver one event until it is handled (None), or as often as is allowed. `cause`: it has failed once."""
        for attempt in range(1 if cause is None else 2, self.reaction.attempts + 1):
            if cause is not None:
                self.reader.driver.sleep(PAUSES.wait(attempt - 1, self.reader.driver.luck()))
            if self._out_of_time():
                return Progress(next=event.index)
            cause = self._call(stream, (event,), attempt)
            if cause is None:
                return None
        assert cause is not None  # noqa: S101  # at least one attempt is made, here or before
        return Progress(
            next=event.index, failure=_failure(stream, event.index, cause, self.reaction.attempts)
        )

    def _call(self, stream: str, events: tuple[FeedEvent, ...], attempt: int) -> Exception | None:
        delivery = Delivery(
            group=self.reaction.name, partition=self.partition, stream=stream, events=events, attempt=attempt
        )
        try:
            with caused_by(*events):
                self.call(delivery)
        except Exception as cause:  # noqa: BLE001  # whatever a user's handler raises is its failure
            first = events[0].index
            self.on_failed(
                Attempt(
                    partition=self.partition,
                    stream=stream,
                    index=first,
                    events=len(events),
                    number=attempt,
                    error=cause,
                )
            )
            return cause
        return None

    def _out_of_time(self) -> bool:
        return self.streak.over or self.reader.driver.clock() >= self.ends


def _failure(stream: str, index: int, cause: Exception, attempts: int) -> Failure:
    trace = trace_of(cause).encode("utf-8", "backslashreplace").decode()
    return Failure(stream=stream, index=index, cause=words_of(cause), attempts=attempts, trace=trace)


def words_of(cause: Exception) -> str:
    """A handler's exception as text that can be stored, whatever the events hold: the stream must be parked."""
    try:
        said = str(cause)
    except Exception:  # noqa: BLE001  # a user's exception, and its own idea of a text
        said = "it has no words"
    return f"{type(cause).__name__}: {said}".encode("utf-8", "backslashreplace").decode()
