"""Appends of threads, or of tasks, that wait at the same moment go out as one write; each is told what came of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from epochal import Appended, Event
from epochal.aio.bridge import wait
from epochal.aio.stores import AsyncJoinedAppends
from epochal.errors import InvalidInput, MissingTable, OutcomeUndetermined, StreamDeleted, Unavailable
from epochal.layout.changes import Span
from epochal.layout.streams import Batch
from epochal.model.outcomes import Conflict, Outcome
from epochal.pages.frames import time_of
from epochal.pages.items import Page, read_page
from epochal.pages.port import appended
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Query, Reply, Update
from epochal.store import joined
from epochal.store.driver import Patience, Turn, turn
from epochal.store.encoding import BodyCodec
from epochal.store.joined import JOINED_APPENDS, JOINED_BYTES, JoinedAppends, Line, Waiting
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables

S = "Sensor-1"


def measured(number: int, size: int = 8) -> Event:
    return Event(type="Measured", data=f"{number:0{size}}".encode())


@dataclass
class Gate:
    """A store whose writes stop until they are let through, so that appends of threads meet."""

    tables: MemoryTables = field(default_factory=memory_tables)
    ops: list[Op] = field(default_factory=list)
    meddle: Callable[[Op, Reply], Reply] = lambda _, reply: reply

    def __post_init__(self) -> None:
        self.opened, self.reached = threading.Event(), threading.Event()
        self.others = memory_streams(self.tables)
        driver = replace(
            self.others.driver,
            execute=self.execute,
            patience=Patience(seconds=1.0),
            sleep=lambda _: None,
        )
        self.streams: Streams = replace(self.others, driver=driver, codec=BodyCodec())
        self.joined = JoinedAppends(self.streams)

    def execute(self, op: Op) -> Reply:
        self.ops.append(op)
        if isinstance(op, Put | Update):
            self.reached.set()
            self.stop()
        return self.meddle(op, self.tables.execute(op))

    def stop(self) -> None:
        assert self.opened.wait(120)

    def append(self, stream: str, events: Sequence[Event]) -> Appended:
        """One more, of a caller of its own."""
        return self.joined.append(stream, events)

    def meet(self, appends: Sequence[Sequence[Event]]) -> list[Outcome | BaseException]:
        """The first leads and is stopped; the others come in their order, and wait; then all go on."""
        with ThreadPoolExecutor(len(appends)) as callers:
            asked: list[Future[Outcome]] = []
            for events in appends:
                asked.append(callers.submit(self.joined.try_append, S, events))
                assert self.reached.wait(120)
                self._until_in_line(len(asked) - 1)
            self.opened.set()
            return [each.exception(120) or each.result() for each in asked]

    def _until_in_line(self, behind: int) -> None:
        until = time.monotonic() + 120
        while self.in_line < behind:
            assert time.monotonic() < until
            time.sleep(0.001)

    @property
    def in_line(self) -> int:
        return self.joined._lines[S].waiting  # noqa: SLF001  who waits shows nowhere else

    @property
    def writes(self) -> list[Put | Update]:
        return [op for op in self.ops if isinstance(op, Put | Update)]

    @property
    def pages(self) -> list[Page]:
        return [read_page(item) for item in self.tables.items("streams")]

    def read(self) -> list[bytes]:
        return [event.data for event in self.others.read(S)]  # type: ignore[misc]


class Looped(Gate):
    """The same, for tasks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.go_on = asyncio.Event()
        self.awaited = AsyncJoinedAppends(self.joined)

    def stop(self) -> None:
        wait(self.go_on.wait())

    def append(self, stream: str, events: Sequence[Event]) -> Appended:
        return asyncio.run(self.awaited.append(stream, events))

    def meet(self, appends: Sequence[Sequence[Event]]) -> list[Outcome | BaseException]:
        async def together() -> list[Outcome | BaseException]:
            asked: list[asyncio.Task[Outcome]] = []
            for events in appends:
                asked.append(asyncio.create_task(self.awaited.try_append(S, events)))
                while not self.reached.is_set() or self.in_line < len(asked) - 1:  # noqa: ASYNC110  it is no event
                    await asyncio.sleep(0)
            self.go_on.set()
            return await asyncio.gather(*asked, return_exceptions=True)

        return asyncio.run(together())


@pytest.fixture(params=[Gate, Looped], ids=["threads", "tasks"])
def gate(request: pytest.FixtureRequest) -> Gate:
    found: Gate = request.param()
    return found


class Interrupted(BaseException):
    """As a signal interrupts a thread, or the end of a loop a task."""


