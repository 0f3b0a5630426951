"""A deployment in memory with feed and timers, for users' tests: append, react, or let time pass."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import Any, Final, cast

from epochal import extensions
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent
from epochal.feed.stream_records import Record
from epochal.index.failed_runs import FailedRun, digest_of, record_failed_run
from epochal.index.group_state import Unit
from epochal.layout.registry import source_of
from epochal.layout.tables import READ_MODELS, TIMERS, store_tables
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.kinds import must_be
from epochal.model.moments import Ticks, format_ticks, from_unix_nanoseconds
from epochal.reactions.composite import Composite, composite_of
from epochal.reactions.definition import Reaction, duplicate_name_error
from epochal.reactions.failures import Attempt, Failure
from epochal.reactions.filter_coverage import describe_unmet, unmet_filters
from epochal.reactions.group_member import Member, stand_in
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor, RunResult
from epochal.reactions.traces import trace_of
from epochal.read_models.documents import ReadModels
from epochal.scheduling import after, due_at
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_settings, pause

_LOGGER: Final = logging.getLogger("epochal.reactions")

_MOST: Final = 1_000
"""Turns of a reaction that handles what it appends; one that needs more would not end."""

_PAUSE: Final = 0.001
"""Seconds of a pause, at most: enough for other tasks and threads to get their turn."""


def _all_tables() -> MemoryTables:
    """Create empty tables for all stores and read models."""
    return MemoryTables({spec.kind: spec for spec in (*store_tables(), READ_MODELS)})


@dataclass
class MemoryStore:
    """A whole deployment in memory: streams, tagged events, the feed, reactions, read models, timers and a clock.

    `streams`, `tagged`, `read_models`, `feed` and `groups` are what `open_streams`, `open_tagged_events`,
    `open_read_models` and `open_feed` open, and the groups of reactions, all of one deployment. `tips`, `aggregates`
    and `dcb` are the stores of other layouts. `react` runs reactions and processes, and `advance` lets time pass.

    Attributes:
        tables: DynamoDB tables in memory that hold everything that is stored here; by default new, empty ones.
        options: settings of the deployment by their names, such as `aggregate_types`.
        sleep: function through which stores and reactions pause; by default for at most a millisecond, so that tests
            are fast.
        timers_table: the table of timers, whose changes are not indexed.
    """

    tables: MemoryTables = field(default_factory=_all_tables)
    options: Mapping[str, Any] = field(default_factory=dict)
    sleep: Callable[[float], object] = lambda seconds: pause(min(seconds, _PAUSE))
    _indexed: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the stores, and register the sources with the indexer."""
        self._driver = Driver(execute=self.tables.execute, meter=Meter(), sleep=self.sleep)
        settings = memory_settings(**self.options)
        opened = Deployment(settings=settings, driver=self._driver, bucket=MemoryBucket())
        self._deployment = opened
        self._stopped: int | None = None
        self._codes: dict[str, frozenset[str]] = {}
        self.timers_table = MemoryTables({TIMERS.kind: TIMERS})
        self.streams = replace(opened.streams, now=self.now)
        self.tagged = self.streams.tagged
        self.read_models = ReadModels(driver=self._driver, table=READ_MODELS.kind)
        self.feed = opened.feed
        self._indexer = opened.indexer
        self._indexer.register()

    def __getattr__(self, name: str) -> Any:
        """Return the store of a plug-in, as a deployment has it: `tips`, `aggregates`, `dcb`."""
        if name.startswith("_"):
            raise AttributeError(name)
        store = getattr(self._deployment, name)
        return replace(store, now=self.now) if hasattr(store, "now") else store

    def index(self) -> None:
        """Put all events that have been appended since the last call into the index of the feed."""
        for table in (source.table for source in self._indexer.sources):
            changes, start = self.tables.changes(table), self._indexed.get(table, 0)
            self._indexer.index(
                Record(table=table, sequence_number=f"{number:021d}", image=changes[number])
                for number in range(start, len(changes))
            )
            self._indexed[table] = len(changes)

    def react(self, reaction: Reaction | Composite | type) -> list[RunResult]:
        """Index and run a reaction over every partition until it caught up or is blocked; return the results.

        What it appends itself is indexed and handled, too. What blocks it is in `groups.standing`.
        All of its members run one after another, with one result for all of them. The logger `epochal.reactions` has
        each call of a handler that fails, with its trace, and a warning of categories and types without any event: they
        may be misspelt. A test that needs only some of them is not at fault, so it is no Python warning, which `-W
        error` raises.

        A process is run until neither its inbox nor its outbox advances; DEBUG has each input that it skips.

        Args:
            reaction: a reaction, or a process.

        Raises:
            InvalidInput: another handler has run under the same name here, and its group is still there; or the
                reaction appends events that it handles itself, without end.
        """
        if composite := composite_of(reaction):
            return self._run_composite(composite)
        reactor = self._reactor(cast("Reaction", reaction))
        runs = self._run(reactor)
        names_seen = {name for ran in runs for name in ran.seen}
        for words in describe_unmet(unmet_filters(reactor.member), names_seen):
            _LOGGER.warning(words)
        return runs

    def advance(
        self,
        *reactions: Reaction | Composite | type,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> int:
        """Let time pass without waiting: fire due timers, run reactions, and return how many timers fired.

        The clock of all stores here stands still from now on, and moves only by this method. At each moment at which
        timers are due they fire, and then these reactions run; before the first and after the last moment, too.

        Args:
            reactions: reactions and processes that run after timers have fired.
            weeks, days, hours, minutes, seconds: parts of the time that passes, which are added up.

        Raises:
            EpochalError: a timer could not fire.
            InvalidInput: timers set others without a pause, and time would not go by.
        """
        advance = extensions.required_part("clock", "advance")
        now = self.now()
        try:
            span = after(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
            until = due_at(span, from_unix_nanoseconds(now))
        except InvalidInput as refused:
            refused.call_it("advance")
            raise
        self._stopped = now
        fired: int = advance(self, reactions, until)
        return fired

    def parking(self, reaction: Reaction) -> Parking:
        """Return the object that lists, replays and discards a reaction's parked streams.

        Args:
            reaction: the reaction.
        """
        return Parking(reactor=self._reactor(reaction))

    def _note(self, name: str, codes: Collection[str], *, group: str) -> None:
        """Remember the code of a reaction or process, and refuse other code under its name.

        Whoever runs under the name later has to be the same, until the group is deleted. A process has the code of its
        earlier versions as well.

        Raises:
            InvalidInput: other code runs under that name.
        """
        before = self._codes.get(name, frozenset())
        if before and before.isdisjoint(codes):
            if self._has_begun(group):
                raise duplicate_name_error(name, min(before), min(codes))
            before = frozenset()
        self._codes[name] = before.union(codes)

    def _has_begun(self, group: str) -> bool:
        """Return whether a group has a state in any partition."""
        member = Member(reaction=stand_in(group), reader=self.feed)
        return any(member.load(partition.partition).state is not None for partition in self.feed.partitions())

    def now(self) -> int:
        """Return the time of all stores here, in nanoseconds since 1970."""
        return time.time_ns() if self._stopped is None else self._stopped

    def stop_clock(self, at: Ticks) -> None:
        """Stop the clock of all stores here at a time; a time in the past counts as now.

        Args:
            at: time at which the clock stops, in ticks of 100 nanoseconds since the year 1.
        """
        now = self.now()
        self._stopped = now + max(0, (at - from_unix_nanoseconds(now)) * 100)

    def run(self, reaction: Reaction | Composite | type) -> list[RunResult]:
        """Run a reaction as `react` does, without warnings about categories and types that have no events.

        Args:
            reaction: a reaction, or a process.
        """
        if composite := composite_of(reaction):
            return self._run_composite(composite)
        return self._run(self._reactor(cast("Reaction", reaction)))

    def _run(self, reactor: Reactor) -> list[RunResult]:
        """Run a reaction until nothing is left to index or it is blocked; return one result per partition."""
        runs = dict[int, RunResult]()
        for _ in range(_MOST):
            turn = self._run_turn(reactor)
            runs |= {partition: _followed(runs.get(partition), ran) for partition, ran in turn.items()}
            moved = any(ran.moved for ran in turn.values())
            if not moved or any(ran.blocked for ran in turn.values()) or not self._has_news():
                return [*runs.values()]
        name = reactor.member.reaction.name
        raise InvalidInput("reaction", f"{name} appends events that it handles itself, without end")

    def _run_turn(self, reactor: Reactor) -> dict[int, RunResult]:
        """Index, then run a reaction once over its sources' partitions; return the results by partition."""
        self.index()
        reaction = reactor.member.reaction
        return {
            partition.partition: RunResult.of_all(
                [self._run_unit(reactor, unit) for unit in reaction.sharing.units(partition.partition)]
            )
            for partition in self.feed.partitions()
            if source_of(partition.partition) in reaction.sources
        }

    def _run_unit(self, reactor: Reactor, unit: Unit) -> RunResult:
        """Run a reaction's member over a partition, and record what blocks it, as `epochal react` does."""
        ran = reactor.run(unit.partition, share=unit.share, seconds=inf)
        if ran.blocked is not None:
            self._record(reactor.member, unit, ran.blocked)
        return ran

    def _record(self, member: Member, unit: Unit, failure: Failure) -> None:
        """Record a failed run of a group's member, with the stream that blocks it; nothing without a state.

        No next run is expected: tests run what they want.
        """
        state = member.load(unit.partition).state
        if state is None:
            return
        time_of_run = format_ticks(from_unix_nanoseconds(self.now()))
        failed = FailedRun(
            member=unit.share,
            cause=failure.cause.partition(":")[0],  # its message may quote what is sealed
            since=time_of_run,
            last=time_of_run,
            due="",
            stream=failure.stream,
            index=failure.index,
            state=digest_of(state, unit.share),
        )
        self._driver.run(record_failed_run(member.table, member.reaction.name, unit.partition, failed))

    def _has_news(self) -> bool:
        """Return whether anything has been appended since the last call of `index`."""
        tables = (source.table for source in self._indexer.sources)
        return any(len(self.tables.changes(table)) > self._indexed.get(table, 0) for table in tables)

    def _run_composite(self, composite: Composite) -> list[RunResult]:
        """Run the reactions of a composite until none of them advances; return all results."""

        def passed(why: str, event: FeedEvent) -> None:
            """Log an input that the composite skips."""
            _LOGGER.debug("%s passes %s@%d: %s", composite.name, event.stream, event.index, why)

        group = composite.reactions(self.streams)[0].name
        self._note(composite.name, composite.code_names(), group=group)
        runs = list[RunResult]()
        moved = True
        while moved:
            turn = [
                ran for reaction in composite.reactions(self.streams, passed) for ran in self.react(reaction)
            ]
            moved = any(ran.moved for ran in turn)
            runs += turn
        return runs

    def _reactor(self, reaction: Reaction) -> Reactor:
        """Build what runs a reaction, and remember its code."""
        must_be(Reaction, reaction, "reaction", "a function decorated with @reaction(name=…)")
        self._note(reaction.name, {reaction.handler_name}, group=reaction.name)
        return Reactor(member=Member(reaction=reaction, reader=self.feed), on_failed=_log)


def _followed(before: RunResult | None, ran: RunResult) -> RunResult:
    """Return the result of several runs over a partition, of which this is the last."""
    if before is None:
        return ran
    return replace(
        ran,
        moved=before.moved or ran.moved,
        events=before.events + ran.events,
        parked=before.parked + ran.parked,
        seen=before.seen | ran.seen,
    )


def _log(attempt: Attempt) -> None:
    """Log a failed call of a handler with its trace, so that pytest shows it for a test that fails.

    The record has only text: what collects records keeps their arguments, and the error of an attempt may quote what is
    sealed.
    """
    _LOGGER.warning("%s\n%s", str(attempt), trace_of(attempt.error))
