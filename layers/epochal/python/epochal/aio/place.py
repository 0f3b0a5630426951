"""Opening stores for an asynchronous program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar

from epochal.aio.bridge import wait
from epochal.aio.bucket import BucketInThreads
from epochal.aio.carrier import SECONDS, AsyncCarrier
from epochal.aio.feed import AsyncFeed
from epochal.aio.projections import AsyncProjectionStates
from epochal.aio.read_models import AsyncReadModels
from epochal.aio.streams import AsyncStreams
from epochal.aio.subjects import AsyncSubjects, WrappingInThreads
from epochal.aio.tagged import AsyncTaggedEvents
from epochal.deployment import Deployment
from epochal.dynamo import stores as openers
from epochal.dynamo.clients import credentials, dynamodb_client
from epochal.dynamo.interpreter import performed
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.errors import InvalidInput
from epochal.extras import brought_by
from epochal.layout.tips.calving import Calving
from epochal.plan.ops import Execute
from epochal.settings import INLINE_BYTES, PROJECTIONS, Settings
from epochal.store.dcb_events import READS_AT_ONCE
from epochal.store.driver import DEFAULT, Patience

with brought_by("async", "asynchronous stores", "aiohttp"):
    import aiohttp

CONNECTIONS = 100
"""To DynamoDB, at the same time; further requests wait for one."""

S = TypeVar("S")


class AsyncStore(Protocol):
    """A store in its awaited form."""

    @property
    def store(self) -> object:
        """The store itself."""


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
        return AsyncStreams(openers.open_streams(table, bucket=bucket, place=self._place))

    def open_tips(
        self, table: str, *, bucket: str = "", calving: Calving | None = None, equinox: bool = False
    ) -> AsyncStreams:
        """`open_tips`, likewise."""
        return AsyncStreams(
            openers.open_tips(table, bucket=bucket, calving=calving, equinox=equinox, place=self._place)
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
            openers.open_tagged_events(
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
            openers.open_dcb_events(
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
            openers.open_projection_states(
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

    def open(self, opener: Callable[..., S], /, *args: Any, **options: Any) -> S:
        """What `opener`, as `open_aggregates`, opens with these arguments, for the awaited form of its store:
        `AsyncAggregates(place.open(open_aggregates, "journal", "snapshot"))`.
        """
        return opener(*args, **options, place=self._place)

    def open_read_models(self, table: str) -> AsyncReadModels:
        """`open_read_models`, likewise."""
        return AsyncReadModels(openers.open_read_models(table, place=self._place))

    def open_feed(self, index_table: str, *stores: AsyncStore) -> AsyncFeed:
        """`open_feed`, likewise; the stores that are given are asked for the events."""
        return AsyncFeed(openers.open_feed(index_table, *(each.store for each in stores), place=self._place))

    def open_subjects(self, table: str, *, kms_key: str, log: str = "") -> AsyncSubjects:
        """`epochal.dynamo.kms.open_subjects`, likewise. Needs the extra `subjects`."""
        from epochal.dynamo import kms  # noqa: PLC0415  it loads `cryptography`, an extra

        found = kms.open_subjects(table, kms_key=kms_key, log=log, place=self._place)
        return AsyncSubjects(replace(found, wrapping=WrappingInThreads(found.wrapping)))

    @property
    def _place(self) -> openers.Place:
        return _Awaited(endpoint=self.endpoint, region=self.region, carry=self._carry)

    def _carry(self, request: DynamoRequest) -> dict[str, Any]:
        if self._carrier is None:
            raise InvalidInput("place", "must be entered first: async with AsyncPlace() as place")
        return self._carrier(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Awaited(openers.Place):
    """A place whose stores wait within what `bridge.run` runs."""

    carry: Callable[[DynamoRequest], dict[str, Any]]

    def execute(self) -> Execute:
        return performed(self.carry)

    def reached(self, settings: Settings, **how: Any) -> Deployment:
        found = openers.Place.reached(self, settings, **how)
        driver = replace(found.driver, sleep=lambda seconds: wait(asyncio.sleep(seconds)))
        return replace(found, driver=driver, bucket=BucketInThreads(found.bucket))
