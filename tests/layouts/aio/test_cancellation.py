"""Whatever writes is cancelled at each of its awaits in turn: what became of it is told, or that nobody knows.

Every request takes two turns of the event loop, one before it is made and one before its answer comes, and nothing else
waits. So a task that is cancelled after n turns, for every n up to its end, has been cancelled at every await there is.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import aiohttp
import pytest

from epochal import (
    Appended,
    Decider,
    Deciders,
    Decisions,
    Delivery,
    Event,
    FeedEvent,
    OutcomeUndetermined,
    Query,
    QueryItem,
    StreamAppend,
    projection,
)
from epochal.aio.bridge import WriteCancelled, cancelled_write, wait
from epochal.aio.stores import (
    AsyncDeciders,
    AsyncJoinedAppends,
    AsyncPlace,
    AsyncReadModels,
    AsyncStreams,
    AsyncTaggedEvents,
    handle_all,
)
from epochal.contrib.equinox import memory_tips
from epochal.contrib.event_store_adapter import memory_aggregates
from epochal.contrib.event_store_adapter.aio import AsyncAggregates
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.sekiban import memory_dcb_events, memory_projection_states
from epochal.contrib.sekiban.aio import AsyncProjectionStates
from epochal.contrib.subjects.aio import AsyncSubjects
from epochal.contrib.subjects.testing import memory_subjects
from epochal.deciders.codecs import EventCodec
from epochal.errors import Misconfigured
from epochal.model.bodies import Claim
from epochal.plan.failures import Lost
from epochal.plan.ops import Delete, Op, Put, Reply, Transact, Update
from epochal.read_models.documents import Documents
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.joined import JoinedAppends
from epochal.store.tagged import TaggedStore
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import MemoryBodies, memory_streams, memory_tagged_events
from tests.support.async_deciders import async_deciders, async_decisions

WRITES = (Put, Update, Delete, Transact)
OPENED = Event(type="Opened")
CODEC = EventCodec[Event](encode=lambda event: event, decode=lambda stored: Event(type=stored.type))
DECIDER = Decider[Event, int, Event](
    initial=int, evolve=lambda count, _: count + 1, decide=lambda event, _: [event]
)
ACCOUNT = aggregate_id("account", "1")
COURSE = Query(items=(QueryItem(tags=frozenset({"course:1"})),))
TAKEN = projection(tags=["course:1"], on={"Taken": lambda count, _: count + 1}, initial=0)


@dataclass
class Attempt:
    """One call, and how often its effect is in the store."""

    call: Callable[[], Coroutine[Any, Any, object]]
    times: Callable[[], int]


class Turning(MemoryBodies):
    """Bodies each of which takes a turn of the loop to fetch."""

    def get(self, claim: Claim) -> bytes:
        wait(asyncio.sleep(0))
        return super().get(claim)


@dataclass
class Requests:
    """Turns of the loop around each request; the answers of the first `lost` writes are lost."""

    lost: int = 0
    writes: int = 0

    def on(self, driver: Driver) -> Driver:
        at_once = driver.execute

        def execute(op: Op) -> Reply:
            wait(asyncio.sleep(0))
            reply = at_once(op)
            wait(asyncio.sleep(0))
            if isinstance(op, WRITES):
                self.writes += 1
                if self.writes <= self.lost:
                    raise Lost("the test's fault")
            return reply

        return replace(driver, execute=execute, sleep=lambda _: wait(asyncio.sleep(0)))


def append_to(opened: Callable[[], Any], lost: int = 0, key: str | None = None) -> Attempt:
    store = opened()
    streams = AsyncStreams(replace(store, driver=Requests(lost=lost).on(store.driver)))
    return Attempt(
        lambda: streams.append("Door-1", [OPENED], idempotency_key=key),
        lambda: len(list(store.read("Door-1"))),
    )


def append_to_several() -> Attempt:
    store = memory_streams()
    streams = AsyncStreams(replace(store, driver=Requests(lost=1).on(store.driver)))
    both = [StreamAppend(stream=name, events=[OPENED]) for name in ("Door-1", "Door-2")]

    def times() -> int:
        one, two = (len(list(store.read(each.stream))) for each in both)
        assert one == two, "all or nothing"
        return one

    return Attempt(lambda: streams.append_all(both), times)


def decide(opened: Callable[[], Any]) -> Attempt:
    """Another is faster the first time, so it is decided twice."""
    store = opened()
    deciders = Deciders(
        streams=replace(store, driver=Requests().on(store.driver)), decider=DECIDER, codec=CODEC
    )
    asked: list[int] = []

    def decision(count: int) -> Sequence[Event]:
        if not asked:
            store.append("Door-1", [Event(type="Faster")])
        asked.append(count)
        return [OPENED]

    return Attempt(
        lambda: async_deciders(deciders).handle("Door-1", decide=decision),
        lambda: [event.type for event in store.read("Door-1")].count("Opened"),
    )


def decide_on_several() -> Attempt:
    store = memory_streams()
    requests = replace(store, driver=Requests().on(store.driver))
    doors = AsyncDeciders(streams=AsyncStreams(requests), decider=DECIDER, codec=CODEC)
    return Attempt(
        lambda: handle_all((doors.on("Door-1"), doors.on("Door-2")), lambda *_: ([OPENED], [])),
        lambda: len(list(store.read("Door-1"))),
    )


def append_tagged(opened: Callable[[], TaggedStore], lost: int) -> Attempt:
    store = opened()
    tagged = AsyncTaggedEvents(replace(store, driver=Requests(lost=lost).on(store.driver)))
    event = Event(type="Taken", tags=["course:1", "student:7"])
    return Attempt(lambda: tagged.append([event], fail_if=COURSE), lambda: len(store.read(COURSE).events))


def decide_tagged() -> Attempt:
    store = memory_tagged_events()
    decisions = async_decisions(Decisions(store=replace(store, driver=Requests().on(store.driver))))

    def take(_: Mapping[str, Any]) -> Sequence[Event]:
        return [Event(type="Taken", tags=["course:1"])]

    return Attempt(lambda: decisions.handle({"taken": TAKEN}, take), lambda: len(store.read(COURSE).events))


def append_to_aggregate() -> Attempt:
    store = memory_aggregates()
    store.append(ACCOUNT, [AggregateEvent(type="Opened", data=b"{}")], snapshot=b"{}")
    awaited = AsyncAggregates(replace(store, driver=Requests(lost=1).on(store.driver)))
    paid = AggregateEvent(type="Paid", data=b"{}")
    return Attempt(
        lambda: awaited.append(ACCOUNT, [paid]),
        lambda: [event.type for event in store.events_after(ACCOUNT)].count("Paid"),
    )


def fold() -> Attempt:
    store = MemoryStore().read_models
    model = AsyncReadModels(replace(store, driver=Requests(lost=1).on(store.driver))).open("counts", 1)
    event = FeedEvent(stream="Door-1", index=0, type="Opened")
    delivery = Delivery(group="counts", partition=30_000, stream="Door-1", events=(event,))

    def count(documents: Documents, event: FeedEvent) -> None:
        documents.put(event.type, documents.get(event.type, 0) + 1)

    return Attempt(lambda: model.apply(delivery, count), lambda: store.open("counts", 1).get("Opened", 0))


def save() -> Attempt:
    store = memory_projection_states()
    states = AsyncProjectionStates(replace(store, driver=Requests().on(store.driver)))
    return Attempt(
        lambda: states.save("Totals", "v1", [b"one", b"two"], events_processed=1, last_sortable_id="0" * 30),
        lambda: len(store.list("Totals")),
    )


def forget() -> Attempt:
    store = memory_subjects()
    subjects = AsyncSubjects(replace(store, driver=Requests(lost=1).on(store.driver)))
    return Attempt(lambda: subjects.forget("ada"), lambda: int(store.is_forgotten("ada")))


def prune() -> Attempt:
    store = memory_streams()
    store.append("Door-1", [OPENED] * 3)
    streams = AsyncStreams(replace(store, driver=Requests().on(store.driver)))
    return Attempt(lambda: streams.delete("Door-1"), lambda: int(not list(store.read("Door-1"))))


ATTEMPTS: dict[str, Callable[[], Attempt]] = {
    "append to pages": lambda: append_to(memory_streams),
    "append to pages, answers lost": lambda: append_to(memory_streams, lost=2),
    "append under a key": lambda: append_to(memory_streams, lost=1, key="k"),
    "append to tips": lambda: append_to(memory_tips, lost=1),
    "append to several": append_to_several,
    "decide on pages": lambda: decide(memory_streams),
    "decide on tips": lambda: decide(memory_tips),
    "decide on several": decide_on_several,
    "append of tagged events": lambda: append_tagged(memory_tagged_events, 1),
    "append to Sekiban's tables": lambda: append_tagged(memory_dcb_events, 1),
    "decide on tagged events": decide_tagged,
    "append to an aggregate": append_to_aggregate,
    "fold into a read model": fold,
    "save a state": save,
    "forget": forget,
    "delete": prune,
}


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


Cancel = Callable[["asyncio.Task[object]"], Awaitable[None]]


async def once(task: asyncio.Task[object]) -> None:
    task.cancel()


async def twice(task: asyncio.Task[object]) -> None:
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()


async def all_tasks(task: asyncio.Task[object]) -> None:
    """As `asyncio.run` does when its program has ended."""
    assert task is not asyncio.current_task()
    for each in asyncio.all_tasks() - {asyncio.current_task()}:
        each.cancel()


def check(told: WriteCancelled | None, times: int, cancel: Cancel) -> None:
    """What was told against what is there."""
    if told is None:
        assert times == 0, "it says that nothing was being written"
    elif not told.known:
        assert cancel is not once, "who is cancelled once is told"
        assert told.outcome is None
    elif isinstance(told.outcome, Exception):
        assert isinstance(told.outcome, OutcomeUndetermined) or times == 0
    else:
        assert times == 1
    assert times in (0, 1)


async def cancelled_after(count: int, attempt: Attempt, cancel: Cancel) -> bool:
    """Whether the call had ended before."""
    task: asyncio.Task[object] = asyncio.create_task(attempt.call())
    await turns(count)
    if task.done():
        await task
        return True
    await cancel(task)
    try:
        await task
    except asyncio.CancelledError as error:
        told = cancelled_write(error)
    else:
        pytest.fail("a cancellation was lost")
    await quiet()
    check(told, attempt.times(), cancel)
    return False


async def quiet() -> None:
    """Until nothing but the test is under way, which a store that is cancelled must come to by itself."""
    for _ in range(200):
        if asyncio.all_tasks() == {asyncio.current_task()}:
            return
        await asyncio.sleep(0)
    pytest.fail("something is left under way")


def complaints_of(live: Callable[[], Coroutine[Any, Any, bool]]) -> tuple[bool, list[Any]]:
    """What asyncio complains of: errors that nobody looked at, tasks that nobody waited for."""
    complaints: list[Any] = []
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(lambda _, context: complaints.append(context))
        ended = runner.run(live())
        gc.collect(0)
    return ended, complaints


def at_every_await(cancelled: Callable[[int], Coroutine[Any, Any, bool]]) -> None:
    """Run what is cancelled after n turns, for every n, until it ends before."""
    for count in range(200):
        ended, complaints = complaints_of(partial(cancelled, count))
        assert complaints == []
        if ended:
            assert count > 3, "it has that many awaits"
            return
    pytest.fail("it never ends")


@pytest.mark.slow
@pytest.mark.parametrize("cancel", [once, twice, all_tasks])
@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_write_that_is_cancelled_at_any_await_is_resolved_or_said_to_be_unknown(
    name: str, cancel: Cancel
) -> None:
    at_every_await(lambda count: cancelled_after(count, ATTEMPTS[name](), cancel))


async def joined_cancelled_after(count: int, which: int, cancel: Cancel) -> bool:
    store = memory_streams()
    requests = Requests(lost=1).on(store.driver)
    joined = JoinedAppends(replace(store, driver=requests))
    together = AsyncJoinedAppends(joined)
    events = [Event(type=f"By{caller}") for caller in range(4)]

    async def append(event: Event) -> object:
        try:
            return await together.append("Sensor-1", [event])
        except asyncio.CancelledError as error:
            return error  # `gather` would make another, without its cause

    tasks = [asyncio.create_task(append(event)) for event in events]
    await turns(count)
    ended = tasks[which].done()
    if not ended:
        await cancel(tasks[which])
    async with asyncio.timeout(10):  # whoever waits for nobody would wait for ever
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    await quiet()
    stored = [event.type for event in store.read("Sensor-1")]
    for caller, (event, answer) in enumerate(zip(events, answers, strict=True)):
        if isinstance(answer, Appended):
            assert stored[answer.first] == event.type
            assert stored.count(event.type) == 1
        else:
            assert isinstance(answer, asyncio.CancelledError)
            assert cancel is all_tasks or caller == which, "others are not touched by it"
            check(cancelled_write(answer), stored.count(event.type), cancel)
    others = [each for each in stored if each != events[which].type]
    assert others == sorted(others), "they keep their order"
    assert isinstance(await together.append("Sensor-1", [OPENED]), Appended), "the line goes on"
    assert joined._lines == {}  # noqa: SLF001  nobody is waited for
    return ended


@pytest.mark.slow
@pytest.mark.parametrize("cancel", [once, twice, all_tasks])
@pytest.mark.parametrize("which", [0, 2], ids=["who writes", "who waits"])
def test_of_appends_that_are_joined_one_may_be_cancelled_at_any_await_and_the_others_are_answered(
    which: int, cancel: Cancel
) -> None:
    at_every_await(lambda count: joined_cancelled_after(count, which, cancel))


async def timed_out_after(count: int, attempt: Attempt) -> bool:
    ended = False

    async def call() -> object:
        nonlocal ended
        async with asyncio.timeout(None) as limit:
            limits.append(limit)
            answer = await attempt.call()
            ended = True
            return answer

    limits: list[asyncio.Timeout] = []
    task = asyncio.create_task(call())
    await turns(count + 1)
    if ended:
        await task
        return True
    limits[0].reschedule(asyncio.get_running_loop().time())
    try:
        await task
    except TimeoutError as error:
        check(cancelled_write(error), attempt.times(), once)
    else:
        assert ended, "the timeout came too late"
    await quiet()
    return False


@pytest.mark.parametrize("name", ["append to pages, answers lost", "decide on tips", "save a state"])
def test_a_timeout_at_any_await_is_a_timeout_and_tells_what_became_of_the_write(name: str) -> None:
    at_every_await(lambda count: timed_out_after(count, ATTEMPTS[name]()))


async def group_fails_after(count: int, attempt: Attempt) -> bool:
    told: list[WriteCancelled | None] = []
    answered: list[object] = []

    async def call() -> None:
        try:
            answered.append(await attempt.call())
        except asyncio.CancelledError as error:
            told.append(cancelled_write(error))
            raise

    async def fail() -> None:
        await turns(count)
        raise LookupError("the test's fault")

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(call())
            group.create_task(fail())

    with pytest.raises(ExceptionGroup) as raised:
        await both()
    assert [type(error) for error in raised.value.exceptions] == [LookupError]
    assert asyncio.all_tasks() == {asyncio.current_task()}, "a group ends when its writes have"
    if not answered and told:
        check(told[0], attempt.times(), once)
    assert attempt.times() == len(answered) or told
    return bool(answered)


@pytest.mark.parametrize("name", ["append to pages, answers lost", "decide on several", "forget"])
def test_a_group_of_tasks_one_of_which_fails_ends_when_its_writes_have_and_they_tell_it(name: str) -> None:
    at_every_await(lambda count: group_fails_after(count, ATTEMPTS[name]()))


async def read_cancelled_after(count: int, streams: AsyncStreams) -> bool:
    async def read() -> object:
        return [event.index async for event in streams.read("Door-1")]

    task: asyncio.Task[object] = asyncio.create_task(read())
    await turns(count)
    if task.done():
        assert await task == list(range(30))
        return True
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await task
    assert cancelled_write(cancelled.value) is None
    await quiet()
    return False


def test_a_read_that_is_cancelled_at_any_await_leaves_nothing_under_way() -> None:
    """Bodies are in the bucket, and fetched side by side, here in turns of the loop."""
    store = memory_streams()
    noise, bodies = random.Random(1), Turning()
    filled = replace(store, codec=BodyCodec(bodies=bodies))
    for _ in range(3):
        filled.append("Door-1", [Event(type="Drawn", data=noise.randbytes(50_000)) for _ in range(10)])
    streams = AsyncStreams(replace(filled, driver=Requests().on(store.driver)))
    at_every_await(lambda count: read_cancelled_after(count, streams))


async def entering_cancelled_after(count: int, place: AsyncPlace) -> bool:
    async def enter() -> None:
        async with place as entered:
            assert entered is place

    task = asyncio.create_task(enter())
    await turns(count)
    if task.done():
        await task
        return True
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return False


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[aiohttp.ClientSession]:
    """Those that places have opened. What they find out in threads takes them turns of the loop."""
    opened: list[aiohttp.ClientSession] = []
    real = aiohttp.ClientSession

    async def at_once(function: Callable[..., object], *args: object, **options: object) -> object:
        await turns(2)
        return function(*args, **options)

    def session(**options: Any) -> aiohttp.ClientSession:
        opened.append(real(**options))
        return opened[-1]

    monkeypatch.setattr(asyncio, "to_thread", at_once)
    monkeypatch.setattr(aiohttp, "ClientSession", session)
    return opened


def test_a_place_that_is_cancelled_at_any_await_of_entering_or_leaving_closes_its_connections(
    sessions: list[aiohttp.ClientSession],
) -> None:
    at_every_await(lambda count: entering_cancelled_after(count, AsyncPlace(region="eu-central-1")))
    assert sessions
    assert all(session.closed for session in sessions)


def test_a_place_that_finds_no_credentials_leaves_no_connections_open(
    sessions: list[aiohttp.ClientSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise Misconfigured("credentials", "there are none")

    monkeypatch.setattr("epochal.aio.stores.credentials", none)
    with pytest.raises(Misconfigured):
        complaints_of(lambda: entering_cancelled_after(100, AsyncPlace(region="eu-central-1")))
    assert all(session.closed for session in sessions)
