"""Opening stores for an asynchronous program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Self

from epochal.aio.aggregates import AsyncAggregates
from epochal.aio.bridge import wait
from epochal.aio.bucket import BucketInThreads
from epochal.aio.carrier import SECONDS, AsyncCarrier
from epochal.aio.feed import AsyncFeed
from epochal.aio.projections import AsyncProjectionStates
from epochal.aio.read_models import AsyncReadModels
from epochal.aio.streams import AsyncStreams
from epochal.aio.subjects import AsyncSubjects, WrappingInThreads
from epochal.aio.tagged import AsyncTaggedEvents
from epochal.codec.payloads import Serializer
from epochal.deployment import Deployment
from epochal.dynamo import stores
from epochal.dynamo.clients import credentials, dynamodb_client
from epochal.dynamo.interpreter import performed
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.errors import InvalidInput
from epochal.extras import brought_by
from epochal.layout.tips.calving import Calving
from epochal.model.aggregates import Hash
from epochal.model.kinds import must_be
from epochal.plan.ops import Execute
from epochal.settings import INLINE_BYTES, LIBRARY, PROJECTIONS, SHARDS, Settings
from epochal.store.dcb_events import READS_AT_ONCE, DcbEvents
from epochal.store.driver import DEFAULT, Patience

with brought_by("async", "asynchronous stores", "aiohttp"):
    import aiohttp

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
        found = await asyncio.to_thread(credentials)
        # Last: nobody leaves a place that was not entered, because of an error or a cancellation.
        connector = aiohttp.TCPConnector(limit=self.connections)
        session = aiohttp.ClientSession(connector=connector, timeout=SECONDS, auto_decompress=False)
        self._carrier = AsyncCarrier(
            session=await self._open.enter_async_context(session),
            url=client.meta.endpoint_url,
            region=client.meta.region_name,
            credentials=found,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        self._carrier = None
        await self._open.aclose()

    def open_streams(self, table: str, *, bucket: str = "") -> AsyncStreams:
        """`open_streams`, for tasks of this event loop."""
        return AsyncStreams(stores.open_streams(table, bucket=bucket, place=self._place))

    def open_tips(
        self, table: str, *, bucket: str = "", calving: Calving | None = None, equinox: bool = False
    ) -> AsyncStreams:
        """`open_tips`, likewise."""
        return AsyncStreams(
            stores.open_tips(table, bucket=bucket, calving=calving, equinox=equinox, place=self._place)
        )

    def open_tagged_events(
        self,
        table: str,
        *,
        bucket: str = "",
        types: Iterable[str] = (),
        everything: bool = False,
        patience: Patience = DEFAULT,
    ) -> AsyncTaggedEvents:
        """`open_tagged_events`, likewise."""
        return AsyncTaggedEvents(
            stores.open_tagged_events(
                table,
                bucket=bucket,
                types=types,
                everything=everything,
                patience=patience,
                place=self._place,
            )
        )

    def open_dcb_events(
        self,
        events: str,
        tags: str,
        *,
        service: str = "",
        type_heads: bool = False,
        write_shards: int = 1,
        consistent: bool = True,
        reads_at_once: int = READS_AT_ONCE,
        patience: Patience = DEFAULT,
    ) -> AsyncTaggedEvents:
        """`open_dcb_events`, likewise."""
        return AsyncTaggedEvents(
            stores.open_dcb_events(
                events,
                tags,
                service=service,
                type_heads=type_heads,
                write_shards=write_shards,
                consistent=consistent,
                reads_at_once=reads_at_once,
                patience=patience,
                place=self._place,
            )
        )

    def open_projection_states(
        self,
        table: str,
        *,
        bucket: str = "",
        prefix: str = PROJECTIONS,
        service: str = "",
        inline_bytes: int = INLINE_BYTES,
        cache_bytes: int = 0,
        patience: Patience = DEFAULT,
    ) -> AsyncProjectionStates:
        """`open_projection_states`, likewise."""
        return AsyncProjectionStates(
            stores.open_projection_states(
                table,
                bucket=bucket,
                prefix=prefix,
                service=service,
                inline_bytes=inline_bytes,
                cache_bytes=cache_bytes,
                patience=patience,
                place=self._place,
            )
        )

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
        return AsyncAggregates(
            stores.open_aggregates(
                journal,
                snapshot,
                types=types,
                shards=shards,
                keys=keys,
                serializer=serializer,
                place=self._place,
            )
        )

    def open_read_models(self, table: str) -> AsyncReadModels:
        """`open_read_models`, likewise."""
        return AsyncReadModels(stores.open_read_models(table, place=self._place))

    def open_feed(
        self,
        index_table: str,
        *,
        streams: AsyncStreams | None = None,
        tips: AsyncStreams | None = None,
        aggregates: AsyncAggregates | None = None,
        dcb: AsyncTaggedEvents | None = None,
    ) -> AsyncFeed:
        """`open_feed`, likewise; those of its stores that are given are asked for the events."""
        return AsyncFeed(
            stores.open_feed(
                index_table,
                streams=None if streams is None else streams.store,
                tips=None if tips is None else tips.store,
                aggregates=None if aggregates is None else aggregates.store,
                dcb=None if dcb is None else _sekiban(dcb),
                place=self._place,
            )
        )

    def open_subjects(self, table: str, *, kms_key: str, log: str = "") -> AsyncSubjects:
        """`epochal.dynamo.kms.open_subjects`, likewise. Needs the extra `subjects`."""
        from epochal.dynamo import kms  # noqa: PLC0415  it loads `cryptography`, an extra

        found = kms.open_subjects(table, kms_key=kms_key, log=log, place=self._place)
        return AsyncSubjects(replace(found, wrapping=WrappingInThreads(found.wrapping)))

    @property
    def _place(self) -> stores.Place:
        return _Awaited(endpoint=self.endpoint, region=self.region, carry=self._carry)

    def _carry(self, request: DynamoRequest) -> dict[str, Any]:
        if self._carrier is None:
            raise InvalidInput("place", "must be entered first: async with AsyncPlace() as place")
        return self._carrier(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Awaited(stores.Place):
    """A place whose stores wait within what `bridge.run` runs."""

    carry: Callable[[DynamoRequest], dict[str, Any]]

    def execute(self) -> Execute:
        return performed(self.carry)

    def reached(self, settings: Settings, **how: Any) -> Deployment:
        found = stores.Place.reached(self, settings, **how)
        driver = replace(found.driver, sleep=lambda seconds: wait(asyncio.sleep(seconds)))
        return replace(found, driver=driver, bucket=BucketInThreads(found.bucket))


def _sekiban(tagged: AsyncTaggedEvents) -> DcbEvents:
    store = tagged.store
    must_be(DcbEvents, store, "dcb", "of `open_dcb_events`")
    assert isinstance(store, DcbEvents)  # noqa: S101  for the type checker, which cannot know
    return store
