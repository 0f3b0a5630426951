"""Handles one stream's events: as many at once as the reaction allows, one by one after a failure, and stops when going
on is useless. Also the group member that does this and stores how far the group has come.

A failure is the handler's own exception. The call is repeated with growing pauses; then the stream is given up.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_list
from typing import TYPE_CHECKING, Final, Literal, Self

from epochal.errors import chain
from epochal.feed.history import FeedEvent, PlacedRemoval
from epochal.feed.reader import FeedReader, Predicate
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.groups import (
    MAX_NAMES,
    MAX_PARKED,
    Cause,
    GroupState,
    LoadedState,
    StateConflict,
    forget_cause,
    group_stream,
    keep_cause,
    load,
    read_causes,
    save,
)
from epochal.index.tip_append import Ids
from epochal.layout.categories import Categories
from epochal.layout.changes import Removal, Span
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.kinds import must_be
from epochal.reactions.reaction import Delivery, Reaction, Start, caused_by
from epochal.store.driver import Driver, Patience

if TYPE_CHECKING:
    from epochal.reactions.event_loop import EventLoop

PAUSES: Final = Patience(first=0.2, longest=5.0)
"""Pauses before repeated calls: enough for a hiccup, not for an outage."""

STREAK: Final = 3
"""Streams that may be given up one after the other, while none succeeds, before the whole run stops. So an outage of
what handlers depend on parks a few streams a run, and not all there are."""


DELIVERY_BYTES: Final = 16 * 1024 * 1024
"""Bytes of bodies after which a delivery has no more events: compression stores megabytes of spaces in a few bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A stream was given up at an event.

    Attributes:
        stream: name of the stream.
        index: index of the event.
        cause: kind and message of what the handler raised.
        attempts: number of calls that failed.
        trace: where it was raised, without values; empty if nothing was raised.
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
        partition: partition of the feed.
        stream: name of the stream.
        index: index of the first of the call's events.
        events: number of events.
        number: number of the attempt, from 1.
        error: what the handler raised. It is not in the `repr`, since it may quote what is sealed.
        type: type of the first event; for a removal, its kind.
        keeps_sealed: whether what the reaction keeps is sealed.
        batch: events of the call.
    """

    partition: int
    stream: str
    index: int
    events: int
    number: int
    error: Exception = field(repr=False)
    type: str = ""
    keeps_sealed: bool = False
    batch: tuple[FeedEvent, ...] = field(default=(), repr=False, compare=False)

    @property
    def sealed(self) -> bool:
        """Whether an event of the call has a sealed body, or what the reaction keeps is sealed, so that the error's
        message must not be written down. Bodies are searched for it, which takes time where they are large.
        """
        return self.keeps_sealed or any(event.is_sealed for event in self.batch)

    @property
    def words(self) -> str:
        """Kind and message of the error, as text that may be stored."""
        return words_of(self.error, sealed=self.sealed)

    def __str__(self) -> str:
        """Return the stream, the index, the attempt and the error, for people."""
        more = f" and {self.events - 1} more" if self.events > 1 else ""
        return f"{self.stream} at {self.index}{more}, attempt {self.number}: {self.words}"


OnFailed = Callable[[Attempt], None]
"""Called with each call that failed."""

Around = Callable[[Callable[[Delivery], object], Delivery], object]
"""Makes each call of a handler: gets what calls it, and the delivery, and raises what the call raises."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def handle(self, task: Task, events: Iterator[FeedEvent] | None = None) -> TaskProgress:
        """Handle a task's events and removals until all are done, one fails for good, or time is over.

        Args:
            events: the task's events, if they have been read.
        """
        progress = TaskProgress(next=task.first)
        for part in task.parts:
            progress = self._handle_part(part, events)
            if progress.next > part.first or progress.failure is not None:
                self.streak.note(failed=progress.failure is not None)
            if progress.next < part.end or progress.failure is not None or progress.left:
                return progress
        return progress

    def _handle_part(self, part: Task, events: Iterator[FeedEvent] | None) -> TaskProgress:
        """Handle the events, or the one removal, of a part of a task."""
        if self._must_stop():
            return TaskProgress(next=part.first, left=bool(part.removals))
        for removal in part.removals:
            stuck = self._retry(
                part.stream, part.first, partial(self._call, part.stream, (), removal=removal)
            )
            if stuck is not None:
                return replace(stuck, left=True)
        if part.first == part.end:
            return TaskProgress(next=part.end)
        if events is None:
            events = self.reader.events(self.partition, part.stream, part.first, part.end)
        return self._handle(part, events)

    def _handle(self, task: Task, events: Iterator[FeedEvent]) -> TaskProgress:
        """Deliver events in batches up to the end of a task, or to an event that cannot be read."""
        while batch := _batch(events, self.reaction.max_events):
            readable = tuple(takewhile(self._needs_no_body, batch))
            if readable:
                progress = self._deliver(task.stream, readable)
                if progress.next <= readable[-1].index or self._must_stop():
                    return progress
            if len(readable) < len(batch):
                return self._unreadable(batch[len(readable)])
        return TaskProgress(next=task.end)

    def _needs_no_body(self, event: FeedEvent) -> bool:
        """Return whether an event can be read, or is not wanted anyway."""
        return event.fault is None or not self.reaction.wants_event(event)

    def _unreadable(self, event: FeedEvent) -> TaskProgress:
        """Fail at an event that cannot be read; a retry would not help."""
        assert event.fault is not None  # noqa: S101  # it could not pass
        return TaskProgress(
            next=event.index, failure=_failure(event.stream, event.index, event.fault, 1, sealed=False)
        )

    def _deliver(self, stream: str, batch: tuple[FeedEvent, ...]) -> TaskProgress:
        """Deliver the wanted events of a batch: all at once and, if that fails, one by one."""
        end = TaskProgress(next=batch[-1].index + 1)
        events = tuple(filter(self.reaction.wants_event, batch))
        cause = self._call(stream, events, 1) if events else None
        if cause is None:
            return end
        for event in events:
            call = partial(self._call, stream, (event,))
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
        """Call the handler until it succeeds (returns None) or its attempts are used up (returns progress).

        Args:
            cause: error of a first attempt that was already made.
            event: the event, unless a removal is delivered. If its body is sealed, the message of its error is not
                kept.
        """
        for attempt in range(1 if cause is None else 2, self.reaction.attempts + 1):
            if cause is not None:
                self.reader.driver.sleep(PAUSES.wait(attempt - 1, self.reader.driver.luck()))
            if self._must_stop():
                return TaskProgress(next=index)
            cause = call(attempt)
            if cause is None:
                return None
        assert cause is not None  # noqa: S101  # at least one attempt is made, here or before
        sealed = self.reaction.sealed or (event is not None and event.is_sealed)
        return TaskProgress(
            next=index,
            failure=_failure(stream, index, cause, self.reaction.attempts, sealed=sealed),
        )

    def _call(
        self, stream: str, events: tuple[FeedEvent, ...], attempt: int, removal: Removal | None = None
    ) -> Exception | None:
        """Call the handler once; report a failure and return its exception, or None."""
        delivery = Delivery(
            group=self.reaction.name,
            partition=self.partition,
            stream=stream,
            events=events,
            attempt=attempt,
            removal=removal,
        )
        try:
            with caused_by(*events):
                self.call(delivery)
        except Exception as cause:  # noqa: BLE001  # whatever a user's handler raises is its failure
            first = removal.end if removal is not None else events[0].index
            self.on_failed(
                Attempt(
                    partition=self.partition,
                    stream=stream,
                    index=first,
                    type=removal.kind if removal is not None else events[0].type,
                    events=len(events),
                    number=attempt,
                    error=cause,
                    keeps_sealed=self.reaction.sealed,
                    batch=events,
                )
            )
            return cause
        return None

    def _must_stop(self) -> bool:
        """Return whether time is over, or too many streams failed in a row."""
        return self.streak.over or self.reader.driver.clock() >= self.ends