def test_those_who_wait_go_out_as_one_write_in_their_order(gate: Gate) -> None:
    told = gate.meet([[measured(0)], [measured(1), measured(2)], [measured(3)], [measured(4)]])

    assert len(gate.writes) == 2
    assert [type(op) for op in gate.ops] == [Query, Put, Update], "nobody reads but the first"
    assert gate.read() == [measured(k).data for k in range(5)]
    spans = [(each.first, each.version) for each in told if isinstance(each, Appended)]
    assert spans == [(0, 1), (1, 3), (3, 4), (4, 5)]
    assert [frame.count for frame in gate.pages[0].frames] == [1, 2, 1, 1]
    events = list(gate.others.read(S))
    assert len({event.append_id for event in events} - {None}) == 4, "each append has an id of its own"


def test_a_token_is_of_what_is_there_with_the_last_alone(gate: Gate) -> None:
    *overtaken, last = gate.meet([[measured(k)] for k in range(4)])

    assert isinstance(last, Appended)
    assert isinstance(gate.others.try_append(S, [measured(9)], expected=last.token), Appended)
    for each in overtaken:
        assert isinstance(each, Appended)
        assert isinstance(gate.others.try_append(S, [measured(9)], expected=each.token), Conflict)


def test_what_a_write_takes_is_shared_among_its_appends(gate: Gate) -> None:
    told = [
        each.capacity for each in gate.meet([[measured(k)] for k in range(5)]) if isinstance(each, Appended)
    ]

    assert [each.write for each in told] == [1.0, 0.25, 0.25, 0.25, 0.25]
    assert [each.requests for each in told] == [2, 1, 0, 0, 0]
    total = gate.streams.driver.meter
    assert (sum(each.write for each in told), sum(each.requests for each in told)) == (
        total.units.write,
        total.requests,
    )


def test_the_feed_is_told_of_all_that_one_write_appended(gate: Gate) -> None:
    gate.meet([[measured(k)] for k in range(4)])

    first, second = gate.tables.changes("streams")

    assert appended(first) == Span(S, 0, ("Measured",))
    assert appended(second) == Span(S, 1, ("Measured",) * 3)
    times = [time_of(frame.stamp) for frame in gate.pages[0].frames]
    assert [later - earlier for earlier, later in pairwise(times[1:])] == [1, 1]


@pytest.mark.parametrize("others", [0, 1], ids=["nobody", "another process"])
def test_a_lost_answer_is_settled_for_all_of_the_write(gate: Gate, others: int) -> None:
    def lose(op: Op, reply: Reply) -> Reply:
        if isinstance(op, Update) and len(gate.writes) == 2:
            for _ in range(others):
                gate.others.append(S, [Event(type="Other")])
            raise Lost("the test's fault")
        return reply

    gate.meddle = lose
    told = gate.meet([[measured(k)] for k in range(4)])

    assert [each.first for each in told if isinstance(each, Appended)] == [0, 1, 2, 3]
    assert gate.read()[:4] == [measured(k).data for k in range(4)]
    assert len(gate.read()) == 4 + others


