"""Opening stores for an asynchronous program."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Self

import aiohttp

from epochal.aio.aggregates import AsyncAggregates
from epochal.aio.bodies import BodiesInThreads
from epochal.aio.bridge import wait
from epochal.aio.carrier import SECONDS, AsyncCarrier
from epochal.aio.feed import AsyncFeed
from epochal.aio.read_models import AsyncReadModels
from epochal.aio.streams import AsyncStreams
from epochal.aio.tagged import AsyncTaggedEvents
from epochal.codec.payloads import Serializer
from epochal.deployment import Deployment
from epochal.dynamo.clients import credentials, dynamodb_client, s3_client
from epochal.dynamo.deployed import deployed
from epochal.dynamo.interpreter import performed
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.protocol.requests import Request
from epochal.errors import InvalidInput
from epochal.feed.history import history_of
from epochal.feed.reader import FeedReader
from epochal.layout.tips.calving import Calving
from epochal.model.aggregates import Hash
from epochal.reactions.read_models import ReadModels
from epochal.settings import LIBRARY, SHARDS, Settings
from epochal.store.aggregates import aggregates_of
from epochal.store.checking import distinct
from epochal.store.streams import tips_of

CONNECTIONS = 100
"""To DynamoDB, at the same time; further requests wait for one."""


@dataclass(slots=True, kw_only=True)
class AsyncPlace:
    """Where tables are, for an asynchronous program; a context that closes its connections.

        async with AsyncPlace() as place:
            streams = place.open_streams("epochal-prod-streams", bucket="…")

    One serves all stores and tasks of an event loop. Stores may be opened before it is entered, and be used after.

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

    def open_aggregates(
        self,
        journal: str,
        snapshot: str,
        *,
        types: Iterable[str] = (),
        shards: int = SHARDS,
        keys: str | Hash = LIBRARY,
        serializer: str | Serializer = LIBRARY,
    ) -> AsyncAggregates:
        """`open_aggregates`, likewise."""
        distinct(journal=journal, snapshot=snapshot)
        settings = Settings.of(
            journal_table=journal, snapshot_table=snapshot, journal_shards=shards, aggregate_types=types
        )
        driver = self._opened(settings).driver
        return AsyncAggregates(aggregates_of(settings, driver, keys=keys, serializer=serializer))

    def open_read_models(self, table: str) -> AsyncReadModels:
        """`open_read_models`, likewise."""
        driver = self._opened(Settings.of(read_models_table=table)).driver
        return AsyncReadModels(ReadModels(driver=driver, table=table))

    def open_feed(
        self,
        index_table: str,
        *,
        streams: AsyncStreams | None = None,
        tips: AsyncStreams | None = None,
        aggregates: AsyncAggregates | None = None,
    ) -> AsyncFeed:
        """`open_feed`, likewise; those of its stores that are given are asked for the events."""
        stores = [each.store for each in (tips, aggregates, streams) if each is not None]
        reader = FeedReader(
            driver=self._opened(Settings.of(index_table=index_table)).driver,
            table=index_table,
            histories=tuple(map(history_of, stores)),
            types=aggregates.store.site.types if aggregates else None,
        )
        return AsyncFeed(reader)

    def _carry(self, request: Request) -> dict[str, Any]:
        if self._carrier is None:
            raise InvalidInput("place", "must be entered first: async with AsyncPlace() as place")
        return self._carrier(request)

    def _opened(self, settings: Settings) -> Deployment:
        s3 = lazily(lambda: s3_client(endpoint=self.endpoint, region=self.region))
        found = deployed(settings, execute=performed(self._carry), s3=s3, kinds=settings.kinds)
        driver = replace(found.driver, sleep=lambda seconds: wait(asyncio.sleep(seconds)))
        return _Asynchronous(settings=settings, driver=driver, bucket=found.bucket)


class _Asynchronous(Deployment):
    """A deployment whose bucket is asked in threads."""

    @property
    def codec(self) -> Any:
        """How bodies of streams are read and written."""
        found = super().codec
        return found if found.bodies is None else replace(found, bodies=BodiesInThreads(found.bodies))
