"""Appends at any version to one stream: those of one process take turns, those of several give way to each other."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from uuid import NAMESPACE_OID, uuid5

import pytest

from epochal.aio.stores import AsyncStreams
from epochal.contrib.equinox import memory_tips
from epochal.errors import ConflictError, InvalidInput, StreamDeleted
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, ExpectedVersion
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put, Reply, Transact, Update
from epochal.store import queueing
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams, pause
from tests.support.counted_stores import EACH, SOON, WRITERS, CountedStores, at_once

pytestmark = pytest.mark.usefixtures("no_queue_stays")


S = "Sensor-1"


def event(data: bytes = b"1", name: str | None = None) -> Event:
    """An event; if it has a name, its id is made of that."""
    return Event(type="Measured", data=data, id=None if name is None else str(uuid5(NAMESPACE_OID, name)))


@dataclass(eq=False)
class World(CountedStores):
    """Stores in memory that count requests and refusals.

    Attributes:
        pauses: seconds of each pause between attempts.
    """

    pauses: list[float] = field(default_factory=list)

    @property
    def streams(self) -> Streams:
        driver = Driver(execute=self.execute, meter=Meter(), sleep=self.pauses.append)
        return replace(self.plain, driver=driver).streams

    def before_writes(self, act: Callable[[], object]) -> None:
        """Let another process act just before each write."""
        self.before = lambda op: act() if isinstance(op, Put | Update) else None

    def stored(self) -> list[object]:
        return [event.data for event in self.plain.streams.read(S)]


@pytest.fixture
def world() -> World:
    return World()


def test_appends_of_one_process_do_not_refuse_each_other_and_take_hardly_more_than_a_request(
    world: World,
) -> None:
    places: list[int] = []

    def work(number: int) -> None:
        for turn in range(EACH):
            appended = world.streams.append(S, [event(b"%d" % (100 * number + turn))])
            assert appended.capacity.write == 1
            places.append(appended.first)

    at_once(work)

    assert not world.refusals
    assert world.requests <= 2 * WRITERS + WRITERS * EACH
    assert sorted(places) == list(range(WRITERS * EACH))
    assert len(set(world.stored())) == WRITERS * EACH


@pytest.mark.parametrize("expected", [ANY, STREAM_EXISTS], ids=str)
def test_appends_with_keys_with_ids_and_of_unfolds_take_turns_and_are_made_once(
    world: World, expected: ExpectedVersion
) -> None:
    world.plain.streams.append(S, [event(b"0")])

    def work(number: int) -> None:
        for turn in range(EACH):
            name = f"{number % 3}-{turn}"
            world.streams.append(S, [event(name.encode())], expected=expected, idempotency_key=name)
            world.streams.append(S, [event(name.encode(), name)], expected=expected)
            world.streams.append(
                S, [], unfolds=[Unfold(type="Latest", data=name.encode())], expected=expected
            )

    at_once(work)

    names = [f"{number}-{turn}".encode() for number in range(3) for turn in range(EACH)]
    assert Counter(world.stored()[1:]) == Counter(names * 2)


def test_writers_on_tips_take_turns_too() -> None:
    streams = memory_tips()

    at_once(lambda _: [streams.append(S, [event()]) for _ in range(EACH)])

    assert sum(1 for _ in streams.read(S)) == WRITERS * EACH


def test_an_append_in_a_queue_notices_what_another_process_has_appended(world: World) -> None:
    other = replace(world.plain, driver=Driver(execute=world.plain.driver.execute, meter=Meter())).streams
    left = iter(range(5))

    def faster() -> None:
        if next(left, None) is not None:
            other.append(S, [event(b"another")])

    world.before_writes(faster)
    at_once(lambda _: [world.streams.append(S, [event()]) for _ in range(EACH)])

    assert len(world.stored()) == WRITERS * EACH + 5
    assert 0 < world.refusals <= 5


def test_unfolds_alone_are_written_in_a_queue_although_the_answer_was_lost_and_the_stream_moved(
    world: World,
) -> None:
    """Nobody can tell whether the first try was applied; at any version they may be written again."""
    writes = 0

    def execute(op: Op) -> Reply:
        nonlocal writes
        if not isinstance(op, Put | Update):
            return world.execute(op)
        writes += 1
        if writes == 1:
            while not any(queue.waiting for queue in [*queueing._QUEUES.values()]):  # noqa: SLF001  it shows nowhere else
                pause(0.001)
        elif writes == 2:
            world.execute(op)
            world.plain.streams.append(S, [event(b"2")])
            raise Lost("cut off")
        return world.execute(op)

    driver = Driver(execute=execute, meter=Meter(), sleep=world.pauses.append)
    streams = replace(world.plain, driver=driver).streams
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(streams.append, S, [event(b"1")])
        while not writes:
            pause(0.001)
        second = pool.submit(streams.append, S, [], unfolds=[Unfold(type="State", data=b"x")])
        assert (first.result(SOON).version, second.result(SOON).version) == (1, 2)
    state = world.plain.streams.load(S)
    assert state is not None
    assert [unfold.data for unfold in state.unfolds] == [b"x"]
    assert world.stored() == [b"1", b"2"]


def test_an_append_in_a_queue_notices_that_the_stream_was_deleted(world: World) -> None:
    world.streams.append(S, [event()])
    ends: list[type[Exception]] = []

    def work(number: int) -> None:
        for _ in range(EACH):
            try:
                if number:
                    world.streams.append(S, [event()])
                else:
                    world.streams.delete(S)
            except (StreamDeleted, ConflictError) as error:
                ends.append(type(error))

    at_once(work)

    with pytest.raises(StreamDeleted):
        world.streams.append(S, [event()])
    assert ends


def test_an_invalid_append_holds_nobody_up(world: World) -> None:
    def work(number: int) -> None:
        for _ in range(EACH):
            if number % 2:
                with pytest.raises(InvalidInput):
                    world.streams.append(S, [Event(type="", data=b"")])
            else:
                world.streams.append(S, [event()])

    at_once(work)

    assert len(world.stored()) == WRITERS // 2 * EACH


def test_an_append_within_another_ones_request_does_not_wait_for_it(world: World) -> None:
    def faster() -> None:
        world.before = lambda _: None
        world.streams.append(S, [event(b"inner")])

    world.before_writes(faster)
    world.streams.append(S, [event(b"outer")])

    assert world.stored() == [b"inner", b"outer"]


def test_appends_of_tasks_take_turns(world: World) -> None:
    streams = AsyncStreams(world.streams)

    async def work() -> None:
        for _ in range(EACH):
            await streams.append(S, [event()])

    async def main() -> None:
        await asyncio.wait_for(asyncio.gather(*(work() for _ in range(WRITERS))), SOON)

    asyncio.run(main())

    assert len(world.stored()) == WRITERS * EACH
    assert not world.refusals


@pytest.mark.parametrize("name", [None, "mine"], ids=["without ids", "with ids"])
def test_an_append_that_other_processes_refuse_again_pauses_and_reads_the_stream_again(
    world: World, name: str | None
) -> None:
    left = iter(range(4))

    def faster() -> None:
        if next(left, None) is not None:
            memory = replace(world.plain, driver=Driver(execute=world.plain.driver.execute, meter=Meter()))
            memory.streams.append(S, [event(b"another")])

    world.before_writes(faster)
    appended = world.streams.append(S, [event(b"mine", name)])

    assert appended.first == 4
    assert world.stored() == [b"another"] * 4 + [b"mine"]
    assert world.refusals == 4
    assert len(world.pauses) == 3
    assert world.requests == 1 + 5 + 3, "it reads once, writes five times, and reads after each pause"


def writes_stream(op: Op) -> bool:
    """Whether an operation writes to the stream, and not to a key's record alone."""
    writes = op.writes if isinstance(op, Transact) else (op,)
    items = [write.item if isinstance(write, Put) else getattr(write, "key", {}) for write in writes]
    return isinstance(op, Put | Update | Transact) and {"S": S} in [item.get("p") for item in items]


