"""The client in Python on what is deployed: signed requests through the gateway, bodies in the bucket, the feed."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Iterator

import pytest

from epochal import NO_STREAM, Event, Query, QueryItem
from epochal.contrib.http_client import HttpStreams, open_http_streams, sigv4
from epochal.contrib.http_client.aio import open_async_http_streams
from epochal.contrib.local.deploy import LocalDeployment
from epochal.errors import WrongExpectedVersion

pytestmark = pytest.mark.deploy


@pytest.fixture
def environment(deployment: LocalDeployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The credentials of the usual chain are those of the embedded AWS."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")


@pytest.fixture
def streams(deployment: LocalDeployment, environment: None) -> Iterator[HttpStreams]:
    auth = sigv4(region=deployment.endpoint.region)
    with open_http_streams(deployment.api_url, auth=auth) as opened:
        yield opened


def named() -> str:
    return f"Parcel-{uuid.uuid4().hex}:a@b+c=d~e"


def test_streams_are_appended_to_and_read_through_the_gateway(streams: HttpStreams) -> None:
    name = named()
    first = streams.append(name, [Event.json("Sent", {"kg": 1})], expected=NO_STREAM)
    assert streams.append(name, [Event.json("Received", {})], expected=first.token).version == 2
    with pytest.raises(WrongExpectedVersion) as caught:
        streams.append(name, [Event.json("Lost", {})], expected=first.token)
    assert caught.value.outcome.version == 2
    assert [event.type for event in streams.read(name)] == ["Sent", "Received"]
    state = streams.load(name, start=0)
    assert state is not None
    assert state.token == caught.value.outcome.token


def test_a_body_that_no_request_holds_goes_through_the_bucket(streams: HttpStreams) -> None:
    name, body = named(), b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(130_000))
    streams.append(name, [Event(type="Scanned", data=body)])
    (event,) = streams.read(name)
    assert event.data == body


def test_tagged_events_and_the_feed_come_through_the_gateway(streams: HttpStreams) -> None:
    tag = f"parcel:{uuid.uuid4().hex}"
    query = Query(items=(QueryItem(tags=(tag,)),))
    streams.tagged.append([Event.json("Weighed", {"kg": 2}, tags=(tag,))], fail_if=query)
    assert [event.json() for event in streams.tagged.read(query).events] == [{"kg": 2}]
    name = named()
    done = streams.append(name, [Event.json("Sent", {"kg": 1})])
    assert streams.feed.wait_for(name, done.version, wait=5) is not None
    items = [item for batch in streams.feed.read(categories=["Parcel"]) for item in batch.items]
    assert [item.event.json() for item in items if item.stream == name and item.event is not None] == [
        {"kg": 1}
    ]


def test_an_event_loop_does_the_same(deployment: LocalDeployment, environment: None) -> None:
    name = named()

    async def program() -> list[str]:
        auth = sigv4(region=deployment.endpoint.region)
        async with open_async_http_streams(deployment.api_url, auth=auth) as streams:
            await asyncio.gather(*(streams.append(name, [Event.json("Sent", {})]) for _ in range(5)))
            return [event.type async for event in streams.read(name)]

    assert asyncio.run(program()) == ["Sent"] * 5