def _batch(events: Iterator[FeedEvent], most: int) -> tuple[FeedEvent, ...]:
    """Take events of one delivery: at most so many, and no more once they have `DELIVERY_BYTES`."""
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


def _failure(stream: str, index: int, cause: Exception, attempts: int, *, sealed: bool = False) -> Failure:
    """Build the failure of a stream, with its cause and trace as text that can be stored."""
    trace = trace_of(cause).encode("utf-8", "backslashreplace").decode()
    return Failure(
        stream=stream, index=index, cause=words_of(cause, sealed=sealed), attempts=attempts, trace=trace
    )


def words_of(cause: Exception, *, sealed: bool = False) -> str:
    """Return kind and message of a handler's exception as text that can be stored.

    Args:
        sealed: whether the event's body, or what the reaction keeps, is sealed. The message may quote the person for
            whom it is sealed, and would outlive the key, so it is left out.
    """
    if sealed:
        return f"{type(cause).__name__}: (the message is not kept, since it may quote what is sealed)"
    try:
        message = str(cause)
    except Exception:  # noqa: BLE001  # a user's exception, and its own idea of a text
        message = "it has no words"
    return f"{type(cause).__name__}: {message}".encode("utf-8", "backslashreplace").decode()


# What a page of the feed leaves a group to do, and the group's state once some of it is done. Pure.
#
#     parked            left alone: what waits for the stream is read from the store when it is replayed
#     ahead             what has been handled before is not handled again
#     all done          the checkpoint moves past the page
#     only some done    the checkpoint stays, and `ahead` remembers what was done
#
# The checkpoint never passes an event that is neither handled nor parked (GUARANTEES G9).


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Events of one stream to be handled, from `first` to `end` - 1, and removals among them."""

    stream: str
    first: int
    end: int
    removals: tuple[Removal, ...] = ()

    @property
    def parts(self) -> Iterator[Task]:
        """The task divided in order into tasks of events, and tasks of one removal."""
        first = self.first
        for removal in self.removals:
            at = max(first, min(removal.next, self.end))
            if at > first:
                yield Task(stream=self.stream, first=first, end=at)
            yield Task(stream=self.stream, first=at, end=at, removals=(removal,))
            first = at
        if first < self.end:
            yield Task(stream=self.stream, first=first, end=self.end)


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
) -> PageTasks:
    """Return the tasks of a page of the feed: what is neither parked nor handled before.

    Args:
        following: checkpoint after the page.
        in_order: whether events of a stream become several tasks if another stream's events are between them.
    """
    tasks: list[Task] = []
    places: dict[str, int] = {}
    seen: dict[str, int] = {}
    for task in _tasks(spans, removals):
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
            tasks.append(replace(task, first=first))
        else:
            before = tasks[place]
            tasks[place] = replace(before, end=task.end, removals=(*before.removals, *task.removals))
    return PageTasks(tasks=tuple(tasks), seen=seen, next=following)


def _tasks(spans: Sequence[Span], removals: Sequence[PlacedRemoval]) -> Iterator[Task]:
    """Iterate over each span and each removal of a page as a task, in order."""
    pending = deque(removals)
    for place, span in enumerate(spans):
        while pending and pending[0][0] == place:
            yield _removal_task(pending.popleft()[1])
        yield Task(stream=span.stream, first=span.index, end=span.next)
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
    """Return the state with a parked stream going on: everything below `following` is done."""
    parked = {name: index for name, index in state.parked.items() if name != stream}
    return replace(state, parked=parked, ahead={**state.ahead, stream: following})


def advance_parked(state: GroupState, stream: str, index: int) -> GroupState:
    """Return the state with a parked stream handled up to `index`, or further if another got further."""
    return replace(state, parked={**state.parked, stream: max(index, state.parked[stream])})


def _finished(task: Task, done: TaskResults) -> bool:
    """Return whether a task is handled completely or its stream is parked."""
    is_reached = done.reached.get(task.stream, -1) >= task.end and task.stream not in done.left
    return task.stream in done.parked or is_reached


# Calling a reaction's handler, and waiting until it is done.
#
# A plain function is done when it returns. An `async def` is run by an event loop, and whoever delivers waits for it
# as for a plain one. So order, repeats, parking and checkpoints are the same for both; what the handlers of many
# streams wait for, they wait for side by side.


class Calls:
    """A reaction's handler as a function, and the context in which an async one has its event loop.

    Contexts may be nested: the loop begins with the outermost and ends with it. A process that handles again and again
    stays in one.
    """

    def __init__(self, reaction: Reaction) -> None:
        self._reaction = reaction
        self._lock = threading.Lock()
        self._depth = 0
        self._loop: EventLoop | None = None

    def __call__(self, delivery: Delivery) -> None:
        """Handle one delivery; raise what the handler raises."""
        result = self._reaction(delivery)
        if isinstance(result, Coroutine):
            assert self._loop is not None  # noqa: S101  it is called within its context
            self._loop.run(result)

    def begin(self) -> None:
        """Enter the context, and start the event loop of an async handler with the first entry.

        Raises what entering the reaction's `within` raises.
        """
        with self._lock:
            if self._depth == 0 and self._reaction.asynchronous:
                # Functions whose handlers are plain start without asyncio.
                from epochal.reactions.event_loop import EventLoop  # noqa: PLC0415

                self._loop = EventLoop(self._reaction.within)
            self._depth += 1

    def end(self) -> None:
        """Leave the context, and close the event loop with the last exit."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._loop is not None:
                self._loop.close()
                self._loop = None

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


