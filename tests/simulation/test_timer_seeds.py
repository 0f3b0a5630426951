"""Timers over a faulty network, by processes that are killed and whose clocks are hours apart.

Every timer that is not cancelled fires once; none before its time by the clock of who fires it, none after it was
cancelled, and none is lost: what no wake-up came for, a sweep fires.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.timers import engine, protocol
from epochal.contrib.timers.engine import Engine, armed_of
from epochal.contrib.timers.protocol import Armed, Doing, Fire, Sent, Wake, Worked, read_wake_up
from epochal.contrib.timers.stores import PendingTimers, pending_in
from epochal.errors import EpochalError, Unavailable
from epochal.layout.tables import TIMERS, every_table
from epochal.model.events import Event, Recorded
from epochal.model.expected_version import ANY
from epochal.model.moments import Ticks, from_unix_nanoseconds
from epochal.model.tags import Query, QueryItem
from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import Op, Reply
from epochal.scheduling import Timer, after, cancel, later
from epochal.store.driver import Driver, Meter, Patience
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams
from tests.simulation.mutants import Mutant, Patch, play_all
from tests.simulation.seeds import ranges
from tests.simulation.test_timer_exhaustive import an_item_is_deleted_before_the_firing
from tests.simulation.timer_explorer import fed, flat

BEGIN = 1_790_000_000 * 10**9
MINUTE = 60 * 10**9
HOUR = 60 * MINUTE
SKEW = 3 * HOUR
LOST = 0.2
"""Of the schedules, so many send nothing: no queue promises that, and a sweep is there for it."""

DEATHS = 0.08
PRUNES = 0.15
"""Of what users do."""

STREAMS = (
    *(("pages", f"Loan-{number}") for number in range(4)),
    *(("tips", f"Loan-{number}") for number in range(2)),
    ("tags", "loan:1"),
)
QUERY = Query(items=(QueryItem(tags=frozenset({"loan:1"})),))


class Judged(Engine):
    """An engine that says when it fires before its time."""

    def _fire(self, asked: Fire) -> Any:
        now = from_unix_nanoseconds(self.now())
        assert all(each.ticks <= now for each in asked.due), "fired before its time"
        return super()._fire(asked)


@dataclass(slots=True)
class Process:
    """Something that arms or fires, in the middle of it or idle.

    Attributes:
        over: what is over once it has ended.
    """

    engine: Engine
    doing: Doing[Any] | None = None
    asked: Any = None
    over: Callable[[Any], object] = lambda _: None


@dataclass
class World:
    """Tables, a queue, schedules, users, two reactors and two wakers."""

    luck: random.Random
    time: int = BEGIN
    faults: float = 0.04
    messages: list[tuple[int, str]] = field(default_factory=list)
    schedules: dict[str, tuple[int, Wake | None]] = field(default_factory=dict)
    count: int = 0
    tables: MemoryTables = field(
        default_factory=lambda: MemoryTables({spec.kind: spec for spec in every_table()})
    )
    committed: set[Armed] = field(default_factory=set)
    known: tuple[int, list[Armed]] = (-1, [])
    pruned: dict[tuple[str, str], dict[int, Recorded]] = field(default_factory=dict)
    reactors: list[Process] = field(default_factory=list)
    wakers: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stores = {"pages": memory_streams(self.tables), "tips": memory_tips(self.tables)}
        self.user = self._engine()
        self.reactors = [Process(self._engine()) for _ in range(2)]
        self.wakers = [Process(self._engine()) for _ in range(2)]

    def _engine(self) -> Engine:
        skew = self.luck.randint(-SKEW, SKEW)

        def now() -> int:
            return self.time + skew

        driver = Driver(
            execute=self._execute,
            meter=Meter(),
            patience=Patience(retries=2),
            sleep=lambda _: None,
            luck=self.luck.random,
            clock=lambda: self.time / 1e9,
        )
        fresh = self.luck.randbytes
        streams = {
            name: replace(store, driver=driver, now=now, fresh=fresh) for name, store in self.stores.items()
        }
        return Judged(
            driver=driver,
            table=TIMERS.kind,
            streams=streams,
            tagged={"pages": streams["pages"].tagged},
            send=self._send,
            now=now,
            at_once=1,
        )

    def _execute(self, op: Op) -> Reply:
        fate = self.luck.random()
        if fate < self.faults:
            raise RequestNotApplied("throttled")
        reply = self.tables.execute(op)
        if fate < 2 * self.faults:
            raise Lost("cut off")
        return reply

    def _send(self, sent: Sent) -> None:
        if self.luck.random() < self.faults:
            raise Unavailable("the queue", maybe_applied=False)
        for wake, seconds in sent.near:
            self.messages.append((self.time + seconds * 10**9, wake.body))
        for slot in sent.far:
            at = (slot.since - from_unix_nanoseconds(0)) * 100
            self.schedules.setdefault(slot.name, (at, slot))

    # ------------------------------------------------------------------------------------------------ what happens

    def act(self) -> None:
        """One thing happens."""
        self.luck.choice(
            [self._use, self._react, self._react, self._wake, self._wake, self._wake, self._pass]
        )()

    def _use(self) -> None:
        layout, stream = self.luck.choice(STREAMS)
        tags = (stream,) if layout == "tags" else ()
        name = self.luck.choice("ab")
        minutes = self.luck.choice((0, 1, 14, 60, 300))
        self.count += 1
        if not tags and self.luck.random() < PRUNES:
            self._prune(layout, stream)
            return
        made = Event.json("E", self.count, tags=tags)
        event = self.luck.choice(
            [
                later(name, [made], at=after(minutes=minutes), tags=tags),
                later(name, [made], at=after(minutes=minutes), tags=tags),
                cancel(name, tags=tags),
                Event(type="N", tags=tags),
            ]
        )
        with suppress(EpochalError):
            if tags:
                self.user.tagged["pages"].append([event])
            else:
                self.user.streams[layout].append(stream, [event], expected=ANY)

    def _prune(self, layout: str, stream: str) -> None:
        events = self.read(layout, stream)
        if events:
            self.pruned.setdefault((layout, stream), {}).update({each.index: each for each in events})
            with suppress(EpochalError):
                before = self.luck.randint(events[0].index, events[-1].index)
                self.user.streams[layout].prune(stream, before)

    def _pass(self) -> None:
        self.time += self.luck.choice((1, 60, 240, 3_600)) * 10**9 // 2
        for name, (at, slot) in list(self.schedules.items()):
            if slot is not None and at <= self.time:
                if self.luck.random() > LOST:
                    self.messages.append((self.time, slot.body))
                self.schedules[name] = at, None
            elif slot is None and self.luck.random() < 0.5:
                del self.schedules[name]

    def settings(self) -> list[Armed]:
        """Of all streams: what the feed has."""
        if self.known[0] == self.count:
            return self.known[1]
        found = list[Armed]()
        for layout, stream in STREAMS:
            events = ([fed(each)] for each in self.read(layout, stream) if each.type == "$timer-set")
            for each in events:
                event = replace(each[0], tags=(stream,)) if layout == "tags" else each[0]
                found += armed_of([event], "pages" if layout == "tags" else layout)
        self.known = self.count, found
        return found

    def _react(self) -> None:
        process = self.luck.choice(self.reactors)
        if process.doing is not None:
            self._go_on(process)
            return
        settings = self.settings()
        if not settings:
            return
        # At least once: of those that are not armed yet, and now and then of others again.
        some = self.luck.sample(settings, min(len(settings), self.luck.randint(1, 3)))

        def over(_: Any) -> None:
            self.committed.update(some)

        self._begin(process, protocol.arming(TIMERS.kind, some, _ticks(process.engine)), over)

    def _wake(self) -> None:
        process = self.luck.choice(self.wakers)
        if process.doing is not None:
            self._go_on(process)
            return
        come = [each for each in self.messages if each[0] <= self.time]
        if not come:
            return
        taken = self.luck.sample(come, min(len(come), self.luck.randint(1, 3)))
        wakes = [read_wake_up(body) for _, body in taken]

        def over(worked: Any) -> None:
            for message, wake in zip(taken, wakes, strict=True):
                if wake not in worked.failed and message in self.messages:
                    self.messages.remove(message)

        self._begin(process, protocol.waking(TIMERS.kind, wakes, _ticks(process.engine), Worked()), over)

    def _begin(self, process: Process, doing: Doing[Any], over: Callable[[Any], object]) -> None:
        process.doing, process.over = flat(doing), over
        self._sent(process, None)

    def _go_on(self, process: Process) -> None:
        """One request; or the process dies."""
        if self.luck.random() < DEATHS:
            process.doing = None
            return
        try:
            answer = process.engine._answer(process.asked, 1e12)  # noqa: SLF001  as the engine performs it
        except EpochalError as error:
            self._sent(process, None, error)
        else:
            self._sent(process, answer)

    def _sent(self, process: Process, answer: Any, error: EpochalError | None = None) -> None:
        assert process.doing is not None
        try:
            process.asked = process.doing.send(answer) if error is None else process.doing.throw(error)
        except StopIteration as end:
            process.doing = None
            process.over(end.value)
        except EpochalError:
            process.doing = None

    # -------------------------------------------------------------------------------------------------- what came

    def read(self, layout: str, stream: str) -> Sequence[Recorded]:
        """A stream, without faults."""
        if layout == "tags":
            return self.stores["pages"].tagged.read(QUERY).events
        return list(self.stores[layout].read(stream))

    def end(self) -> None:
        """The network heals, the reaction catches up, and the auditor looks each hour."""
        self.faults = 0.0
        for each in (*self.reactors, *self.wakers):
            while each.doing is not None:
                self._sent(each, each.engine._answer(each.asked, 1e12))  # noqa: SLF001  likewise
        self.reactors[0].engine.arm_all(each for each in self.settings() if each not in self.committed)
        for _ in range(13):
            self._pass()
            self.time += HOUR
            come = [each for each in self.messages if each[0] <= self.time]
            worked = self.wakers[0].engine.work([read_wake_up(body) for _, body in come])
            assert not worked.failed
            self.messages = [each for each in self.messages if each not in come]
            self.wakers[1].engine.sweep()

    def judge(self) -> int:
        """Fails unless all is as promised; how many timers fired."""
        fired = 0
        for place in STREAMS:
            left = self.read(*place)
            gone = self.pruned.get(place, {})
            events = {**gone, **{each.index: each for each in left}}.values() if gone else left
            fired += judged(list(events), left[0].index if gone and left else 0)
        return fired


def _ticks(engine: Engine) -> Callable[[], Ticks]:
    return lambda: from_unix_nanoseconds(engine.now())


def judged(events: Sequence[Recorded], begins: int = 0) -> int:
    """Whether what fired in a stream was pending; how much did. What was set before it begins need not fire."""
    waiting = dict[str, tuple[int | str, int]]()
    made = list[int]()
    fired = 0
    for event in events:
        told = event.json() if event.data else None
        match event.type:
            case "$timer-set":
                waiting[told["name"]] = event.index if event.stream else event.id, told["events"][0]["data"]
            case "$timer-cancelled":
                waiting.pop(told["name"], None)
            case "E":
                made.append(told)
            case "$timer-fired":
                setting, number = waiting.pop(told["name"], (None, None))
                assert told["set"] == setting, f"{told} fired, and pending was {setting}"
                assert made[-1] == number, f"{told} fired with the events of another"
                fired += 1
    assert len(set(made)) == len(made) == fired, f"fired twice, or in part: {made}"
    waiting = {name: each for name, each in waiting.items() if isinstance(each[0], str) or each[0] >= begins}
    assert not waiting, f"never fired: {waiting}"
    return fired


def play(seed: int) -> int:
    """One history, judged; how many timers fired."""
    world = World(luck=random.Random(seed))
    try:
        for _ in range(120):
            world.act()
        world.end()
        return world.judge()
    except AssertionError as failure:
        raise AssertionError(f"seed {seed}: {failure}") from failure


@ranges(100, 100)
def test_every_timer_that_is_not_called_off_fires_once_and_in_time(seeds: range) -> None:
    assert sum(map(play, seeds)) > len(seeds)


def a_sweep_is_left_out(patch: Patch) -> None:
    patch.setattr(Engine, "sweep", lambda *_, **__: None)


def what_fires_does_not_look_at_its_clock(patch: Patch) -> None:
    firing = protocol.firing
    patch.setattr(protocol, "firing", lambda table, timers, _: firing(table, timers, Ticks(10**18)))


def what_is_pending_under_more_tags_or_names_is_forgotten(patch: Patch) -> None:
    """Of a scope only the first timer is fired, and all of its items go."""
    first = Engine._load  # noqa: SLF001  the step that it breaks

    def one(self: Engine, asked: Any) -> Any:
        found = first(self, asked)
        return replace(found, pending=found.pending[:1])

    patch.setattr(Engine, "_load", one)


def a_timer_fires_without_what_says_so(patch: Patch) -> None:
    right = Timer.firing
    patch.setattr(Timer, "firing", lambda self: right(self)[:-1])


def a_stream_takes_any_firing(patch: Patch) -> None:
    append = Engine.try_append
    patch.setattr(
        Engine,
        "try_append",
        lambda self, scope, events, known: append(self, scope, events, ANY if scope.stream else known),
    )


def a_timer_goes_with_one_that_was_pruned(patch: Patch) -> None:

    def none_behind(store: Any, stream: str, first: int, *more: Any, **how: Any) -> PendingTimers:
        if store.load(stream) is not None and store.page(stream, start=first, limit=1).hole is not None:
            return PendingTimers()
        return pending_in(store, stream, first, *more, **how)

    patch.setattr(engine, "pending_in", none_behind)


@pytest.mark.parametrize(
    ("mutant", "found", "begin"),
    [
        (a_timer_goes_with_one_that_was_pruned, "never fired", 33),
        (a_sweep_is_left_out, "never fired", 2),
        (what_fires_does_not_look_at_its_clock, "before its time", 1),
        (what_is_pending_under_more_tags_or_names_is_forgotten, "never fired", 9),
        (a_timer_fires_without_what_says_so, "fired|made", 0),
        (a_stream_takes_any_firing, "pending was|fired", 19),
        # Hardly a seed does, which takes half a minute.
        pytest.param(an_item_is_deleted_before_the_firing, "never fired", 0, marks=pytest.mark.proof),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_rule_that_is_left_out_is_found_by_a_seed(
    mutant: Mutant, found: str, begin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError, match=rf"^seed \d+: .*({found})"):
        play_all(play, 200, begin)
