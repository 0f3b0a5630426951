"""Runs a reaction over a partition for as long as there is time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Final, TypeVar

from epochal.errors import InvalidInput
from epochal.feed.batch_reading import BatchReader
from epochal.feed.events import FeedEvent
from epochal.feed.filters import Predicate, span_filter
from epochal.feed.hydration import WINDOW, events_of, opened_events
from epochal.feed.results import SpanPage
from epochal.feed.span_reader import SpanReader
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState, Reads, Sharing, with_generation_drawn
from epochal.index.groups import LoadedState, StateConflict
from epochal.layout.changes import Span
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.kinds import must_be_whole
from epochal.reactions.calls import Around, Calls
from epochal.reactions.definition import Delivery
from epochal.reactions.failures import Failure, OnFailed
from epochal.reactions.filter_coverage import FilterCoverage, Name, initial_unmet
from epochal.reactions.group_member import Member
from epochal.reactions.handling import Streak, TaskProgress, Work
from epochal.reactions.page_tasks import PageTasks, Task, TaskResults, after_tasks, may_park, tasks_of
from epochal.reactions.task_queue import TaskQueue

T = TypeVar("T")

PAGE_EVENTS: Final = 1_000
"""Smallest number of events in a page, if there are as many. Smaller pages would cost more saves; larger ones would
repeat more events after a crash."""

PAGE_SECONDS: Final = 10.0
"""Seconds after which a page with few wanted events ends, so that the checkpoint advances."""

SAVE_SECONDS: Final = 5.0
"""Seconds after which a long page is saved in part, which bounds what is repeated after a crash."""

TELL_SECONDS: Final = 10.0
"""Seconds between reports of how far behind a run is; a run may last for minutes."""

CONFLICT_SECONDS: Final = 1.0
"""Longest random pause, in seconds, before continuing from another process's state: two processes in step would handle
every event twice."""

DIED: Final = "the process died, or ran out of time, while the event was being handled"

_Result = tuple[Task, TaskProgress]


@dataclass(slots=True, kw_only=True)
class Run:
    """One run of a reaction over a partition, while it is under way.

    Attributes:
        member: member of the group that runs.
        call: calls the handler, and waits until it is done.
        partition: partition of the feed.
        ends: clock reading after which nothing further is begun.
        share: the member's share of the partition's streams.
        on_failed: called with each call that fails.
        careful: whether processes have died. It ends once a page has been survived.
        executor: makes the threads in which streams are handled.
        tell: called every few seconds with how far the group is `behind`.
        parked: streams that this run has given up.
        blocked: what stops the partition for now: a stream that may not be parked, or the last of too many.
        at_tail: whether everything that the index held is handled or parked.
        events: number of events handled.
        moved: whether the run has advanced the group.
        meeting: which requested categories and types have had events.
    """

    member: Member
    call: Callable[[Delivery], object]
    partition: int
    ends: float
    share: int = 0
    on_failed: OnFailed = lambda _attempt: None
    careful: bool = False
    executor: Callable[[int], Executor] = ThreadPoolExecutor
    tell: Callable[[float], object] = lambda _behind: None
    parked: list[Failure] = field(default_factory=list)
    blocked: Failure | None = None
    at_tail: bool = False
    events: int = 0
    moved: bool = False
    meeting: FilterCoverage = field(init=False)
    _sharing: Sharing = field(init=False)
    _reads: Reads | None = field(init=False)
    _held: LoadedState = field(init=False)
    _streak: Streak = field(default_factory=Streak)
    _span_reader: SpanReader | None = None
    _next: Checkpoint | None = None
    _reported: float = field(init=False)
    _batches: BatchReader[FeedEvent] | None = None

    def __post_init__(self) -> None:
        self.meeting = FilterCoverage(known=partial(self.member.reader.categories, self.partition))
        self._sharing = self.member.reaction.sharing
        self._reads = Reads.of(self.member.reaction.categories, self.member.reaction.types)
        self._reported = self.member.driver.clock()

    @property
    def state(self) -> GroupState:
        """The group's state as this run knows it; with several members, the member's own part."""
        assert self._held.state is not None  # noqa: S101  # `begin` has put one on record
        return self._sharing.part(self._held.state, self.share)

    @property
    def checkpoint(self) -> Checkpoint:
        """The group's checkpoint, as this run knows it."""
        return self.state.checkpoint

    @property
    def over(self) -> bool:
        """Whether time is over, the partition is blocked, or the group is paused."""
        paused = bool(self.state.paused)
        return paused or self.blocked is not None or self.member.driver.clock() >= self.ends

    @property
    def behind(self) -> float | None:
        """Seconds since the oldest index entry beyond the checkpoint was written; None if it is unknown.

        It is 0 at the tail, and unknown as long as nothing has been read, or if the entry's time is malformed.
        """
        if self.at_tail:
            return 0.0
        if self._span_reader is None or self._next is None:
            return None
        done = self.checkpoint >= self._next
        oldest = self._span_reader.following if done else self._span_reader.first
        try:
            return 0.0 if oldest is None else max(0.0, self.member.now() / 1e9 - oldest.seconds)
        except InvalidInput:
            return None  # another program's entry, with no time that can be read

    def begin(self) -> None:
        """Load the group's state; a new group first stores where it begins."""
        self._held = self.member.load(self.partition)
        if self._held.state is None:
            start = self.member.start(self.partition)
            reaction = self.member.reaction
            unmet, types = initial_unmet(reaction.categories), initial_unmet(reaction.types)
            state = GroupState(checkpoint=start, unmet=unmet, unmet_types=types, reads=self._reads)
            # Draw `generation`: if the group is deleted and begun again, members that hold the old state must notice.
            self._save(state if reaction.members == 1 else with_generation_drawn(state, self.member.fresh))

    def handle_page(self) -> None:
        """Handle a page of the feed, as far as there is time, and save the progress."""
        self.at_tail = False
        before = self.state
        page = self._next_page(before.checkpoint)
        in_order = self.member.reaction.in_order
        todo = tasks_of(
            page.spans,
            page.next,
            before,
            in_order=in_order,
            removals=page.removals,
            is_skipped=self._is_skipped,
        )
        for done in self._work(todo, before):
            progressed = after_tasks(before, todo, done)
            after = replace(
                progressed,
                unmet=self.meeting.unmet,
                unmet_types=self.meeting.unmet_types,
                reads=self._reads,
            )
            if after.parked:
                # Draw `generation`: if the group is deleted and begun again, a replay of the old group's parked streams
                # must notice.
                after = with_generation_drawn(after, self.member.fresh)
            if after != self.state:
                if not self._save(after):
                    return
                self.moved = True
            self._report()
        self.at_tail = page.at_tail and self.checkpoint == page.next
        self.careful = False

    def _next_page(self, start: Checkpoint) -> SpanPage:
        """Read the next page of the wanted spans; nothing is read twice if it follows the last page."""
        reader, reaction = self.member.reader, self.member.reaction
        self.meeting = FilterCoverage(
            known=partial(reader.categories, self.partition),
            categories=reaction.categories,
            unmet=self.state.unmet,
            unmet_types=self.state.unmet_types,
            seen=self.meeting.seen,
        )
        if self._span_reader is None or self._next != start:
            self._span_reader = SpanReader.begin(reader.driver, reader.table, self.partition, start)
        page = self._span_reader.spans(
            limit=PAGE_EVENTS,
            predicate=self.meeting.watched(
                self._only_own(span_filter(self.meeting.known, reaction.categories, self._wanted_or_next()))
            ),
            seconds=PAGE_SECONDS,
            wait=0.0,
            removed=self._only_own(
                span_filter(self.meeting.known, reaction.categories, reaction.wants_removal)
            )
            if reaction.removed is not None
            else None,
        )
        self._next = page.next
        return page

    def _wanted_or_next(self) -> Predicate:
        """Return a filter of spans: those to deliver or to know of, and those that directly follow one.

        An event with tags divides its append into several spans. With those that follow a wanted one the reaction is
        told how far its delivery goes, and a read model's progress reaches the version of the append.
        """
        reaction, following = self.member.reaction, dict[str, int]()

        def is_wanted(span: Span) -> bool:
            """Return whether a span is wanted, or follows one that is."""
            is_chosen = (
                reaction.wants(span)
                or reaction.wants_skipped(span)
                or following.get(span.stream) == span.index
            )
            if is_chosen:
                following[span.stream] = span.next
            return is_chosen

        return is_wanted

    def _is_skipped(self, span: Span) -> bool:
        """Return whether a span of a page has no events to deliver."""
        return not self.member.reaction.wants(span)

    def _only_own(self, is_wanted: Predicate) -> Predicate:
        """Restrict a predicate to streams of this member's share."""
        sharing = self._sharing
        if sharing.members == 1:
            return is_wanted
        return lambda span: is_wanted(span) and sharing.share_of(span.stream) == self.share

    def _report(self) -> None:
        """Report every few seconds how far the group is behind."""
        now = self.member.driver.clock()
        if now >= self._reported + TELL_SECONDS and (behind := self.behind) is not None:
            self._reported = now
            self.tell(behind)

    def _work(self, todo: PageTasks, before: GroupState) -> Iterator[TaskResults]:
        """Handle a page's tasks, and park or block at failures; yield the results so far from time to time."""
        reached: dict[str, int] = {}
        parked: dict[str, int] = {}
        removals_left: set[str] = set()
        work = Work(
            reaction=self.member.reaction,
            call=self.call,
            on_failed=self.on_failed,
            reader=self.member.reader,
            partition=self.partition,
            ends=self.ends,
            streak=self._streak,
        )
        strategy = self._in_order if self.member.reaction.in_order else self._side_by_side
        for results in self._carefully(work, todo) if self.careful else strategy(work, todo):
            for task, progress in results:
                reached[task.stream] = progress.next
                self.events += max(0, min(progress.next, task.read_end) - task.first)
                if progress.left:
                    removals_left.add(task.stream)
                if progress.failure is not None and self._park_or_block(progress.failure, before, parked):
                    parked[task.stream] = progress.failure.index
            yield TaskResults(reached=reached, parked=parked, left=removals_left)
        if not todo.tasks:
            yield TaskResults()

    def _side_by_side(self, work: Work, todo: PageTasks) -> Iterator[list[_Result]]:
        """Handle a page's tasks in several threads; yield results every few seconds and at the end.

        One stream alone is handled in this thread.
        """
        threads = min(self.member.reaction.parallel, len(todo.tasks))
        if self._batches is None:
            reader = self.member.reader
            self._batches = BatchReader(reader.hydrate(self.partition), reader.driver.clock)
        waiting = TaskQueue(todo.tasks, self._batches, work.must_stop)
        results = deque[tuple[int, _Result]]()
        if threads <= 1:
            yield from self._one_after_another(work, waiting)
            return

        def handle_waiting() -> None:
            """Handle one task after another, until none waits."""
            while True:
                try:
                    if (taken := waiting.take()) is None:
                        return
                    number, task, events = taken
                    results.append((number, (task, work.handle(task, events))))
                except BaseException:
                    waiting.clear()
                    raise

        pool = self.executor(threads)
        try:
            pending = {pool.submit(handle_waiting) for _ in range(threads)}
            while pending:
                finished, pending = wait(pending, timeout=SAVE_SECONDS)
                for future in finished:
                    future.result()
                # In the order of tasks, not of threads: the same run leaves the same bytes.
                yield [result for _, result in sorted(_taken(results), key=itemgetter(0))]
        finally:
            # If the caller stops early, because another process saved first or on an error, waiting tasks are dropped.
            waiting.clear()
            pool.shutdown(cancel_futures=True)

    def _one_after_another(self, work: Work, waiting: TaskQueue) -> Iterator[list[_Result]]:
        """Handle the tasks of a page in this thread; yield results every few seconds and at the end."""
        clock, results = self.member.driver.clock, list[_Result]()
        saved = clock()
        while (taken := waiting.take()) is not None:
            _, task, events = taken
            results.append((task, work.handle(task, events)))
            if clock() >= saved + SAVE_SECONDS:
                yield results
                results, saved = [], clock()
        yield results

    def _in_order(self, work: Work, todo: PageTasks) -> Iterator[list[_Result]]:
        """Handle a page's tasks in order, up to one that stops it; yield results now and then, and at the end.

        The events of tasks are read together, each window once.
        """
        clock, stuck = self.member.driver.clock, set[str]()
        spans = (
            Span(task.stream, task.first, ("",) * (task.read_end - task.first))
            for task in todo.tasks
            if task.read_end > task.first
        )
        hydrate = work.reader.hydrate_unopened(self.partition, fetch=True)
        with closing(events_of(spans, hydrate, lambda: WINDOW)) as events:
            results, saved = list[_Result](), clock()
            for task in todo.tasks:
                own_events = islice(events, max(0, task.read_end - task.first))
                if task.stream not in stuck:
                    progress = work.handle(task, opened_events(own_events))
                    results.append((task, progress))
                    if progress.next < task.end or progress.left:
                        if progress.failure is None or self.member.reaction.on_failure == "block":
                            break
                        stuck.add(task.stream)
                deque(own_events, maxlen=0)
                if clock() >= saved + SAVE_SECONDS:
                    yield results
                    results, saved = [], clock()
            yield results

    def _carefully(self, work: Work, todo: PageTasks) -> Iterator[list[_Result]]:
        """Handle events one by one after a process died, recording each try before it; yield each result."""
        stuck = set[str]()
        for task in todo.tasks:
            if task.stream in stuck:
                continue
            for single in _one_by_one(task):
                if self.over:
                    return
                progress = self._handle_recorded(work, single)
                if progress is None:
                    return
                yield [(single, progress)]
                if progress.next < single.end or progress.left:
                    stuck.add(task.stream)
                    break

    def _handle_recorded(self, work: Work, task: Task) -> TaskProgress | None:
        """Record which stream comes next, then handle it; return None if another process changed the state.

        A stream that was tried too often fails.
        """
        before = self.state.trying
        attempts = before.get(task.stream, 0)
        if attempts >= self.member.reaction.attempts:
            failure = Failure(stream=task.stream, index=task.first, cause=DIED, attempts=attempts)
            return TaskProgress(next=task.first, failure=failure, left=bool(task.removals))
        if not self._save(replace(self.state, trying={**before, task.stream: attempts + 1})):
            return None
        try:
            return work.handle(task)
        except Exception:
            # The process has not died, but could not read the events, so this attempt is not counted.
            with suppress(Exception):
                self._save(replace(self.state, trying=before))
            raise

    def _park_or_block(self, failure: Failure, before: GroupState, parked: Collection[str]) -> bool:
        """Return whether a failed stream may be parked, and store why; if not, or after many, note a block."""
        parks = self.member.reaction.on_failure == "park" and may_park(before, {*parked, failure.stream})
        if parks:
            self.member.keep(self.partition, failure)
            self.parked.append(failure)
        if not parks or self._streak.over:
            self.blocked = failure
        return parks

    def _save(self, state: GroupState) -> bool:
        """Save the group's state; return False if another process has saved one, which is loaded then.

        What another member has saved of its own share is no obstacle.
        """
        while True:
            before = self._held.state
            match self.member.save(self._held, self._sharing.joined(before or state, state, self.share)):
                case LoadedState() as held:
                    self._held = held
                    return True
                case StateConflict(held=held):
                    self._held = held
                    if before and held.state and self._sharing.is_others(before, held.state, self.share):
                        continue
                    if held.state is None:
                        self.begin()
                    self.member.driver.sleep(self.member.driver.luck() * CONFLICT_SECONDS)
                    return False


