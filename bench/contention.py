"""Writers in each other's way, in a simulated schedule: what they cost each other, the same on every machine.

8 writers, each in a process of its own, make 20 decisions each, one after another: on one stream, with deciders, by a
program's own loop and by plain calls of `load` and `append`; on two streams at once, on a tag, on an aggregate. Those
on streams keep the state that they know, but for plain calls, which load it each time. A request takes 5 or 50 ms of
simulated time, a third more or less, in two parts, and comes to pass between them; a decision takes up to half a
millisecond. So what is measured is the rule for going on after a conflict, and not how the threads of a machine meet;
`bench.workloads` has them, too. `bench.hot_stream` has writers of one process, who take turns.

Bounds, for 160 decisions: 400 write units of refused appends; 200 read units on a stream and on an aggregate, 400 on
two streams, 600 with plain calls. A decision on a tag reads all of it first; that is 1,800.
"""

from __future__ import annotations

import itertools
import random
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from typing import Final, TypeVar, get_args

from greenlet import getcurrent, greenlet

from bench.corpus import Kind, body
from bench.report import Report
from bench.workloads import CODEC, DECIDER, counting
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders, Standing
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.snapshot_policies import every
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban.store import DcbEvents, opened
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import EventCodec
from epochal.deciders.loading import AllowStale
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Deciders, handle_all
from epochal.deciders.projections import projection
from epochal.deployment import Deployment
from epochal.errors import ConflictError
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict
from epochal.plan.ops import Op, Reply
from epochal.store.driver import TURN, Driver, Meter
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_settings, memory_tables

WASTED: Final = 400

SEEDS: Final = (1, 2, 3)
WRITERS, EACH, SIZE = 8, 20, 300
STREAM: Final = "Bench-1"
OTHER: Final = "Bench-2"
TAG: Final = "course:1"
AGGREGATE: Final = AggregateId(type="cart", value="1")

QUICK: Final = 0.005
SLOW: Final = 0.05
"""Seconds that a request takes: of DynamoDB close by, and far away or on a busy machine."""

ATTEMPTS: Final = WRITERS * EACH
"""As many as there are decisions: nobody is to give up."""

_THOUGHT: Final = 0.0005
_NOW: Final = 1_357_000_000_000_000_000


@dataclass(slots=True, eq=False)
class Wait:
    """A task that resumes at a time, unless something resumes it earlier."""

    work: greenlet
    is_over: bool = False


