"""What goes wrong with a connection of an event loop is told like that of any other carrier."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.credentials import RefreshableCredentials

from epochal import Event, open_streams
from epochal.aio import bridge
from epochal.aio.stores import AsyncCarrier, AsyncPlace, AsyncStreams
from epochal.dynamo.interpreter import carrier_interpreter
from epochal.errors import InvalidInput, Misconfigured, Unavailable
from epochal.plan.failures import Lost
from epochal.plan.ops import Put
from epochal.store.driver import Patience

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def _impatient(streams: AsyncStreams) -> AsyncStreams:
    driver = replace(streams.store.driver, patience=Patience(seconds=0.2, first=0.01))
    return AsyncStreams(replace(streams.store, driver=driver))


async def _append(url: str) -> Unavailable:
    """The error of an append that assumes the stream new, so that its first request is a write."""
    async with AsyncPlace(endpoint=url, region="eu-central-1") as place:
        streams = _impatient(AsyncStreams(open_streams("streams", place=place)))
        execute: Any = streams.store.driver.execute
        with pytest.raises(Unavailable) as raised:
            await streams.append("Door-1", [Event(type="Opened")])
        assert execute is not None
    return raised.value


async def _served(answer: Answer) -> Unavailable:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        return await _append(f"http://127.0.0.1:{port}")


async def _cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.close()


async def _half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
    await writer.drain()
    writer.close()


async def _broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("answer", [_cut, _half, _broken])
def test_an_answer_that_is_lost_is_tried_again_until_time_is_over(answer: Answer) -> None:
    error = asyncio.run(_served(answer))
    assert "127.0.0.1" in str(error) or "500" in str(error)


def test_an_address_at_which_nothing_has_ever_answered_is_named() -> None:
    error = asyncio.run(_append("http://127.0.0.1:9"))
    assert "nothing has ever answered at http://127.0.0.1:9" in str(error)
    assert not error.maybe_applied


def test_a_missing_region_is_told_when_the_place_is_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    async def entered() -> None:
        async with AsyncPlace():
            pass

    with pytest.raises(Misconfigured, match="AWS_DEFAULT_REGION"):
        asyncio.run(entered())


def test_credentials_that_expire_are_renewed_before_the_next_request() -> None:
    signed: list[str] = []

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        signed.append(
            next(line for line in head.decode().splitlines() if line.lower().startswith("authorization"))
        )
        body = b'{"Items":[]}'
        writer.write(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        await writer.drain()
        writer.close()

    def renewed(number: int, minutes: int) -> dict[str, str]:
        expiry = (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()
        return {"access_key": f"KEY{number}", "secret_key": "s", "token": "t", "expiry_time": expiry}

    async def live() -> None:
        server = await asyncio.start_server(keep, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with AsyncPlace(endpoint=url, region="eu-central-1") as place:
                numbers = iter(range(2, 9))
                expiring = RefreshableCredentials.create_from_metadata(
                    renewed(1, minutes=1), lambda: renewed(next(numbers), minutes=1), "test"
                )
                carrier = place._connections.carrier  # noqa: SLF001  the credentials are nobody's to set
                assert isinstance(carrier, AsyncCarrier)
                place._connections.carrier = replace(carrier, credentials=expiring)  # noqa: SLF001
                streams = AsyncStreams(open_streams("streams", place=place))
                for _ in range(2):
                    assert await streams.load("Door-1") is None

    asyncio.run(live())
    used = [re.findall(r"Credential=(KEY\d)/", each)[0] for each in signed]
    assert used == [f"KEY{number}" for number in range(2, 2 + len(used))]
    assert len(used) >= 2


def test_a_page_of_something_in_between_tells_nothing_of_a_write() -> None:
    async def log_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\n<html>")
        await writer.drain()
        writer.close()

    async def live() -> None:
        server = await asyncio.start_server(log_in, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with AsyncPlace(endpoint=url, region="eu-central-1") as place:
                carrier = place._connections.carrier  # noqa: SLF001  stores read first
                assert isinstance(carrier, AsyncCarrier)
                with pytest.raises(Lost):
                    await bridge.run(
                        carrier_interpreter(carrier), Put(table="streams", item={"p": {"S": "Door-1"}})
                    )

    asyncio.run(live())


def test_a_place_that_is_left_under_an_append_says_that_it_may_have_been_made() -> None:
    sent = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Finds nothing, and never answers the write."""
        while b".PutItem" not in (head := await reader.readuntil(b"\r\n\r\n")):
            await reader.readexactly(int(re.findall(rb"Content-Length: (\d+)", head)[0]))
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"Items":[]}')
        sent.set()
        await reader.read()
        writer.close()

    async def live() -> Unavailable:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with AsyncPlace(endpoint=url, region="eu-central-1") as place:
                streams = AsyncStreams(open_streams("streams", place=place))
                appending = asyncio.create_task(streams.append("Door-1", [Event(type="Opened")]))
                await sent.wait()
            with pytest.raises(Unavailable) as raised:
                await appending
        return raised.value

    error = asyncio.run(live())
    assert error.maybe_applied
    assert "place" in str(error)


def test_a_place_that_is_left_before_a_request_is_sent_says_so() -> None:
    async def live() -> None:
        async with AsyncPlace(endpoint="http://127.0.0.1:9", region="eu-central-1") as place:
            carrier = place._connections.carrier  # noqa: SLF001  as a request has it that waits for credentials
            assert isinstance(carrier, AsyncCarrier)
            streams = AsyncStreams(open_streams("streams", place=place))
        place._connections.carrier = carrier  # noqa: SLF001
        with pytest.raises(InvalidInput, match="was left while its stores were in use"):
            await streams.append("Door-1", [Event(type="Opened")])

    asyncio.run(live())
