"""Waits and retries of stores in memory let the other tasks of an event loop run."""

from __future__ import annotations

import asyncio

from epochal import Event, FeedEvent, reaction
from epochal.aio.bridge import run
from epochal.aio.stores import AsyncReadModel, AsyncStreams
from epochal.read_models.documents import Documents
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import memory_streams


def store(documents: Documents, event: FeedEvent) -> None:
    documents.put(event.stream, event.index)


def test_a_task_that_waits_for_a_read_model_lets_the_reaction_run() -> None:
    async def main() -> bool:
        feed = MemoryStore()
        model = feed.read_models.open("orders", 1)
        keep = reaction(name="orders-1")(lambda delivery: model.apply(delivery, store))
        appended = feed.streams.append("Order-1", [Event(type="Placed")])

        async def react() -> None:
            feed.react(keep)

        task = asyncio.create_task(react())
        reached = await AsyncReadModel(model).wait_for("Order-1", appended.version, seconds=1)
        await task
        return reached

    assert asyncio.run(main())


def test_a_pause_before_a_retry_lets_other_tasks_run() -> None:
    async def main() -> list[str]:
        order = list[str]()
        streams = AsyncStreams(memory_streams())

        async def pause() -> None:
            await run(streams.store.driver.sleep, 0.2)
            order.append("paused")

        async def work() -> None:
            await asyncio.sleep(0.01)
            order.append("worked")

        await asyncio.gather(pause(), work())
        return order

    assert asyncio.run(main()) == ["worked", "paused"]