@dataclass(slots=True)
class Schedule:
    """Simulated time, in which ordinary blocking code waits."""

    now: float = 0.0
    _waits: list[tuple[float, int, Wait]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def begin(self, work: Callable[[], None]) -> None:
        """Start a function as a task of the schedule."""

        def take_turns() -> None:
            TURN.set(lambda: SimulatedTurn(schedule=self))
            work()

        self.plan(0.0, Wait(greenlet(take_turns)))

    def sleep(self, seconds: float) -> None:
        """Let simulated time pass in the current task."""
        self.stop(Wait(getcurrent()), seconds)

    def stop(self, wait: Wait, seconds: float | None) -> None:
        """Suspend the current task for `seconds` at most."""
        if seconds is not None:
            self.plan(seconds, wait)
        assert wait.work.parent is not None
        wait.work.parent.switch()

    def plan(self, seconds: float, wait: Wait) -> None:
        """Resume a waiting task after `seconds`."""
        heappush(self._waits, (self.now + seconds, next(self._numbers), wait))

    def run(self) -> None:
        """Run all tasks to their ends."""
        while self._waits:
            moment, _, wait = heappop(self._waits)
            if not wait.is_over:
                self.now, wait.is_over = moment, True
                wait.work.switch()


@dataclass(slots=True, eq=False)
class SimulatedTurn:
    """A turn in a queue, for which a writer waits in simulated time."""

    schedule: Schedule
    _is_set: bool = False
    _wait: Wait | None = None

    def wait(self, timeout: float | None = None) -> object:
        """Wait until the turn is set, or the timeout is over."""
        if not self._is_set:
            self._wait = Wait(getcurrent())
            self.schedule.stop(self._wait, timeout)
        return self._is_set

    def set(self) -> None:
        """Resume the writer that waits."""
        self._is_set = True
        if self._wait is not None:
            self.schedule.plan(0.0, self._wait)

    def is_set(self) -> bool:
        """Return whether the turn was set."""
        return self._is_set


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Figures of contending writers.

    Attributes:
        stored: number of events that are stored in the end.
        wasted: write units of appends that were refused.
        seconds: simulated duration in seconds.
        longest: duration of the longest decision in seconds.
    """

    stored: int
    wasted: float
    read: float
    seconds: float
    longest: float


Store = TypeVar("Store", Streams, TaggedEvents, AggregateStore, DcbEvents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Stores in memory, with the clock of the schedule and seeded randomness."""

    driver: Driver
    dice: random.Random
    schedule: Schedule

    @property
    def streams(self) -> Streams:
        """Streams in the layout of pages."""
        return self._fated(self._deployment.streams)

    @property
    def tagged(self) -> TaggedEvents:
        """Tagged events in the layout of pages."""
        return self._fated(self._deployment.tagged)

    @property
    def dcb(self) -> DcbEvents:
        """Tagged events in Sekiban's tables."""
        return self._fated(opened(self._deployment))

    @property
    def aggregates(self) -> AggregateStore:
        """Aggregates in a journal with snapshots."""
        return self._fated(self._deployment.aggregates)

    @property
    def _deployment(self) -> Deployment:
        return Deployment(settings=memory_settings(), driver=self.driver, bucket=MemoryBucket())

    def _fated(self, store: Store) -> Store:
        return replace(store, now=lambda: _NOW + int(self.schedule.now * 1e9), fresh=self.dice.randbytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the decisions are made on.

    Attributes:
        read: bound of the read units of all decisions.
        writer: function that makes the function which makes one decision.
        count: function that counts the stored events.
    """

    name: str
    read: int
    writer: Callable[[Place], Callable[[bytes], object]]
    count: Callable[[Place], int]


def _on_a_stream(place: Place) -> Callable[[bytes], object]:
    return partial(_deciders(place).handle, STREAM, load=AllowStale())


def _by_plain_calls(place: Place) -> Callable[[bytes], object]:
    streams = place.streams

    def decide(data: bytes) -> None:
        event, appended = Event(type="Happened", data=data), False
        while not appended:
            state = streams.load(STREAM)
            expected = NO_STREAM if state is None else state.token
            with suppress(ConflictError):
                streams.append(STREAM, [event], expected=expected)
                appended = True

    return decide


def _by_a_loop(place: Place) -> Callable[[bytes], object]:
    streams, count = place.streams, 0
    expected: ExpectedVersion = NO_STREAM

    def decide(data: bytes) -> None:
        nonlocal count, expected
        event = Event(type="Happened", data=data)
        while isinstance(answer := streams.try_append(STREAM, [event], expected=expected), Conflict):
            state = streams.load(STREAM, start=count, refused=answer)
            assert state is not None
            count, expected = count + len(state.events), state.token
        assert isinstance(answer, Appended)
        count, expected = count + 1, answer.token

    return decide


def _on_two_streams(place: Place) -> Callable[[bytes], object]:
    deciders = _deciders(place)

    def decide(data: bytes) -> object:
        parties = deciders.on(STREAM), deciders.on(OTHER)
        return handle_all(parties, lambda *_: ([data], [data]), load=AllowStale(), attempts=ATTEMPTS)

    return decide


def _on_a_tag(place: Place) -> Callable[[bytes], object]:
    decisions = Decisions(store=place.tagged, attempts=ATTEMPTS)
    count = projection(tags=[TAG], initial=0, on={"Happened": lambda count, _: count + 1})

    def decide(data: bytes) -> object:
        return decisions.handle({"count": count}, lambda _: [Event(type="Happened", data=data, tags=(TAG,))])

    return decide


def _on_an_aggregate(place: Place) -> Callable[[bytes], object]:
    deciders = AggregateDeciders(
        store=place.aggregates,
        decider=DECIDER,
        codec=EventCodec(encode=_in_json, decode=lambda stored: stored.data),
        state=StateCodec(encode=lambda count: b"%d" % count, decode=int),
        policy=every(10),
        attempts=ATTEMPTS,
    )
    standing: Standing[int] | None = None

    def decide(data: bytes) -> None:
        nonlocal standing
        standing = deciders.handle(AGGREGATE, data, known=standing).standing

    return decide


def _in_json(data: bytes) -> Event:
    """Encode a body as JSON, as aggregates store nothing else."""
    return Event(type="Happened", data=b'"%s"' % b64encode(data))


def _deciders(place: Place) -> Deciders[bytes, int, bytes]:
    return Deciders(streams=place.streams, decider=DECIDER, codec=CODEC, cache=Cache(), attempts=ATTEMPTS)


def _events_of_both(place: Place) -> int:
    return min(sum(1 for _ in place.streams.read(stream)) for stream in (STREAM, OTHER))


SUBJECTS: Final = (
    Subject(
        name="a stream",
        read=200,
        writer=_on_a_stream,
        count=lambda place: sum(1 for _ in place.streams.read(STREAM)),
    ),
    Subject(
        name="a stream, without deciders",
        read=200,
        writer=_by_a_loop,
        count=lambda place: sum(1 for _ in place.streams.read(STREAM)),
    ),
    Subject(
        name="a stream, by plain calls of load and append",
        read=600,
        writer=_by_plain_calls,
        count=lambda place: sum(1 for _ in place.streams.read(STREAM)),
    ),
    Subject(name="two streams", read=400, writer=_on_two_streams, count=_events_of_both),
    Subject(name="a tag", read=1_800, writer=_on_a_tag, count=lambda place: place.tagged.count(TAG)),
    Subject(
        name="an aggregate",
        read=200,
        writer=_on_an_aggregate,
        count=lambda place: len(list(place.aggregates.events_after(AGGREGATE, 0))),
    ),
)


def process_over(
    tables: MemoryTables,
    schedule: Schedule,
    dice: random.Random,
    *,
    meter: Meter,
    refused: Meter,
    request: float,
    spread: float,
) -> Place:
    """Return what a new process has, whose requests come to pass in the middle of their time.

    Args:
        meter: counts all requests.
        refused: counts the units of refused writes.
        request: seconds that a request takes on average.
        spread: part of these by which each half of a request may be shorter or longer.
    """

    def carried(op: Op) -> Reply:
        schedule.sleep(request * dice.uniform(0.5 - spread, 0.5 + spread))
        reply = tables.execute(op)
        schedule.sleep(request * dice.uniform(0.5 - spread, 0.5 + spread))
        return reply

    driver = Driver(
        execute=counting(carried, refused),
        meter=meter,
        clock=lambda: schedule.now,
        sleep=schedule.sleep,
        luck=dice.random,
    )
    return Place(driver=driver, dice=dice, schedule=schedule)


def contend(subject: Subject, seed: int, kind: Kind, request: float = QUICK) -> Contention:
    """Let all writers make their decisions; `request` is the duration of a request in seconds."""
    dice, schedule, refused = random.Random(seed), Schedule(), Meter()
    tables, meter = memory_tables(), Meter()
    # Each writer has a process of its own: those of one process would take turns.
    process = partial(
        process_over, tables, schedule, dice, meter=meter, refused=refused, request=request, spread=0.15
    )
    took: list[float] = []

    def write() -> None:
        decide = subject.writer(process())
        for _ in range(EACH):
            began = schedule.now
            schedule.sleep(_THOUGHT * dice.random())
            decide(body(dice, SIZE, kind))
            took.append(schedule.now - began)

    for _ in range(WRITERS):
        schedule.begin(write)
    schedule.run()
    units = meter.units
    return Contention(
        stored=subject.count(replace(process(), driver=Driver(execute=tables.execute, meter=Meter()))),
        wasted=refused.units.write,
        read=units.read,
        seconds=schedule.now,
        longest=max(took),
    )


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded."""
    results = {
        (subject, kind, request, seed): contend(subject, seed, kind, request)
        for subject in SUBJECTS
        for kind in get_args(Kind)
        for request in (QUICK, SLOW)
        for seed in SEEDS
    }
    Report(
        title="8 writers × 20 decisions of 300 B, simulated",
        columns=["", "events kept", "wasted write units", "read units", "seconds", "longest decision"],
        rows=[
            (
                f"{subject.name}: {kind}, requests of {request * 1000:.0f} ms, seed {seed}",
                f"{took.stored}",
                f"{took.wasted:,.0f}",
                f"{took.read:,.0f}",
                f"{took.seconds:.2f}",
                f"{took.longest:.2f} s",
            )
            for (subject, kind, request, seed), took in results.items()
        ],
    ).print()
    over = sorted({subject.name for (subject, *_), took in results.items() if not within(subject, took)})
    if over:
        raise SystemExit(
            f"events lost, or over {WASTED} write units, or too many read units: {', '.join(over)}"
        )


def within(subject: Subject, took: Contention) -> bool:
    """Return whether no event was lost, and the bounds are kept."""
    return took.stored == WRITERS * EACH and took.wasted <= WASTED and took.read <= subject.read


if __name__ == "__main__":
    main()