# The trace of an error: files, lines and code, and never a value.
#
# The words of an error may quote what it failed on, so they are kept apart from it. What is kept is bounded: of a long
# trace the end, which is where the error was raised.

MAX_TRACE: Final = 2_000
"""Characters of a trace that are kept: some fifteen calls."""

_DELIVERING: Final = (__file__, str(Path(__file__).with_name("event_loop.py")))
_REACTION: Final = str(Path(__file__).with_name("reaction.py"))


def trace_of(error: BaseException) -> str:
    """Return the traces of an error and its causes, from the handler on, without values."""
    each_of = (f"{''.join(format_list(_calls(link)))}{type(link).__name__}" for link in chain(error))
    text = "\n\n".join(reversed(list(each_of)))
    return text if len(text) <= MAX_TRACE else f"…{text[1 - MAX_TRACE :]}"


def place_of(error: BaseException) -> str:
    """Return where in the handler's folder an error was raised: `board.py:12 in departures`."""
    calls = _calls(error)
    if not calls:
        return ""
    folder = Path(calls[0].filename).parent
    last = next(call for call in reversed(calls) if _is_in(call, folder) or call is calls[0])
    return f"{Path(last.filename).name}:{last.lineno} in {last.name}"


def _calls(error: BaseException) -> list[FrameSummary]:
    """List the calls of a trace from the handler on, without those that delivered to it."""
    calls = list(extract_tb(error.__traceback__))
    at = max((number + 1 for number, call in enumerate(calls) if call.filename in _DELIVERING), default=0)
    return list(dropwhile(lambda call: at and call.filename == _REACTION, calls[at:]))


