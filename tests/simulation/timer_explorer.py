"""Every interleaving of who sets timers, of the reactors that arm them and of the wakers that fire them.

The steps are those of the library (`timers.protocol`), on streams and items in memory; each is one request. A reactor
or a waker may die between any two. A wake-up comes at least once, and perhaps to several, until a waker has said that
it is done; a schedule has its name for a while after it has sent its wake-up.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, ClassVar, Final, NamedTuple

from epochal.contrib.timers import protocol
from epochal.contrib.timers.engine import Engine, armed_of
from epochal.contrib.timers.protocol import (
    Armed,
    Doing,
    Fire,
    LoadPending,
    Sent,
    SideBySide,
    Wake,
    Worked,
    read_armed,
)
from epochal.feed.events import FeedEvent
from epochal.layout.tables import TIMERS
from epochal.model.events import Event, Recorded
from epochal.model.moments import PER_SECOND, Ticks, format_ticks, from_unix_nanoseconds, parse_time
from epochal.plan.ops import Delete, Put, Query, Several
from epochal.scheduling import cancel, later
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables
from tests.simulation.exploring import driven, explore, put

STREAM: Final = "Loan-1"
BEGIN: Final = from_unix_nanoseconds(1_790_000_040 * 10**9)
"""The beginning of a minute."""

COME: Final = -1
"""When a message that has come was to come."""

Record = tuple[Any, ...]
"""An event of the stream: ("S", name, due), ("C", name), ("E", name), ("F", name, index of the setting), ("N",)."""


class Message(NamedTuple):
    """A wake-up in the queue: its arrival time, and its number among equal ones."""

    at: int
    number: int
    wake: Wake


class Schedule(NamedTuple):
    """A schedule by its name."""

    at: int
    wake: Wake
    over: bool = False


class Reactor(NamedTuple):
    """State of a reactor: the checkpoint that it loaded, and the replies to its requests."""

    version: int
    first: int
    at: int
    past: tuple[tuple[Hashable, int], ...] = ()


class Waking(NamedTuple):
    """State of a waker: its message, its start, and the replies to its requests."""

    message: Message
    since: int
    past: tuple[tuple[Hashable, int], ...] = ()


class State(NamedTuple):
    """A state of the world."""

    records: tuple[Record, ...] = ()
    said: int = 0
    time: int = 0
    items: frozenset[Armed] = frozenset()
    messages: frozenset[Message] = frozenset()
    schedules: frozenset[Schedule] = frozenset()
    checkpoint: tuple[int, int] = (0, 0)
    reactors: tuple[Reactor | None, ...] = ()
    wakers: tuple[Waking | None, ...] = ()
    deaths: int = 0


class Ended(NamedTuple):
    """Marks the end of a conversation."""

    outcome: Any


@dataclass(slots=True)
class World:
    """A small world.

    Attributes:
        script: what users append, in this order: settings ("S", name, due) and cancellations ("C", name).
        unit: seconds from one moment to the next; hours make schedules, and minutes messages.
        until: the last moment, unless something is on its way then.
        moments: seconds of the moments, where they are not `unit` apart.
        tidy: reactors delete the items of what was cancelled. The library does not, but could.
    """

    script: tuple[Record, ...]
    reactors: int = 1
    wakers: int = 1
    deaths: int = 1
    unit: int = 60
    until: int = 2
    moments: tuple[int, ...] = ()
    tidy: bool = False
    met: set[str] = field(default_factory=set)
    streams: dict[tuple[Record, ...], MemoryTables] = field(default_factory=dict)
    tables: dict[frozenset[Armed], MemoryTables] = field(default_factory=dict)
    answers: dict[Hashable, Any] = field(default_factory=dict)
    standing: dict[Hashable, Any] = field(default_factory=dict)

    done_when_taken: ClassVar[bool] = False
    """A wake-up is gone once a waker has it, as it must not be."""

    def explore(self) -> int:
        """Visit every state and return their number; a failure shows the steps that led to it."""
        self.streams[()] = memory_tables()
        first = State(
            reactors=(None,) * self.reactors,
            wakers=(None,) * self.wakers,
            deaths=self.deaths,
        )
        return explore(first, self._steps, self._check)

    # ------------------------------------------------------------------------------------------------ what must hold

    def _check(self, state: State) -> None:
        fired = [each[2] for each in state.records if each[0] == "F"]
        assert len(fired) == len(set(fired)), f"a timer fired twice: {state.records}"

    def _check_fired(self, state: State, records: tuple[Record, ...]) -> None:
        for index in range(len(state.records), len(records)):
            if records[index][0] == "F":
                _, name, setting = records[index]
                waiting = pending(records[:index]).get(name)
                assert waiting == setting, f"{name} fired as set at {setting}, though pending is {waiting}"
                assert records[setting][2] <= state.time, f"{name} fired before its time"

    def _check_rest(self, state: State) -> None:
        for name, index in pending(state.records).items():
            assert state.records[index][2] > state.time, f"at rest, and {name} set at {index} never fired"
        # An item of what is over may be left, by a slow reactor that died before its wake-up: a sweep finds it.

    # ----------------------------------------------------------------------------------------------------- the steps

    def clock(self, time: int) -> Ticks:
        """The time of a moment."""
        known = (*self.moments[: time + 1],) or (0,)
        seconds = known[-1] + (time + 1 - len(known)) * self.unit
        return Ticks(BEGIN + seconds * PER_SECOND)

    def _moment(self, ticks: int) -> int:
        """Return the first moment that is not before a time."""
        return next(each for each in count() if self.clock(each) >= ticks)

    def _steps(self, state: State) -> Iterator[tuple[str, State]]:
        moved = False
        for step in (*self._outside(state), *self._reacting(state), *self._working(state)):
            moved = True
            yield step
        if not moved:
            self._check_rest(state)

    def _outside(self, state: State) -> Iterator[tuple[str, State]]:
        if state.said < len(self.script):
            record = self.script[state.said]
            records = self._appended(state.records, record)
            yield f"a user appends {record}", state._replace(records=records, said=state.said + 1)
        moments = {each.at for each in state.messages} | {each.at for each in state.schedules}
        on_the_way = max(moments, default=COME) > state.time
        if state.time < self.until or on_the_way:
            yield f"it is {state.time + 1}", _later(state)
        for each in state.schedules:
            others = state.schedules - {each}
            if each.over:
                yield f"the schedule {each.wake.name} is deleted", state._replace(schedules=others)
            elif each.at <= state.time:
                self.met.add("schedule")
                messages = _with_message(state, state.messages, COME, each.wake)
                over = others | {each._replace(over=True)}
                yield (
                    f"the schedule {each.wake.name} sends",
                    state._replace(messages=messages, schedules=over),
                )

    def _reacting(self, state: State) -> Iterator[tuple[str, State]]:
        for who, at in enumerate(state.reactors):
            if at is None:
                version, first = state.checkpoint
                if first < len(state.records):
                    begun = Reactor(version, first, self._next(state, first))
                    yield f"R{who} begins at {first}", _reacted(state, who, begun)
                continue
            if state.deaths:
                yield f"R{who} dies", _reacted(state, who, None, deaths=state.deaths - 1)
            if at.at < len(state.records):
                yield self._arming(state, who, at)
            if not at.past and at.at > at.first:
                yield self._committing(state, who, at)

    def _committing(self, state: State, who: int, at: Reactor) -> tuple[str, State]:
        version, _ = state.checkpoint
        if version == at.version:
            return f"R{who} commits {at.at}", _reacted(state, who, None, checkpoint=(version + 1, at.at))
        return f"R{who} is too late", _reacted(state, who, None)

    def _arming(self, state: State, who: int, at: Reactor) -> tuple[str, State]:
        if state.records[at.at][0] == "C" and self.tidy:
            left = frozenset(each for each in state.items if int(each.place) >= at.at)
            onward = at._replace(at=self._next(state, at.at + 1))
            return f"R{who} deletes what was cancelled", _reacted(state, who, onward, items=left)
        if state.records[at.at][0] != "S":  # it has come since
            return f"R{who} passes it", _reacted(state, who, at._replace(at=self._next(state, at.at)))
        prefix = state.records[: at.at + 1]
        asked = self._at(("arm", prefix, state.time, at.past))
        what, key, changed = self._perform(state, asked)
        onward = at._replace(past=(*at.past, (key, state.time)))
        if isinstance(self._at(("arm", prefix, state.time, onward.past)), Ended):
            onward = at._replace(at=self._next(state, at.at + 1), past=())
        return f"R{who} {what}", _reacted(state, who, onward, **changed)

    def _next(self, state: State, index: int) -> int:
        """Return the index of the next event that the reaction handles, from `index` on."""
        wanted = "SC" if self.tidy else "S"
        while index < len(state.records) and state.records[index][0] not in wanted:
            index += 1
        return index

    def _working(self, state: State) -> Iterator[tuple[str, State]]:
        for who, at in enumerate(state.wakers):

            def with_(waking: Waking | None, who: int = who, **more: Any) -> State:
                return state._replace(wakers=put(state.wakers, who, waking), **more)

            if at is None:
                for message in (each for each in state.messages if each.at <= state.time):
                    taken = {"messages": state.messages - {message}} if self.done_when_taken else {}
                    yield (
                        f"W{who} takes {message.wake.name} {message.number}",
                        with_(Waking(message, state.time), **taken),
                    )
                continue
            if state.deaths:
                yield f"W{who} dies", with_(None, deaths=state.deaths - 1)
            asked = self._at(("wake", at.message.wake, at.since, at.past))
            if isinstance(asked, Ended):
                assert not asked.outcome.failed
                yield f"W{who} is done", with_(None, messages=state.messages - {at.message})
                continue
            what, key, changed = self._perform(state, asked)
            if isinstance(asked, Sent):
                self.met.add("early")
            yield f"W{who} {what}", with_(at._replace(past=(*at.past, (key, state.time))), **changed)

    # ------------------------------------------------------------------------------------------- the library's part

    def _at(self, standing: tuple[Any, ...]) -> Any:
        """Return the next request of a conversation after these timed replies, or its end."""
        if standing not in self.standing:
            kind, subject, since, past = standing
            clock = [self.clock(since)]
            doing: Doing[Any]
            if kind == "arm":
                doing = protocol.arming(TIMERS.kind, self._armed(subject), lambda: clock[0])
            else:
                doing = protocol.waking(TIMERS.kind, [subject], lambda: clock[0], Worked())
            steps = flat(doing)
            try:
                asked = next(steps)
                for key, time in past:
                    clock[0] = self.clock(time)
                    asked = steps.send(self.answers[key])
            except StopIteration as end:
                asked = Ended(end.value)
            self.standing[standing] = asked
        return self.standing[standing]

    def _perform(self, state: State, asked: Any) -> tuple[str, Hashable, dict[str, Any]]:
        """Perform one request; return it in words, the key of its reply, and the changes."""
        match asked:
            case Sent():
                return "sends wake-ups", self._answer("sent", None), self._sent(state, asked)
            case Put(item=item):
                armed = read_armed(item)
                others = {each for each in state.items if each.key != armed.key}
                return (
                    f"puts {armed.place}",
                    self._answer("put", None),
                    {"items": frozenset({*others, armed})},
                )
            case Delete(key=key):
                gone = {each for each in state.items if each.key == key}
                return f"deletes {len(gone)} items", self._answer("gone", None), {"items": state.items - gone}
            case Query():
                found = self._items(state.items).execute(asked)
                return "looks for items", self._answer(("items", state.items, repr(asked)), found), {}
            case LoadPending():
                seen = getattr(asked.seen.known, "version", None)
                key = ("load", state.records, repr(asked.timers), seen)
                return "loads", self._loaded(key, asked, state), {}
            case Fire():
                return self._fired(state, asked)
        raise AssertionError(asked)

    def _answer(self, key: Hashable, answer: Any) -> Hashable:
        self.answers[key] = answer
        return key

    def _loaded(self, key: Hashable, asked: LoadPending, state: State) -> Hashable:
        if key not in self.answers:
            # What came with a refusal may be older than what is there: here a load always reads.
            answer = self._engine(self.streams[state.records])._answer(replace(asked, refused=None), 0.0)  # noqa: SLF001
            self.answers[key] = answer
        return key

    def _fired(self, state: State, asked: Fire) -> tuple[str, Hashable, dict[str, Any]]:
        settings = tuple(each.setting for each in asked.due)
        key = ("fire", state.records, getattr(asked.found.known, "version", None), settings)
        if key not in self.answers:
            tables = self.streams[state.records].copy()
            self.answers[key] = self._engine(tables)._answer(asked, 0.0)  # noqa: SLF001  as it performs it
            self.standing[key] = self._kept(tables)
        records = self.standing[key]
        self._check_fired(state, records)
        self.met.add("refused" if records == state.records else "fired")
        what = f"fires {settings}" if records != state.records else "is refused"
        return what, key, {"records": records}

    def _sent(self, state: State, sent: Sent) -> dict[str, Any]:
        messages, schedules = state.messages, state.schedules
        for wake, seconds in sent.near:
            at = self._moment(self.clock(state.time) + seconds * PER_SECOND)
            messages = _with_message(state, messages, at, wake)
        for slot in sent.far:
            if all(each.wake.name != slot.name for each in schedules):
                schedules |= {Schedule(self._moment(slot.since), slot)}
            else:
                self.met.add("schedule that is there")
        return {"messages": messages, "schedules": schedules}

    # ---------------------------------------------------------------------------------------------------- the tables

    def _items(self, items: frozenset[Armed]) -> MemoryTables:
        if items not in self.tables:
            self.tables[items] = MemoryTables({TIMERS.kind: TIMERS})
            for each in items:
                self.tables[items].execute(Put(table=TIMERS.kind, item=each.item))
        return self.tables[items]

    def _appended(self, records: tuple[Record, ...], record: Record) -> tuple[Record, ...]:
        after = (*records, record)
        if after not in self.streams:
            tables = self.streams[records].copy()
            if record[0] == "S":
                due = format_ticks(self.clock(record[2]))
                event = later(record[1], [Event.json("E", record[1])], at=due)
            else:
                event = cancel(record[1]) if record[0] == "C" else Event(type="N")
            memory_streams(tables).append(STREAM, [event])
            self.streams[after] = tables
        return after

    def _kept(self, tables: MemoryTables) -> tuple[Record, ...]:
        """Return the records of the stream in these tables, and remember the tables by their records."""
        records = tuple(map(self._record, memory_streams(tables).read(STREAM)))
        self.streams.setdefault(records, tables)
        return records

    def _record(self, event: Recorded) -> Record:
        told = event.json() if event.data else None
        match event.type:
            case "$timer-set":
                return "S", told["name"], self._moment(parse_time(told["due"]))
            case "$timer-cancelled":
                return "C", told["name"]
            case "$timer-fired":
                return "F", told["name"], told["set"]
        return ("E", told) if told else ("N",)

    def _armed(self, records: tuple[Record, ...]) -> list[Armed]:
        """Return the timers that the last record sets, as the reaction reads it."""
        key = ("armed", records)
        if key not in self.standing:
            (event,) = memory_streams(self.streams[records]).read(STREAM, start=len(records) - 1)
            self.standing[key] = list(armed_of([fed(event)], "pages"))
        found: list[Armed] = self.standing[key]
        return found

    def _engine(self, tables: MemoryTables) -> Engine:
        driver = Driver(execute=tables.execute, meter=Meter())
        store: Streams = replace(memory_streams(tables), driver=driver)
        return Engine(
            driver=driver, table=TIMERS.kind, streams={"pages": store}, tagged={}, send=lambda _: None
        )


def _reacted(state: State, who: int, reactor: Reactor | None, **more: Any) -> State:
    return state._replace(reactors=put(state.reactors, who, reactor), **more)


def pending(records: Sequence[Record]) -> dict[str, int]:
    """Return the pending settings, by name."""
    found: dict[str, int] = {}
    for index, record in enumerate(records):
        if record[0] == "S":
            found[record[1]] = index
        elif record[0] == "C" or (record[0] == "F" and found.get(record[1]) == record[2]):
            found.pop(record[1], None)
    return found


def fed(event: Recorded) -> FeedEvent:
    """Return an event as the feed contains it."""
    return FeedEvent(
        stream=event.stream, index=event.index, type=event.type, data=event.data, timestamp=event.timestamp
    )


def flat(doing: Doing[Any]) -> Doing[Any]:
    """Run a conversation with requests of a batch sent one after another."""
    return driven(doing, _alone)  # type: ignore[arg-type]  # its requests are more than operations


def _alone(asked: Any) -> Doing[Any] | None:
    if isinstance(asked, Several):
        return _each(asked.ops)
    return _inner(asked) if isinstance(asked, SideBySide) else None


def _each(ops: Sequence[Any]) -> Doing[list[Any]]:
    replies = []
    for op in ops:
        replies.append((yield op))  # noqa: PERF401  no comprehension may yield
    return replies


def _inner(asked: SideBySide) -> Doing[list[Any]]:
    came = []
    for doing in asked.doings:
        came.append((yield from flat(doing)))  # noqa: PERF401  likewise
    return came


def _with_message(state: State, messages: frozenset[Message], at: int, wake: Wake) -> frozenset[Message]:
    """With one more; but for one that is at work on it, none that is alike tells anything else."""
    number, at = 0, at if at > state.time else COME
    taken = {each.message for each in state.wakers if each is not None}
    while (message := Message(at, number, wake)) in taken:
        number += 1
    return messages | {message}


def _later(state: State) -> State:
    """Return the state at the next moment, after more messages have arrived."""
    after = state._replace(time=state.time + 1)
    messages = frozenset(each for each in state.messages if each.at == COME or each.at > after.time)
    for each in state.messages - messages:
        messages = _with_message(after, messages, each.at, each.wake)
    return after._replace(messages=messages)