def _taken(results: deque[T]) -> list[T]:
    """Remove and return all results that a queue has now."""
    return [results.popleft() for _ in range(len(results))]


def _one_by_one(task: Task) -> Iterator[Task]:
    """Divide a task into its single events and removals, in order."""
    for part in task.parts:
        if part.removals:
            yield part
        yield from (
            Task(stream=part.stream, first=index, end=index + 1) for index in range(part.first, part.read_end)
        )
        if part.skipped:
            yield replace(part, first=part.read_end)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run.

    Attributes:
        checkpoint: the group's checkpoint afterwards.
        at_tail: whether everything that the index held then is handled or parked.
        moved: whether this run has advanced the group.
        events: number of events that this run handled.
        parked: streams that this run gave up.
        blocked: what stops the partition for now: a stream that may not be parked, or the last of too many that failed
            one after the other.
        paused: whether the group is paused, so that nothing more is taken.
        behind: seconds since the oldest entry of the index was written that the checkpoint has not passed; None if
            there was no time to look.
        seen: categories and types that this run came across, while one that is asked for had no events yet.
    """

    checkpoint: Checkpoint
    at_tail: bool
    moved: bool = False
    events: int = 0
    parked: tuple[Failure, ...] = ()
    blocked: Failure | None = None
    paused: bool = False
    behind: float | None = None
    seen: frozenset[Name] = frozenset()

    @property
    def stands_still(self) -> bool:
        """Whether this run handled nothing, although events are left and nothing blocks the group."""
        return not (self.moved or self.at_tail or self.paused or self.blocked)

    @classmethod
    def of_all(cls, runs: Sequence[RunResult]) -> RunResult:
        """Combine the results of all members of a partition into one."""
        behind = [run.behind for run in runs if run.behind is not None]
        return cls(
            checkpoint=min(run.checkpoint for run in runs),
            at_tail=all(run.at_tail for run in runs),
            moved=any(run.moved for run in runs),
            events=sum(run.events for run in runs),
            parked=tuple(failure for run in runs for failure in run.parked),
            blocked=next((run.blocked for run in runs if run.blocked is not None), None),
            paused=any(run.paused for run in runs),
            behind=max(behind) if len(behind) == len(runs) else None,
            seen=frozenset(name for run in runs for name in run.seen),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reactor:
    """Runs one reaction.

    Attributes:
        member: member of the reaction's group.
        on_failed: called with each call of the handler that fails.
        executor: makes the threads in which so many streams are handled side by side.
        calls: calls the handler. Whoever runs it again and again stays in this context, so that an `async def` keeps
            its event loop.
    """

    member: Member
    on_failed: OnFailed = lambda _attempt: None
    executor: Callable[[int], Executor] = ThreadPoolExecutor
    calls: Calls = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "calls", Calls(self.member.reaction))

    def run(
        self,
        partition: int,
        *,
        seconds: float,
        share: int = 0,
        careful: bool = False,
        tell: Callable[[float], object] = lambda _behind: None,
        around: Around | None = None,
    ) -> RunResult:
        """Handle a partition's events until the tail, a block, a pause, or about `seconds`; return the result.

        Args:
            seconds: how long to handle events.
            share: share of the partition's streams, if the reaction has several members.
            careful: whether processes have died, so that the event responsible must be found.
            tell: called every few seconds of a long run with how far the group is behind, as in `RunResult.behind`.
            around: makes each call of the handler.

        Raises:
            InvalidInput: the reaction has no such share.
            Unavailable: the store kept failing; what is handled and not saved comes again.
        """
        must_be_whole(share, "share", 0, self.member.reaction.members - 1)
        run = Run(
            member=self.member,
            call=self.calls if around is None else partial(around, self.calls),
            on_failed=self.on_failed,
            partition=partition,
            share=share,
            ends=self.member.driver.clock() + seconds,
            careful=careful,
            executor=self.executor,
            tell=tell,
        )
        with self.calls:
            run.begin()
            while not (run.over or run.at_tail):
                run.handle_page()
        return RunResult(
            checkpoint=run.checkpoint,
            at_tail=run.at_tail,
            moved=run.moved,
            events=run.events,
            parked=tuple(run.parked),
            blocked=run.blocked,
            paused=bool(run.state.paused),
            behind=run.behind,
            seen=frozenset(run.meeting.seen),
        )
