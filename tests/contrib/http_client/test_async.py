"""The same store, awaited: every method of the ordinary classes is there, and a cancelled write is made once."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from epochal import NO_STREAM, Appended, Event, Query, QueryItem
from epochal.aio.bridge import cancelled_write, wait
from epochal.contrib.http_client import aio
from epochal.contrib.http_client.deciders import HttpDeciders
from epochal.contrib.http_client.exchange import HttpAnswer, HttpRequest, Send
from epochal.contrib.http_client.feed import HttpFeed
from epochal.contrib.http_client.streams import HttpStreams
from epochal.contrib.http_client.tagged import HttpTaggedEvents
from epochal.errors import WrongExpectedVersion
from tests.contrib.http_client.memory_api import MemoryApi
from tests.contrib.http_client.test_deciders import CODEC, COUNTER, Counted


def awaited(send: Send) -> Send:
    """Requests that other tasks run beside."""

    def waiting(request: HttpRequest) -> HttpAnswer:
        wait(asyncio.sleep(0))
        return send(request)

    return waiting


@pytest.mark.parametrize(
    ("ordinary", "awaited_class"),
    [
        (HttpStreams, aio.AsyncHttpStreams),
        (HttpTaggedEvents, aio.AsyncHttpTaggedEvents),
        (HttpFeed, aio.AsyncHttpFeed),
        (HttpDeciders, aio.AsyncHttpDeciders),
    ],
)
def test_every_method_is_there_awaited(ordinary: type, awaited_class: type) -> None:
    own = {"close"}
    methods = {
        name
        for name, value in vars(ordinary).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }
    assert methods - own <= {*vars(awaited_class)}


def test_streams_tagged_events_the_feed_and_deciders_are_awaited() -> None:
    memory = MemoryApi(around=awaited)

    async def program() -> None:
        streams = aio.AsyncHttpStreams(memory.streams)
        await streams.append("Cart-1", [Event.json("Opened", {})], expected=NO_STREAM)
        with pytest.raises(WrongExpectedVersion):
            await streams.append("Cart-1", [Event.json("Opened", {})], expected=NO_STREAM)
        assert [event.type async for event in streams.read("Cart-1")] == ["Opened"]
        query = Query(items=(QueryItem(tags=("a:1",)),))
        await streams.tagged.append([Event(type="A", tags=("a:1",))], fail_if=query)
        assert len((await streams.tagged.read(query)).events) == 1
        memory.api.index()
        items = [item async for batch in streams.feed.read() for item in batch.items]
        assert {item.type for item in items} == {"Opened", "A"}
        deciders = aio.AsyncHttpDeciders(streams=streams, decider=COUNTER, codec=CODEC)
        assert (await deciders.handle("Counter-1", 4)).events == (Counted(4),)

    asyncio.run(program())


def test_a_cancelled_append_goes_on_to_its_end_and_says_so() -> None:
    memory = MemoryApi(around=awaited)

    async def program() -> None:
        streams = aio.AsyncHttpStreams(memory.streams)
        task = asyncio.create_task(streams.append("Cart-1", [Event.json("Opened", {})]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        write = cancelled_write(caught.value)
        assert write is not None
        assert write.known
        assert isinstance(write.outcome, Appended)
        assert write.outcome.version == 1

    asyncio.run(program())
    assert len([*memory.api.streams.read("Cart-1")]) == 1
