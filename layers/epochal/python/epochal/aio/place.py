"""Opening stores for an asynchronous program."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Self

import aiohttp

from epochal.aio.bridge import in_thread, wait
from epochal.aio.carrier import SECONDS, AsyncCarrier
from epochal.aio.streams import AsyncStreams
from epochal.aio.tagged import AsyncTaggedEvents
from epochal.deployment import Deployment
from epochal.dynamo.clients import credentials, dynamodb_client, s3_client
from epochal.dynamo.deployed import deployed
from epochal.dynamo.interpreter import performed
from epochal.dynamo.lazy_clients import lazily
from epochal.errors import InvalidInput
from epochal.layout.tips.calving import Calving
from epochal.model.events import Claim
from epochal.settings import Settings
from epochal.store.bodies import Bodies
from epochal.store.streams import tips_of

CONNECTIONS = 100
"""To DynamoDB, at the same time; further requests wait for one."""


@dataclass(frozen=True, slots=True)
class _InThreads:
    """A bucket's bodies, without blocking the event loop."""

    bodies: Bodies

    def put(self, claim: Claim, content: bytes) -> None:
        in_thread(self.bodies.put, claim, content)

    def get(self, claim: Claim) -> bytes:
        return in_thread(self.bodies.get, claim)

    def keep(self, claim: Claim) -> bool:
        return in_thread(self.bodies.keep, claim)


@dataclass(slots=True, kw_only=True)
class AsyncPlace:
    """Where tables are, for an asynchronous program; a context that closes its connections.

        async with AsyncPlace() as place:
            streams = place.open_streams("epochal-prod-streams", bucket="…")

    One serves all stores and tasks of an event loop.

    Attributes:
        endpoint, region: other than those of the usual AWS chain.
        connections: at the same time.
    """

    endpoint: str | None = None
    region: str | None = None
    connections: int = CONNECTIONS
    _carrier: AsyncCarrier | None = field(default=None, init=False, repr=False)
    _open: AsyncExitStack = field(default_factory=AsyncExitStack, init=False, repr=False)

    async def __aenter__(self) -> Self:
        """Find address, region and credentials, as boto3 does; raises `Misconfigured` where one is missing."""
        client: Any = await asyncio.to_thread(dynamodb_client, endpoint=self.endpoint, region=self.region)
        connector = aiohttp.TCPConnector(limit=self.connections)
        self._carrier = AsyncCarrier(
            session=await self._open.enter_async_context(
                aiohttp.ClientSession(connector=connector, timeout=SECONDS, auto_decompress=False)
            ),
            url=client.meta.endpoint_url,
            region=client.meta.region_name,
            credentials=await asyncio.to_thread(credentials),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        self._carrier = None
        await self._open.aclose()

    def open_streams(self, table: str, *, bucket: str = "") -> AsyncStreams:
        """`open_streams`, for tasks of this event loop."""
        return AsyncStreams(self._opened(Settings.of(streams_table=table, bucket=bucket)).streams)

    def open_tips(self, table: str, *, bucket: str = "", calving: Calving | None = None) -> AsyncStreams:
        """`open_tips`, likewise."""
        settings = Settings.of(tips_table=table, bucket=bucket)
        found = self._opened(settings)
        return AsyncStreams(tips_of(settings, found.driver, found.codec, calving))

    def open_tagged_events(self, table: str, *, bucket: str = "") -> AsyncTaggedEvents:
        """`open_tagged_events`, likewise."""
        return AsyncTaggedEvents(self._opened(Settings.of(streams_table=table, bucket=bucket)).tagged)

    def _opened(self, settings: Settings) -> Deployment:
        if self._carrier is None:
            raise InvalidInput("place", "must be entered first: async with AsyncPlace() as place")
        s3 = lazily(lambda: s3_client(endpoint=self.endpoint, region=self.region))
        found = deployed(settings, execute=performed(self._carrier), s3=s3, kinds=settings.kinds)
        driver = replace(found.driver, sleep=lambda seconds: wait(asyncio.sleep(seconds)))
        return _Asynchronous(settings=settings, driver=driver, bucket=found.bucket)


class _Asynchronous(Deployment):
    """A deployment whose bucket is asked in threads."""

    @property
    def codec(self) -> Any:
        """How bodies of streams are read and written."""
        found = super().codec
        return found if found.bodies is None else replace(found, bodies=_InThreads(found.bodies))