def _is_in(call: FrameSummary, folder: Path) -> bool:
    """Return whether a call is of code in a folder, but not of an installed package."""
    return Path(call.filename).is_relative_to(folder) and "site-packages" not in call.filename


# A process as a member of a consumer group: it reads and replaces the group's state, and knows where a new group
# begins.

POLL_SECONDS: Final = 0.1
"""Between looks while waiting: half a read unit each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process that runs a reaction as a member of its group: loads and saves the group's state.

    Attributes:
        reaction: reaction that is run.
        reader: reader of the feed; the group's state is in the same table.
        now: returns nanoseconds since 1970.
        fresh: returns random bytes.
    """

    reaction: Reaction
    reader: FeedReader
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom

    def __post_init__(self) -> None:
        """Check that the reaction is one, not a bare function."""
        must_be(Reaction, self.reaction, "reaction", "a function that @reaction(name=…) is written above")

    @property
    def driver(self) -> Driver:
        """Driver of requests to the index table."""
        return self.reader.driver

    @property
    def table(self) -> str:
        """Name of the index table."""
        return self.reader.table

    def load(self, partition: int) -> LoadedState:
        """Load the group's state in a partition."""
        return self.driver.run(load(self.table, group_stream(partition, self.reaction.name)))

    def save(self, held: LoadedState, state: GroupState) -> LoadedState | StateConflict:
        """Replace the group's state, unless it has changed since it was loaded."""
        return self.driver.run(save(self.table, held, state, self._ids()))

    def start(self, partition: int) -> Checkpoint:
        """Return the checkpoint at which a new group begins in a partition.

        Raises:
            InvalidInput: it begins at the tail, and the partition is not on record.
        """
        start = self.reaction.start
        place = start.get(partition, BEGINNING) if isinstance(start, Mapping) else start
        return self.reader.place(partition, place)

    def wait_for(self, partition: int, position: Checkpoint, *, seconds: float = 10.0) -> bool:
        """Wait until everything before a position is handled or parked; return whether it is.

        For callers that have seen the position, as a tail or a page's `next`. One that has just appended knows a stream
        and a version instead: `ReadModel.wait_for`.

        Args:
            seconds: how long to wait.
        """
        ends = self.driver.clock() + seconds
        while (state := self.load(partition).state) is None or state.checkpoint < position:
            if self.driver.clock() >= ends:
                return False
            self.driver.sleep(POLL_SECONDS)
        return True

    def keep(self, partition: int, failure: Failure) -> None:
        """Store why a stream is parked, from its failure."""
        cause = Cause(
            stream=failure.stream,
            index=failure.index,
            text=failure.cause,
            trace=failure.trace,
            attempts=failure.attempts,
            timestamp=self._ids().timestamp,
        )
        self.record(partition, cause)

    def record(self, partition: int, cause: Cause) -> None:
        """Store a cause for which a stream is parked."""
        self.driver.run(keep_cause(self.table, partition, self.reaction.name, cause))

    def causes(self, partition: int, state: GroupState) -> dict[str, Cause]:
        """Read the stored causes of the streams that are parked."""
        return self.driver.run(read_causes(self.table, partition, self.reaction.name, state.parked))

    def forget(self, partition: int, stream: str) -> None:
        """Delete the stored cause of a stream."""
        self.driver.run(forget_cause(self.table, partition, self.reaction.name, stream))

    def _ids(self) -> Ids:
        """Draw the identity of a write."""
        return Ids.drawn(self.now(), self.fresh)