LAYOUTS = {"pages": memory_streams, "tips": memory_tips}
KEYS = {"plain": "mine", "with a time": "018f2f9a-0000-7000-8000-000000000001"}


@dataclass(eq=False)
class Contended:
    """A stream of two events, and a process that is refused: another one appends before each of its first writes.

    Attributes:
        meanwhile: what another process does during each pause.
        left: how many writes are refused.
    """

    layout: str
    meanwhile: Callable[[Streams], object] = lambda _: None
    left: int = 4
    waited: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.others = LAYOUTS[self.layout]()
        for _ in range(2):
            self.others.append(S, [event(b"before")])

    def execute(self, op: Op) -> Reply:
        if self.left and writes_stream(op):
            self.left -= 1
            self.others.append(S, [event(b"another")])
        return self.others.driver.execute(op)

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.meanwhile(self.others)

    @property
    def streams(self) -> Streams:
        return self.others.on(Driver(execute=self.execute, meter=Meter(), sleep=self.sleep))

    def stored(self) -> list[object]:
        return [event.data for event in self.others.read(S)]


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("expected", [ANY, STREAM_EXISTS], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_append_under_a_key_that_other_processes_refuse_again_pauses_too(
    layout: str, expected: ExpectedVersion, key: str
) -> None:
    contended = Contended(layout)

    appended = contended.streams.append(S, [event(b"mine")], expected=expected, idempotency_key=key)

    assert (appended.first, appended.replayed) == (6, False)
    assert contended.stored() == [b"before"] * 2 + [b"another"] * 4 + [b"mine"]
    assert len(contended.waited) == 3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_unfolds_alone_under_a_key_that_other_processes_refuse_again_pause_too(layout: str) -> None:
    contended = Contended(layout)

    appended = contended.streams.append(
        S, [], unfolds=[Unfold(type="Latest", data=b"1")], idempotency_key="mine"
    )

    assert (appended.version, appended.replayed) == (6, False)
    assert len(contended.waited) == 3


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_append_that_another_process_makes_during_a_pause_under_the_same_key_is_found(
    layout: str, key: str
) -> None:
    def repeat(others: Streams) -> None:
        others.append(S, [event(b"mine")], idempotency_key=key)
        others.append(S, [event(b"later")])

    contended = Contended(layout, repeat, left=2)

    appended = contended.streams.append(S, [event(b"mine")], idempotency_key=key)

    assert (appended.first, appended.replayed) == (4, True)
    assert contended.stored() == [b"before"] * 2 + [b"another"] * 2 + [b"mine", b"later"]
    assert len(contended.waited) == 1


@pytest.mark.parametrize("events", [[event(b"mine")], []], ids=["events", "unfolds alone"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_stream_that_is_deleted_during_a_pause_takes_nothing_under_a_key(
    layout: str, events: list[Event]
) -> None:
    contended = Contended(layout, lambda others: others.delete(S), left=2)

    with pytest.raises(StreamDeleted):
        contended.streams.append(S, events, unfolds=[], idempotency_key="mine")
    assert len(contended.waited) == 1


def test_ids_that_another_process_appends_during_a_pause_are_found(world: World) -> None:
    other = replace(world.plain, driver=Driver(execute=world.plain.driver.execute, meter=Meter())).streams
    left = iter(range(2))

    def faster() -> None:
        if next(left, None) is not None:
            other.append(S, [event(b"another")])

    class Pauses(list[float]):
        def append(self, seconds: float) -> None:
            super().append(seconds)
            other.append(S, [event(b"mine", "mine")])

    world.before_writes(faster)
    world.pauses = Pauses()
    appended = world.streams.append(S, [event(b"mine", "mine")])

    assert appended.replayed
    assert appended.first == 2
    assert world.stored() == [b"another", b"another", b"mine"]


def test_a_stream_that_is_deleted_during_a_pause_takes_no_event(world: World) -> None:
    other = replace(world.plain, driver=Driver(execute=world.plain.driver.execute, meter=Meter())).streams
    left = iter(range(2))

    def faster() -> None:
        if next(left, None) is not None:
            other.append(S, [event(b"another")])

    class Pauses(list[float]):
        def append(self, seconds: float) -> None:
            super().append(seconds)
            other.delete(S)

    world.before_writes(faster)
    world.pauses = Pauses()
    with pytest.raises(StreamDeleted):
        world.streams.append(S, [event()])


def test_an_append_that_expects_a_version_does_not_queue() -> None:
    streams = memory_streams()
    token = streams.append(S, [event()], expected=NO_STREAM).token
    with queueing.QueuePlace(streams.driver, (streams.table, S)), ThreadPoolExecutor(1) as pool:
        pool.submit(streams.append, S, [event()], expected=token).result(SOON)
