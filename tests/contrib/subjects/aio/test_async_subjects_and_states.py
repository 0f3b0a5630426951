"""Keys of subjects and states of projections, awaited: what blocks is in threads, and other tasks go on meanwhile."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import IO, Any, TypeVar

import pytest

from epochal import ConflictError, Decider, json_codec
from epochal.aio.bridge import cancelled_write, in_threads, wait
from epochal.aio.stores import AsyncDeciders, AsyncStreams
from epochal.contrib.sekiban import memory_projection_states
from epochal.contrib.sekiban.aio import AsyncProjectionStates
from epochal.contrib.sekiban.projections import CachedObjects
from epochal.contrib.subjects.aio import AsyncSubjects
from epochal.contrib.subjects.sealing import Shredded, sealed_codec
from epochal.contrib.subjects.testing import MemoryWrapping, memory_subjects
from epochal.errors import InvalidInput, MissingBody
from epochal.plan.ops import Execute, Op, Reply
from epochal.store.driver import Driver
from epochal.testing.stores import MemoryObjects, memory_streams
from tests.contrib.subjects.test_resurrection import World

T = TypeVar("T")

PROCESSED: dict[str, Any] = {"events_processed": 1, "last_sortable_id": "0" * 30}


def awaited(driver: Driver) -> Driver:
    """The driver, each of whose requests is a turn of the event loop."""
    at_once: Execute = driver.execute

    def execute(op: Op) -> Reply:
        wait(asyncio.sleep(0))
        return at_once(op)

    return replace(driver, execute=execute)


@dataclass
class Elsewhere:
    """Notes the threads that it is called in."""

    threads: set[threading.Thread] = field(default_factory=set)

    def here(self) -> None:
        self.threads.add(threading.current_thread())

    def is_off_the_loop(self) -> bool:
        return bool(self.threads) and threading.main_thread() not in self.threads


@dataclass
class Wrapping(Elsewhere):
    inner: MemoryWrapping = field(default_factory=MemoryWrapping)

    def fresh(self, subject: str) -> tuple[bytes, bytes]:
        self.here()
        return self.inner.fresh(subject)

    def unwrap(self, subject: str, wrapped: bytes) -> bytes:
        self.here()
        return self.inner.unwrap(subject, wrapped)


@dataclass
class Objects(Elsewhere):
    inner: MemoryObjects = field(default_factory=MemoryObjects)

    def put(self, key: str, content: IO[bytes]) -> None:
        self.here()
        self.inner.put(key, content)

    def get(self, key: str) -> Iterator[bytes]:
        self.here()
        return self._noting(self.inner.get(key))

    def delete(self, key: str) -> None:
        self.here()
        self.inner.delete(key)

    def old_keys(self, prefix: str) -> Iterator[str]:
        return self._noting(self.inner.old_keys(prefix))

    def _noting(self, found: Iterator[T]) -> Iterator[T]:
        for one in found:
            self.here()
            yield one


def subjects_of(wrapping: Wrapping) -> AsyncSubjects:
    store = memory_subjects()
    return AsyncSubjects(replace(store, driver=awaited(store.driver), wrapping=in_threads(wrapping)))


def states_of(objects: Objects) -> AsyncProjectionStates:
    store = memory_projection_states()
    return AsyncProjectionStates(replace(store, driver=awaited(store.driver), objects=in_threads(objects)))


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


async def content(states: AsyncProjectionStates, version: str) -> bytes:
    found = await states.find("Totals", version)
    assert found is not None
    return b"".join([chunk async for chunk in states.open(found)])


def test_bodies_are_sealed_and_unsealed_until_their_subject_is_forgotten() -> None:
    async def live() -> None:
        wrapping = Wrapping()
        subjects = subjects_of(wrapping)
        sealed = await asyncio.gather(*(subjects.seal("ada", b'{"n":%d}' % n) for n in range(5)))
        assert [await subjects.unseal(each) for each in sealed] == [b'{"n":%d}' % n for n in range(5)]
        assert wrapping.is_off_the_loop()
        assert not await subjects.is_forgotten("ada")
        await subjects.forget("ada")
        assert await subjects.is_forgotten("ada")
        assert await subjects.unseal(sealed[0]) == Shredded("ada")

    asyncio.run(live())


def test_who_was_forgotten_is_forgotten_again_after_a_restore() -> None:
    async def live() -> None:
        world = World()
        subjects = AsyncSubjects(replace(world.subjects, driver=awaited(world.subjects.driver)))
        for subject in ("ada", "ben", "cleo"):
            await subjects.seal(subject, b"{}")
        backup = world.backup()
        await subjects.forget("ada")
        await subjects.forget("cleo")
        world.restore(backup)
        assert {subject async for subject in subjects.reapply()} == {"ada", "cleo"}
        assert {subject async for subject in subjects.reapply()} == set()

    asyncio.run(live())


@dataclass(frozen=True)
class Named:
    name: str


def test_awaited_deciders_seal_what_they_store_and_read_it() -> None:
    async def live() -> None:
        subjects, found = subjects_of(Wrapping()), memory_streams()
        streams = AsyncStreams(replace(found, driver=awaited(found.driver)))
        codec = sealed_codec(
            json_codec(Named),
            subjects.store,
            subject_of=lambda event: event.name,
            shredded=lambda _, gone: Named(f"({gone.subject})"),
        )
        decider = Decider[str, tuple[str, ...], Named](
            initial=tuple,
            evolve=lambda names, event: (*names, event.name),
            decide=lambda name, _: [Named(name)],
        )
        people = AsyncDeciders(streams=streams, decider=decider, codec=codec)
        await people.handle("People-1", "ada")
        await people.handle("People-1", "ben")
        assert [b"sealed" in event.content async for event in streams.read("People-1")] == [True, True]
        await subjects.forget("ada")
        assert await people.query("People-1", lambda names: names) == ("(ada)", "ben")

    asyncio.run(live())


def test_states_are_stored_listed_and_read_small_ones_in_items_and_large_ones_in_the_bucket() -> None:
    async def live() -> None:
        objects = Objects()
        states = states_of(objects)
        await states.save("Totals", "v1", [b"one", b" two"], **PROCESSED)
        assert objects.threads == set()
        large = [noise(400_000), noise(200_000)]
        assert await states.try_save("Totals", "v2", large, **PROCESSED) is None
        assert await content(states, "v1") == b"one two"
        assert await content(states, "v2") == b"".join(large)
        assert objects.is_off_the_loop()
        newer = await states.try_save("Totals", "v1", [b""], events_processed=0, last_sortable_id="")
        assert newer is not None
        with pytest.raises(ConflictError):
            await states.save("Totals", "v1", [b""], events_processed=0, last_sortable_id="")
        assert [each.version for each in await states.list("Totals")] == ["v1", "v2"]
        assert [each.version async for each in states.list_all()] == ["v1", "v2"]
        assert (await states.page("Totals", limit=1))[1] == "v1"
        furthest = await states.find_any("Totals")
        assert furthest is not None
        await states.delete("Totals", "v2")
        (orphan,) = [key async for key in states.orphans("Totals")]
        assert orphan in objects.inner.contents
        assert await states.remove_orphans("Totals") == 1
        assert objects.inner.contents == {}

    asyncio.run(live())


def test_what_is_no_list_of_bytes_is_refused_as_the_ordinary_store_refuses_it() -> None:
    async def live() -> None:
        states = states_of(Objects())
        for wrong in (b"bytes", "text", None, 7):
            with pytest.raises(InvalidInput, match=f"a list of bytes, not {type(wrong).__name__}"):
                await states.save("Totals", "v1", wrong, **PROCESSED)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="a list of bytes, not int"):
            await states.save("Totals", "v1", [7], **PROCESSED)  # type: ignore[list-item]

    asyncio.run(live())


def test_other_tasks_go_on_between_the_chunks_of_a_state() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def live() -> None:
        task = asyncio.create_task(others())
        await states_of(Objects()).save("Totals", "v1", [b"x"] * 100, **PROCESSED)
        task.cancel()

    asyncio.run(live())
    assert turns >= 100


def test_an_object_that_is_gone_is_missing_and_one_that_is_kept_is_asked_for_once() -> None:
    async def live() -> None:
        objects = Objects()
        states = states_of(objects)
        await states.save("Totals", "v1", [noise(400_000)], **PROCESSED)
        cached = AsyncProjectionStates(
            replace(states.store, objects=CachedObjects(states.store.objects, 1_000_000))
        )
        assert await content(cached, "v1") == noise(400_000)
        objects.inner.contents.clear()
        assert await content(cached, "v1") == noise(400_000)
        with pytest.raises(MissingBody):
            await content(states, "v1")

    asyncio.run(live())


def test_a_state_that_is_being_stored_when_its_task_is_cancelled_is_stored_to_its_end() -> None:
    async def live() -> None:
        states = states_of(Objects())
        task = asyncio.create_task(states.save("Totals", "v1", [noise(400_000)] * 3, **PROCESSED))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert cancelled_write(cancelled.value) is not None
        assert await content(states, "v1") == noise(400_000) * 3

    asyncio.run(live())
