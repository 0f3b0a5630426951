"""Where an asynchronous program opens its stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Final, Self, TypeVar

from botocore.credentials import Credentials

from epochal.aio.bridge import in_threads, wait
from epochal.deployment import Bucket, Deployment, Links
from epochal.dynamo.clients import Renewed, credentials, dynamodb_client
from epochal.dynamo.interpreter import performed
from epochal.dynamo.protocol import MEDIA, DynamoRequest, answer_of, body_of, target_of
from epochal.dynamo.stores import Place
from epochal.errors import InvalidInput, brought_by
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.plan.ops import Execute
from epochal.settings import Settings
from epochal.store.encoding import Bodies, Objects
from epochal.wire.environment import Signer
from epochal.wire.http import CONNECT_SECONDS, READ_SECONDS, NoAnswer, Unsent, host_of

with brought_by("async", "asynchronous stores", "aiohttp"):
    import aiohttp

CONNECTIONS = 100
"""To DynamoDB, at the same time; further requests wait for one."""

SECONDS: Final = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)

T = TypeVar("T")


@dataclass(slots=True)
class _Connections:
    carrier: Callable[[DynamoRequest], dict[str, Any]] | None = None
    left: AsyncExitStack = field(default_factory=AsyncExitStack)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncPlace(Place):
    """Where tables are, for an asynchronous program; a context that closes its connections.

        async with AsyncPlace() as place:
            streams = AsyncStreams(open_streams("epochal-prod-streams", bucket="…", place=place))

    Whatever takes a `place` opens here too. One serves all stores and tasks of an event loop. Stores may be opened
    before it is entered, and be used after.

    Attributes:
        endpoint, region: other than those of the usual AWS chain.
        connections: at the same time.
    """

    carrier: str = field(default="aiohttp", init=False, repr=False)
    connections: int = CONNECTIONS
    _connections: _Connections = field(default_factory=_Connections, init=False, repr=False, compare=False)

    async def __aenter__(self) -> Self:
        """Find address, region and credentials, as boto3 does; raises `Misconfigured` where one is missing."""
        client: Any = await asyncio.to_thread(dynamodb_client, endpoint=self.endpoint, region=self.region)
        found = await asyncio.to_thread(credentials)
        # Last: nobody leaves a place that was not entered, because of an error or a cancellation.
        connector = aiohttp.TCPConnector(limit=self.connections)
        session = aiohttp.ClientSession(connector=connector, timeout=SECONDS, auto_decompress=False)
        self._connections.carrier = AsyncCarrier(
            session=await self._connections.left.enter_async_context(session),
            url=client.meta.endpoint_url,
            region=client.meta.region_name,
            credentials=found,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        self._connections.carrier = None
        await self._connections.left.aclose()

    def execute(self) -> Execute:
        """An interpreter whose requests wait within what `bridge.run` runs."""
        return performed(self._carry)

    def deployment(self, settings: Settings, **how: Any) -> Deployment:
        """The deployment there, whose pauses and bucket do not block the event loop."""
        found = Place.deployment(self, settings, **how)
        driver = replace(found.driver, sleep=lambda seconds: wait(asyncio.sleep(seconds)))
        return replace(found, driver=driver, bucket=_BucketInThreads(found.bucket))

    def blocking(self, service: T) -> T:
        """A service whose calls block, called in threads."""
        return in_threads(service)

    def _carry(self, request: DynamoRequest) -> dict[str, Any]:
        if self._connections.carrier is None:
            raise InvalidInput("place", "must be entered first: async with AsyncPlace() as place")
        return self._connections.carrier(request)


@dataclass(frozen=True, slots=True)
class _BucketInThreads:
    bucket: Bucket

    @property
    def bodies(self) -> Bodies | None:
        return None if (found := self.bucket.bodies) is None else in_threads(found)

    @property
    def objects(self) -> Objects | None:
        return None if (found := self.bucket.objects) is None else in_threads(found)

    @property
    def links(self) -> Links:
        return self.bucket.links  # they ask for nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncCarrier:
    """Sends requests to one address by aiohttp, within what `bridge.run` runs.

    Attributes:
        session: of the event loop that runs it.
        url: of the service.
        region: that requests are signed for.
        credentials: that each request asks for anew; expired ones are renewed in a thread.
    """

    session: aiohttp.ClientSession
    url: str
    region: str
    credentials: Credentials
    _signer: Signer = field(init=False)

    def __post_init__(self) -> None:
        try:
            host = host_of(self.url)
        except ValueError as error:
            raise InvalidInput("endpoint", "must be a scheme, a host and a port") from error
        object.__setattr__(self, "_signer", Signer(host, self.region, "dynamodb"))

    def __call__(self, request: DynamoRequest) -> dict[str, Any]:
        """Send a request and return its answer."""
        return wait(self._sent(request))

    async def _sent(self, request: DynamoRequest) -> dict[str, Any]:
        body = body_of(request)
        headers = self._signer.headers(await self._frozen(), target_of(request), MEDIA, body)
        if self.session.closed:
            raise InvalidInput("place", "was left while its stores were in use")
        try:
            async with self.session.post(self.url, data=body, headers=headers) as answer:
                return answer_of(request, answer.status, answer.headers, await answer.read())
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            nowhere = not isinstance(error, TimeoutError)
            raise Unsent(self._said(error), address=self.url, nowhere=nowhere) from error
        except (TimeoutError, aiohttp.ClientError) as error:
            raise NoAnswer(self._said(error)) from error

    def _said(self, error: Exception) -> str:
        return f"{type(error).__name__} at {self.url}"

    async def _frozen(self) -> Any:
        renewed = Renewed(self.credentials)
        if renewed.refresh_needed():
            return await asyncio.to_thread(renewed.get_frozen_credentials)
        return renewed.get_frozen_credentials()