def stand_in(group: str, start: Start = "beginning") -> Reaction:
    """Build a reaction of a group's name that handles nothing, for steering the group."""
    return Reaction(name=group, handler=_never, start=start)


def _never(_: Delivery) -> None:
    """Raise: a stand-in handles nothing."""
    raise RuntimeError("a stand-in handles nothing")


# Which of the categories and types that a reaction names have come: a reaction to a misspelt one handles nothing,
# and nothing fails.
#
# A group begins with all that it asks for as `unmet`, in each partition. A run that moves the checkpoint takes out
# what it has passed: a category with any stream of it, a type with any event of it in the categories asked for. Once
# the group has come to the end everywhere, a name left in every partition is not in the feed. A group that began
# before this was kept, or asks for more since, is not reported: it is not known to be wrong.

MOST: Final = 100
"""Categories and types to look out for at most, and to remember as suggestions."""

Name = tuple[Literal["category", "type"], str]
"""A name that a reaction asks for, or that came, and what it is of."""

_NOUNS: Final = {"category": "stream of the category", "type": "event of the type"}


def initial_unmet(names: Collection[str] | None) -> tuple[str, ...]:
    """Return the categories or types that a new group waits for: all it asks for, up to a limit."""
    return tuple(sorted(names or ())[:MOST])