def test_what_nothing_can_tell_any_more_is_undetermined_for_each(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(op: Op, reply: Reply) -> Reply:
        if isinstance(op, Update) and len(gate.writes) == 2:
            gate.others.append(S, [Event(type="Other")])
            gate.others.prune(S, 4)
            raise Lost("the test's fault")
        return reply

    gate.meddle = lose
    first, second, third = gate.meet([[measured(k)] for k in range(3)])

    assert isinstance(first, Appended)
    assert (second.first, third.first) == (1, 2)  # type: ignore[union-attr]
    monkeypatch.setattr(JoinedAppends, "try_append", lambda *_: second)
    with pytest.raises(OutcomeUndetermined):
        gate.append(S, [measured(1)])


def test_another_process_in_between_is_no_conflict(gate: Gate) -> None:
    faster = iter([True])

    def overtake(op: Op, reply: Reply) -> Reply:
        if isinstance(op, Put) and next(faster, False):
            gate.others.append(S, [Event(type="Other")])
        return reply

    gate.meddle = overtake
    told = gate.meet([[measured(k)] for k in range(3)])

    assert [each.first for each in told if isinstance(each, Appended)] == [0, 2, 3]


def test_a_stream_that_was_deleted_is_a_conflict_of_each(gate: Gate) -> None:
    gate.meddle = lambda op, reply: (gate.others.delete(S), reply)[1] if isinstance(op, Put) else reply

    told = gate.meet([[measured(k)] for k in range(3)])

    assert isinstance(told[0], Appended)
    assert [each.deleted for each in told[1:] if isinstance(each, Conflict)] == [True, True]
    with pytest.raises(StreamDeleted, match=S):
        gate.append(S, [measured(1)])


def test_a_failure_of_the_store_is_told_each_of_them_as_an_error_of_its_own(gate: Gate) -> None:
    def fail(op: Op, reply: Reply) -> Reply:
        if isinstance(op, Update):
            raise MissingTable("streams")
        return reply

    gate.meddle = fail
    first, *others = gate.meet([[measured(k)] for k in range(4)])

    assert isinstance(first, Appended)
    assert [type(each) for each in others] == [MissingTable] * 3
    assert len({id(each) for each in others}) == 3, "an error carries the stack of whoever raises it"
    gate.meddle = lambda _, reply: reply
    assert gate.append(S, [measured(5)]).first >= 1, "the next call begins anew"


def test_one_who_leads_and_is_interrupted_leaves_nobody_waiting(gate: Gate) -> None:
    def interrupt(op: Op, reply: Reply) -> Reply:
        if isinstance(op, Update) and len(gate.writes) == 2:
            raise Interrupted
        return reply

    gate.meddle = interrupt
    told = gate.meet([[measured(k)] for k in range(3)])

    assert isinstance(told[0], Appended)
    assert isinstance(told[1], Interrupted)
    assert isinstance(told[2], Unavailable)
    assert told[2].maybe_applied
    assert gate.append(S, [measured(5)]).version == 4


def test_one_who_gives_up_waiting_is_not_written_for_and_does_not_lead() -> None:
    line = Line()
    leader, second, third = (waiting(k) for k in range(3))
    assert line.join(leader)
    assert not line.join(second)
    assert not line.join(third)
    assert line.take() == [leader, second, third]
    assert not line.give_up(second)
    fourth, fifth = waiting(4), waiting(5)
    line.join(fourth)
    line.join(fifth)
    assert line.give_up(fourth)
    assert line.leave() is fifth
    assert line.take() == [fifth]
    assert line.leave() is None
    assert line.join(second), "whoever comes next leads"


def test_one_who_is_interrupted_where_it_was_to_lead_lets_the_next_lead(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupting:
        """A turn that is interrupted when it comes."""

        def __init__(self) -> None:
            self.turn = turn()
            self.set, self.is_set = self.turn.set, self.turn.is_set

        def wait(self) -> object:
            self.turn.wait()
            raise Interrupted

    def made(batch: Batch) -> Waiting:
        is_second = batch.events[0].data.data == measured(1).data
        own: Turn = Interrupting() if is_second else turn()
        return Waiting(batch=batch, turn=own)

    monkeypatch.setattr(joined, "Waiting", made)

    first, second, third = gate.meet([[measured(k)] for k in range(3)])

    assert isinstance(first, Appended)
    assert isinstance(second, Interrupted)
    assert isinstance(third, Appended)
    assert gate.read() == [measured(0).data, measured(2).data]


def test_one_who_is_interrupted_behind_another_who_waits_wakes_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the one before it would write beside the one who leads, and two leaders would hand on one line."""
    gate, made = Gate(), list[Waiting]()
    second_waits = threading.Event()

    class Noted:
        def __init__(self, *, interrupted: bool) -> None:
            self.turn, self.interrupted = turn(), interrupted
            self.set, self.is_set = self.turn.set, self.turn.is_set

        def wait(self) -> object:
            if self.interrupted:
                raise Interrupted
            second_waits.set()
            return self.turn.wait()

    def waits(batch: Batch) -> Waiting:
        made.append(Waiting(batch=batch, turn=Noted(interrupted=len(made) == 2)))
        return made[-1]

    monkeypatch.setattr(joined, "Waiting", waits)
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(gate.append, S, [measured(0)])
        assert gate.reached.wait(120)
        second = callers.submit(gate.append, S, [measured(1)])
        assert second_waits.wait(120)
        with pytest.raises(Interrupted):
            gate.append(S, [measured(2)])
        woken = made[1].turn.is_set()
        gate.opened.set()
        assert (first.result().version, second.result().version) == (1, 2)

    assert not woken
    assert gate.read() == [measured(0).data, measured(1).data]


def waiting(number: int, size: int = 8) -> Waiting:
    plain = replace(memory_streams(), codec=BodyCodec(compress=False))
    return Waiting(batch=plain.batch(S, [Event(type="E", data=bytes(size - 1))]))


def test_one_write_takes_so_many_bytes_and_appends_and_keeps_the_order() -> None:
    line = Line()
    sizes = [10, JOINED_BYTES - 10, 1, JOINED_BYTES + 1, *[1] * JOINED_APPENDS, 2]
    for number, size in enumerate(sizes):
        line.join(waiting(number, size))

    taken = []
    while line.leave() is not None:
        taken.append([each.size for each in line.take()])

    assert taken == [sizes[:2], sizes[2:3], sizes[3:4], sizes[4 : 4 + JOINED_APPENDS], [2]]


def test_what_is_too_much_together_is_written_one_by_one(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream has room for one more."""
    monkeypatch.setattr("epochal.pages.attempts.MAX_VERSION", 2)

    first, second, third = gate.meet([[measured(k)] for k in range(3)])

    assert isinstance(first, Appended)
    assert isinstance(second, Appended)
    assert isinstance(third, InvalidInput)
    assert gate.read() == [measured(0).data, measured(1).data]


def test_what_is_wrong_with_one_is_refused_before_it_waits(gate: Gate) -> None:
    for stream, events in (("no dash!", [measured(1)]), (S, []), (S, ["x"])):
        with pytest.raises(InvalidInput):
            gate.append(stream, events)  # type: ignore[arg-type]
    assert gate.ops == []


def test_one_alone_is_told_what_a_plain_append_is() -> None:
    together, plain = JoinedAppends(memory_streams()), memory_streams()
    for number in range(3):
        mine, others = together.append(S, [measured(number)]), plain.append(S, [measured(number)])
        assert (mine.first, mine.version, mine.capacity.write) == (others.first, others.version, 1.0)


def test_many_threads_append_each_its_own_once() -> None:
    together = JoinedAppends(memory_streams())

    def append(number: int) -> list[int]:
        return [together.append(f"Sensor-{k % 2}", [measured(100 * number + k)]).first for k in range(20)]

    with ThreadPoolExecutor(8) as callers:
        firsts = list(callers.map(append, range(8)))

    for stream in ("Sensor-0", "Sensor-1"):
        events = [event.data for event in together._streams.read(stream)]  # noqa: SLF001  it is the test's
        own = [100 * number + k for number in range(8) for k in range(20) if f"Sensor-{k % 2}" == stream]
        assert sorted(events) == sorted(measured(each).data for each in own)  # type: ignore[type-var]
    assert all(each[k] < each[k + 2] for each in firsts for k in range(18)), "each caller's own in its order"
    assert together._lines == {}  # noqa: SLF001  nothing is left behind


def test_many_tasks_append_each_its_own_once() -> None:
    streams = memory_streams()

    def turns(op: Op) -> Reply:
        wait(asyncio.sleep(0))
        return streams.driver.execute(op)

    joined = JoinedAppends(replace(streams, driver=replace(streams.driver, execute=turns)))
    together = AsyncJoinedAppends(joined)

    async def append(number: int) -> list[int]:
        return [(await together.append(S, [measured(100 * number + k)])).first for k in range(20)]

    async def live() -> list[list[int]]:
        return await asyncio.gather(*map(append, range(8)))

    firsts = asyncio.run(live())
    events = [event.data for event in streams.read(S)]
    assert [[events[first] for first in each] for each in firsts] == [
        [measured(100 * number + k).data for k in range(20)] for number in range(8)
    ]
    assert len(events) == 160
    assert streams.driver.meter.requests < 100, "they go out together"
    assert joined._lines == {}  # noqa: SLF001  nothing is left behind


def test_the_ends_of_the_streams_written_last_are_remembered_and_of_others_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joined, "TOKENS", 2)
    gate = Gate()
    gate.opened.set()

    def requests(stream: str) -> int:
        gate.ops.clear()
        gate.append(stream, [measured(1)])
        return len(gate.ops)

    for stream in ("Sensor-1", "Sensor-2", "Sensor-3"):
        requests(stream)
    assert [requests(stream) for stream in ("Sensor-3", "Sensor-2")] == [1, 1]
    assert requests("Sensor-1") > 1
    assert (requests("Sensor-2"), requests("Sensor-1")) == (1, 1)
    assert requests("Sensor-3") > 1


def test_an_event_with_an_id_is_appended_once(gate: Gate) -> None:
    gate.opened.set()
    if isinstance(gate, Looped):
        gate.go_on.set()
    event = replace(measured(1), id="1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11")
    first, second = gate.append(S, [event]), gate.append(S, [event])
    assert (first.first, second.first, second.replayed) == (0, 0, True)
    assert gate.read() == [event.data]


def test_an_error_says_what_it_came_from_to_each_that_it_is_told(gate: Gate) -> None:
    cause = OSError("no route")

    def fail(op: Op, reply: Reply) -> Reply:
        if isinstance(op, Put | Update):
            raise MissingTable("streams") from cause
        return reply

    gate.meddle = fail
    told = gate.meet([[measured(k)] for k in range(3)])
    assert [each.__cause__ for each in told if isinstance(each, MissingTable)] == [cause] * 3
