"""Stores are awaited: tasks take turns at every request, and a write that is cancelled tells what became of it."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from epochal import (
    Appended,
    AtVersion,
    Conflict,
    ConflictError,
    Decider,
    Event,
    Query,
    QueryItem,
    StreamAppend,
    metadata,
)
from epochal.aio.bridge import cancelled_write, in_threads, run, wait
from epochal.aio.stores import AsyncDeciders, AsyncStreams, AsyncTaggedEvents
from epochal.deciders.codecs import EventCodec
from epochal.errors import InvalidInput
from epochal.plan.ops import Execute, Op, Put, Reply, Update
from epochal.store.encoding import BodyCodec
from epochal.testing.stores import MemoryBodies, memory_streams, memory_tagged_events


def _slowed(execute: Execute, pause: Callable[[Op], Any]) -> Execute:
    """The interpreter, with a pause before and after each request: its answer comes late."""

    def perform(op: Op) -> Reply:
        wait(pause(op))
        reply = execute(op)
        wait(pause(op))
        return reply

    return perform


def _streams(pause: Callable[[Op], Any] = lambda _: asyncio.sleep(0)) -> AsyncStreams:
    store = memory_streams()
    slowed = replace(
        store.driver, execute=_slowed(store.driver.execute, pause), sleep=lambda _: wait(asyncio.sleep(0))
    )
    return AsyncStreams(replace(store, driver=slowed))


def _events(*types: str) -> list[Event]:
    return [Event(type=each) for each in types]


def test_a_stream_is_appended_to_read_pruned_and_deleted() -> None:
    async def live() -> None:
        streams = _streams()
        first = await streams.append("Door-1", _events("Opened", "Shut"))
        second = await streams.append("Door-1", _events("Opened"), expected=first.token)
        assert (second.version, second.capacity.requests) == (3, 1)
        conflict = await streams.try_append("Door-1", _events("Lost"), expected=first.token)
        assert isinstance(conflict, Conflict)
        with pytest.raises(ConflictError):
            await streams.append("Door-1", [], unfolds=[], expected=AtVersion(version=9))
        assert [event.type async for event in streams.read("Door-1")] == ["Opened", "Shut", "Opened"]
        assert [event.index async for event in streams.read("Door-1", direction="backward", limit=2)] == [
            2,
            1,
        ]
        state = await streams.load("Door-1")
        assert state is not None
        assert state.version == 3
        assert len((await streams.page("Door-1", limit=2)).events) == 2
        both = [StreamAppend(stream=name, events=_events("Met")) for name in ("Door-1", "Door-2")]
        assert {each.version for each in (await streams.append_all(both)).streams.values()} == {4, 1}
        pruned = await streams.prune("Door-1", 2)
        assert pruned is not None
        assert pruned.low_water == 2
        assert (await streams.delete("Door-1")).done

    asyncio.run(live())


def test_tasks_take_turns_while_each_waits_for_its_own_requests() -> None:
    waiting, most = 0, 0

    async def pause(_: Op) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0.001)
        waiting -= 1

    async def live() -> None:
        streams = _streams(pause)
        await asyncio.gather(*(streams.append(f"Door-{number}", _events("Opened")) for number in range(50)))

    asyncio.run(live())
    assert most == 50


def test_of_those_who_race_for_one_version_one_wins_and_none_is_lost() -> None:
    async def live() -> None:
        streams = _streams()
        begun = await streams.append("Door-1", _events("Opened"))
        answers = await asyncio.gather(
            *(streams.try_append("Door-1", _events(f"By{n}"), expected=begun.token) for n in range(8))
        )
        assert sorted(type(each).__name__ for each in answers) == ["Appended"] + ["Conflict"] * 7
        await asyncio.gather(*(streams.append("Door-1", _events("Any")) for _ in range(8)))
        assert [event.index async for event in streams.read("Door-1")] == list(range(10))

    asyncio.run(live())


def test_deciders_decide_again_where_another_task_was_faster() -> None:
    codec = EventCodec[int](
        encode=lambda number: Event(type="Added", data=b"%d" % number), decode=lambda stored: int(stored.data)
    )
    decider = Decider[int, int, int](
        initial=int, evolve=lambda total, added: total + added, decide=lambda added, _: [added]
    )

    async def live() -> None:
        streams = _streams()
        deciders = AsyncDeciders(streams=streams, decider=decider, codec=codec, attempts=30)
        await asyncio.gather(*(deciders.handle("Sum-1", number) for number in range(5)))
        assert await deciders.query("Sum-1", lambda total: total) == 10
        assert (await deciders.handle("Sum-1", decide=lambda total: [total])).state == 20
        assert (await deciders.handle("Sum-1", decide=lambda total: (total, []), with_result=True))[0] == 20

    asyncio.run(live())


def test_of_those_who_take_the_last_place_of_a_course_one_gets_it() -> None:
    course = Query(items=(QueryItem(tags=frozenset({"course:c1"})),))

    async def live() -> None:
        store = memory_tagged_events()
        paused = _slowed(store.driver.execute, lambda _: asyncio.sleep(0))
        tagged = AsyncTaggedEvents(replace(store, driver=replace(store.driver, execute=paused)))
        seen = await tagged.read(course)

        async def enrol(student: int) -> Appended | Conflict:
            tags = ["course:c1", f"student:s{student}"]
            event = Event(id=str(uuid4()), type="Enrolled", data=b"{}", tags=tags)
            return await tagged.try_append([event], fail_if=course, after=seen.position)

        answers = await asyncio.gather(*map(enrol, range(5)))
        assert [type(each) for each in answers].count(Appended) == 1
        (only,) = (await tagged.read(course)).events
        assert await tagged.event(only.id) == only
        with pytest.raises(ConflictError):
            await tagged.append([Event(type="E", data=b"", tags=["course:c1"])], fail_if=course)

    asyncio.run(live())


def test_metadata_of_a_task_reach_its_own_appends_alone() -> None:
    async def append(streams: AsyncStreams, user: str) -> None:
        with metadata(user=user):
            await asyncio.sleep(0)
            await streams.append(f"Door-{user}", _events("Opened"))

    async def live() -> None:
        streams = _streams()
        await asyncio.gather(append(streams, "ada"), append(streams, "bob"))
        for user in ("ada", "bob"):
            assert [event.meta async for event in streams.read(f"Door-{user}")] == [
                b'{"user":"%s"}' % user.encode()
            ]

    asyncio.run(live())


def _outcome(raised: pytest.ExceptionInfo[BaseException]) -> object:
    write = cancelled_write(raised.value)
    assert write is not None
    return write.outcome


def _stuck() -> tuple[AsyncStreams, asyncio.Event, asyncio.Event]:
    """Streams whose first write, once applied, sets the first event and waits for the second."""
    applied, go_on = asyncio.Event(), asyncio.Event()
    store = memory_streams()

    def perform(op: Op) -> Reply:
        reply = store.driver.execute(op)
        if isinstance(op, Put | Update) and not applied.is_set():
            applied.set()
            wait(go_on.wait())
        return reply

    return AsyncStreams(replace(store, driver=replace(store.driver, execute=perform))), applied, go_on


def test_a_write_that_is_cancelled_goes_on_to_its_end_and_tells_it() -> None:
    async def live() -> None:
        streams, applied, go_on = _stuck()
        task = asyncio.ensure_future(streams.append("Door-1", _events("Opened")))
        await applied.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert task.cancelled()
        outcome = _outcome(cancelled)
        assert isinstance(outcome, Appended)
        assert outcome.version == 1

    asyncio.run(live())


def test_a_write_that_is_cancelled_and_refused_tells_the_conflict() -> None:
    async def live() -> None:
        streams = _streams(lambda _: asyncio.sleep(0.01))
        begun = await streams.append("Door-1", _events("Opened"))
        await streams.append("Door-1", _events("Shut"))
        task = asyncio.ensure_future(streams.append("Door-1", _events("Lost"), expected=begun.token))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert isinstance(_outcome(cancelled), ConflictError)

    asyncio.run(live())


def test_a_write_that_is_cancelled_twice_tells_that_its_end_is_not_known() -> None:
    async def live() -> None:
        streams, applied, go_on = _stuck()
        task = asyncio.ensure_future(streams.append("Door-1", _events("Opened")))
        await applied.wait()
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert _outcome(cancelled) is None
        go_on.set()
        await asyncio.sleep(0.01)
        state = await streams.load("Door-1")
        assert state is not None
        assert state.version == 1

    asyncio.run(live())
    gc.collect()


def test_a_timeout_of_a_write_has_its_outcome_as_the_cause() -> None:
    async def live() -> None:
        streams = _streams(lambda _: asyncio.sleep(0.05))
        with pytest.raises(TimeoutError) as late:
            async with asyncio.timeout(0.01):
                await streams.append("Door-1", _events("Opened"))
        assert isinstance(_outcome(late), Appended)

    asyncio.run(live())


def test_bodies_that_are_in_the_bucket_are_stored_and_fetched_in_threads_several_at_once() -> None:
    large = [random.Random(number).randbytes(500_000) for number in range(3)]

    async def live() -> None:
        store = _streams().store
        streams = AsyncStreams(replace(store, codec=BodyCodec(bodies=in_threads(MemoryBodies()))))
        await streams.append("Door-1", [Event(type="Drawn", data=data) for data in large])
        assert [event.content async for event in streams.read("Door-1")] == large

    asyncio.run(live())


def test_a_read_that_is_cancelled_ends_at_once() -> None:
    async def live() -> None:
        streams = _streams(lambda _: asyncio.sleep(60))
        task = asyncio.ensure_future(streams.load("Door-1"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await asyncio.wait_for(task, 5)
        assert cancelled_write(cancelled.value) is None

    asyncio.run(live())


def test_an_asynchronous_store_that_is_called_as_an_ordinary_one_says_so() -> None:
    with pytest.raises(InvalidInput, match="call it through AsyncStreams"):
        _streams().store.append("Door-1", _events("Opened"))


def test_what_the_awaited_function_raises_is_raised_and_what_is_awaited_may_be_caught_by_it() -> None:
    async def fails() -> None:
        raise LookupError("x")

    def caught() -> str:
        try:
            wait(fails())
        except LookupError as error:
            return str(error)
        return "nothing"

    def raising(error: Exception) -> None:
        wait(asyncio.sleep(0))
        raise error

    assert asyncio.run(run(caught)) == "x"
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run(partial(raising, ZeroDivisionError())))


def test_events_of_streams_with_tags_are_appended_and_found_by_tasks_at_once() -> None:
    streams = _streams()
    course = Query(items=(QueryItem(tags=frozenset({"course:1"})),))

    async def enrol(student: int) -> bool:
        event = Event(type="Enrolled", tags=("course:1",))
        try:
            await streams.append(f"Student-{student}", [event], fail_if=course)
        except ConflictError:
            return False
        return True

    async def all_at_once() -> tuple[int, list[str]]:
        made = await asyncio.gather(*map(enrol, range(5)))
        return sum(made), [event.stream for event in (await streams.tagged.read(course)).events]

    made, found = asyncio.run(all_at_once())
    assert (made, len(found)) == (1, 1)