@dataclass(slots=True, kw_only=True)
class FilterCoverage:
    """Tracks which requested categories and types have matched an event of a partition so far.

    Attributes:
        known: returns which streams of the partition belong to a category.
        categories: categories that the reaction asks for; None for all.
        unmet: those of which no stream has come.
        unmet_types: types that the reaction asks for, of which no event has come.
        seen: categories and types that came while something was unmet, as suggestions.
    """

    known: Callable[[], Categories]
    categories: Collection[str] | None = None
    unmet: tuple[str, ...] = ()
    unmet_types: tuple[str, ...] = ()
    seen: set[Name] = field(default_factory=set)

    def watched(self, wanted: Predicate) -> Predicate:
        """Wrap a predicate so that it also notes what it is asked about, while anything is unmet."""
        if not (self.unmet or self.unmet_types):
            return wanted

        def noting(span: Span) -> bool:
            """Note a span's category and types, and return whether the span is wanted."""
            if self.unmet:
                self._note_category(span.stream)
            if self.unmet_types and self._asks_for(span.stream, self.categories):
                self._note_types(span.types)
            return wanted(span)

        return noting

    def _note_category(self, stream: str) -> None:
        """Remove the categories of a stream from those that are unmet."""
        self.unmet = tuple(name for name in self.unmet if not self._asks_for(stream, (name,)))
        self._remember("category", self.known().of(stream))

    def _note_types(self, types: tuple[str, ...]) -> None:
        """Remove types from those that are unmet."""
        self.unmet_types = tuple(name for name in self.unmet_types if name not in types)
        for name in types:
            self._remember("type", name)

    def _asks_for(self, stream: str, categories: Collection[str] | None) -> bool:
        """Return whether a stream belongs to one of these categories; None for all."""
        return categories is None or self.known().hold(stream, categories)

    def _remember(self, kind: Literal["category", "type"], name: str) -> None:
        """Remember a name that came, as a suggestion for misspelt ones."""
        if len(self.seen) < 2 * MOST:
            self.seen.add((kind, name))


def unmet_filters(member: Member) -> tuple[Name, ...]:
    """Return the categories and types that a reaction asks for but that no event in the feed has.

    Nothing if the group has not come to the end of every partition.
    """
    missing: set[Name] = {("category", name) for name in member.reaction.categories or ()}
    missing |= {("type", name) for name in member.reaction.types or ()}
    missing = {item for item in missing if item[1] not in member.reaction.early}
    for item in member.reader.partitions():
        if source_of(item.partition) not in member.reaction.sources:
            continue
        state = member.load(item.partition).state
        if state is None or state.checkpoint < item.tail:
            return ()
        missing.intersection_update(_unmet_names(state))
        if not missing:
            return ()
    return tuple(sorted(missing))


def _unmet_names(state: GroupState) -> Iterator[Name]:
    """Iterate over the unmet categories and types of a group's state."""
    for name in state.unmet:
        yield "category", name
    for name in state.unmet_types:
        yield "type", name


def describe_unmet(names: Collection[Name], seen: Collection[Name]) -> Iterator[str]:
    """Yield a sentence for each name without events, suggesting names that it may have been meant for."""
    for kind, name in names:
        names_seen = sorted(other for other_kind, other in seen if other_kind == kind)
        similar = get_close_matches(name, names_seen, cutoff=0.5)
        instead = f"; did you mean {similar[0]!r}?" if similar else ""
        others = f" What has come: {', '.join(names_seen)}." if names_seen else ""
        yield f"no {_NOUNS[kind]} {name!r} has come since the group began{instead or '.'}{others}"
