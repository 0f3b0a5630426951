"""Opens stores for asynchronous programs: streams, tagged events, the feed, read models and deciders, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeVar, cast, overload

from botocore.credentials import Credentials

from epochal.aio.bridge import finished, in_threads, iterates, reads, run, wait, writes, written
from epochal.deciders import on_streams
from epochal.deciders.access import UNOPTIMIZED, Access
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import EventCodec
from epochal.deciders.loading import REQUIRE_LOAD
from epochal.deciders.loop import ATTEMPTS
from epochal.deciders.model_snapshots import ModelSnapshots
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, Deciders
from epochal.deciders.stream_decisions import Party
from epochal.deployment import Bucket, Deployment, Links
from epochal.dynamo.clients import Renewed, credentials, dynamodb_client
from epochal.dynamo.interpreter import carrier_interpreter, database_name
from epochal.dynamo.protocol.messages import MEDIA, body_of, read_answer, target_of
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.dynamo.stores import Place
from epochal.dynamo.wire.http import CONNECT_SECONDS, READ_SECONDS, NoAnswer, Unsent, host_of
from epochal.dynamo.wire.signatures import Signer
from epochal.errors import InvalidInput, brought_by
from epochal.feed.reader import FeedReader
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.expected_version import ANY, ExpectedVersion
from epochal.model.kinds import must_be
from epochal.plan.ops import Execute
from epochal.read_models.documents import ReadModel, ReadModels
from epochal.settings import Settings
from epochal.store.bulk import Bulk
from epochal.store.encoding import Bodies, Objects
from epochal.store.joined import JoinedAppends
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore

if TYPE_CHECKING:
    from epochal.deciders.loading import AllowStale, Load
    from epochal.deciders.loop import Answer
    from epochal.deciders.projections import Projection
    from epochal.deciders.stream_decisions import Transacted
    from epochal.read_models.keys import SecondaryKey


with brought_by("async", "asynchronous stores", "aiohttp"):
    import aiohttp

CONNECTIONS = 100
"""To DynamoDB, at the same time; further requests wait for one."""

SECONDS: Final = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)

D = TypeVar("D")
T = TypeVar("T")


@dataclass(slots=True)
class _Connections:
    carrier: Callable[[DynamoRequest], dict[str, Any]] | None = None
    where: str = ""
    left: AsyncExitStack = field(default_factory=AsyncExitStack)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncPlace(Place):
    """The AWS endpoint and region of the tables, for asynchronous programs; a context that closes its connections.

        async with AsyncPlace() as place:
            streams = AsyncStreams(open_streams("epochal-prod-streams", bucket="…", place=place))

    Whatever takes a `place` opens here too. One serves all stores and tasks of an event loop. Stores may be opened
    before it is entered, and be used after.

    Attributes:
        endpoint: URL of DynamoDB; None for the one that the usual AWS configuration names.
        region: AWS region of the tables; None for the one that the usual AWS configuration names.
        connections: largest number of connections that are open at the same time.
    """

    carrier: str = field(default="aiohttp", init=False, repr=False)
    connections: int = CONNECTIONS
    _connections: _Connections = field(default_factory=_Connections, init=False, repr=False, compare=False)

    async def __aenter__(self) -> Self:
        """Open connections with what boto3 finds (address, region, credentials), or raise `Misconfigured`."""
        client: Any = await asyncio.to_thread(dynamodb_client, endpoint=self.endpoint, region=self.region)
        found_credentials = await asyncio.to_thread(credentials)
        # Last: nobody leaves a place that was not entered, because of an error or a cancellation.
        connector = aiohttp.TCPConnector(limit=self.connections)
        session = aiohttp.ClientSession(connector=connector, timeout=SECONDS, auto_decompress=False)
        self._connections.carrier = AsyncCarrier(
            session=await self._connections.left.enter_async_context(session),
            url=client.meta.endpoint_url,
            region=client.meta.region_name,
            credentials=found_credentials,
        )
        self._connections.where = database_name(client.meta.region_name, client.meta.endpoint_url)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        self._connections.carrier = None
        await self._connections.left.aclose()

    def execute(self) -> Execute:
        """Make the function that sends a store's requests to DynamoDB, for blocking methods that `bridge.run` calls."""
        return carrier_interpreter(self._carry, lambda: self._connections.where)

    def deployment(self, settings: Settings, **how: Any) -> Deployment:
        """Open a deployment at this endpoint and region, whose pauses and bucket do not block the event loop."""
        opened = Place.deployment(self, settings, **how)
        driver = replace(opened.driver, sleep=lambda seconds: wait(asyncio.sleep(seconds)))
        return replace(opened, driver=driver, bucket=_BucketInThreads(opened.bucket))

    def blocking(self, service: T) -> T:
        """Wrap a blocking service so that its calls run in threads."""
        return in_threads(service)

    def _carry(self, request: DynamoRequest) -> dict[str, Any]:
        """Send a request through the connections, which must have been opened."""
        if self._connections.carrier is None:
            raise InvalidInput("place", "must be entered first: async with AsyncPlace() as place")
        return self._connections.carrier(request)


@dataclass(frozen=True, slots=True)
class _BucketInThreads:
    bucket: Bucket

    @property
    def bodies(self) -> Bodies | None:
        return None if (bodies := self.bucket.bodies) is None else in_threads(bodies)

    @property
    def objects(self) -> Objects | None:
        return None if (objects := self.bucket.objects) is None else in_threads(objects)

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
        """Sign and send a request by aiohttp; return the answer, raise `Unsent` or `NoAnswer` without one."""
        body = body_of(request)
        headers = self._signer.headers(await self._frozen(), target_of(request), MEDIA, body)
        if self.session.closed:
            raise InvalidInput("place", "was left while its stores were in use")
        try:
            async with self.session.post(self.url, data=body, headers=headers) as answer:
                return read_answer(request, answer.status, answer.headers, await answer.read())
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            nowhere = not isinstance(error, TimeoutError)
            raise Unsent(self._describe_failure(error), address=self.url, nowhere=nowhere) from error
        except (TimeoutError, aiohttp.ClientError) as error:
            raise NoAnswer(self._describe_failure(error)) from error

    def _describe_failure(self, error: Exception) -> str:
        """Describe a failed connection."""
        return f"{type(error).__name__} at {self.url}"

    async def _frozen(self) -> Any:
        """Return the keys that are valid now, renewing them in a thread if necessary."""
        renewed = Renewed(self.credentials)
        if renewed.refresh_needed():
            return await asyncio.to_thread(renewed.get_frozen_credentials)
        return renewed.get_frozen_credentials()


@dataclass(frozen=True, slots=True)
class AsyncStreams:
    """A store of streams for asynchronous programs: the methods of `Streams`, awaited, with the same errors.

    A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: the blocking store of streams, opened with an `AsyncPlace` or in memory.
    """

    store: Streams

    append = writes(Streams.append)
    try_append = writes(Streams.try_append)
    append_all = writes(Streams.append_all)
    try_append_all = writes(Streams.try_append_all)
    load = reads(Streams.load)
    page = reads(Streams.page)
    read = iterates(Streams.read)
    prune = writes(Streams.prune)
    archive_and_prune = writes(Streams.archive_and_prune)
    copy_to_archive = writes(Streams.copy_to_archive)
    delete = writes(Streams.delete)
    try_delete = writes(Streams.try_delete)

    @property
    def tagged(self) -> AsyncTaggedEvents:
        """The store of all events with tags in this table: those of streams, and those without a stream."""
        return AsyncTaggedEvents(self.store.tagged)


@dataclass(frozen=True, slots=True)
class AsyncTaggedEvents:
    """A store of tagged events for asynchronous programs: the blocking store's methods, awaited, with the same errors.

    An append that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: the blocking store of tagged events, opened with an `AsyncPlace` or in memory.
    """

    store: TaggedStore

    append = writes(TaggedStore.append)
    try_append = writes(TaggedStore.try_append)
    read = reads(TaggedStore.read)
    event = reads(TaggedStore.event)
    events = reads(TaggedStore.events)
    appended = reads(TaggedStore.appended)


@dataclass(frozen=True, slots=True)
class AsyncJoinedAppends:
    """Joins appends to a stream from several tasks in one write: the methods of `JoinedAppends`, awaited.

    They raise what those do. An append that is cancelled goes on to its end, whether it writes or waits for another
    that does, and `cancelled_write` tells its outcome. What others append with it is not touched by that.

    Attributes:
        joined: the blocking `JoinedAppends`, made over the `store` of an `AsyncStreams` and shared by all tasks.
    """

    joined: JoinedAppends

    append = writes(JoinedAppends.append, of="joined")
    try_append = writes(JoinedAppends.try_append, of="joined")


@dataclass(frozen=True, slots=True)
class AsyncBulk:
    """Makes many appends at once in asynchronous programs: `Bulk.append`, awaited, with the same errors.

    A call that is cancelled goes on to its end, and `cancelled_write` tells its answers.

    Attributes:
        bulk: the blocking `Bulk`, made over the `store` of an `AsyncStreams`.
    """

    bulk: Bulk

    append = writes(Bulk.append, of="bulk")


@dataclass(frozen=True, slots=True)
class AsyncFeed:
    """The feed for asynchronous programs: the methods of `FeedReader`, awaited, with the same errors.

    Attributes:
        reader: the blocking reader of the feed, opened with an `AsyncPlace` or in memory.
    """

    reader: FeedReader

    partitions = reads(FeedReader.partitions, of="reader")
    find_checkpoint = reads(FeedReader.find_checkpoint, of="reader")
    page = reads(FeedReader.page, of="reader")
    wait_for = reads(FeedReader.wait_for, of="reader")
    newest = reads(FeedReader.newest, of="reader")
    streams = reads(FeedReader.streams, of="reader")
    streams_by_name = reads(FeedReader.streams_by_name, of="reader")
    spans = reads(FeedReader.spans, of="reader")
    events = iterates(FeedReader.events, of="reader")
    items = reads(FeedReader.items, of="reader")
    end_of = reads(FeedReader.end_of, of="reader")
    read = iterates(FeedReader.read, of="reader")
    follow = iterates(FeedReader.follow, of="reader")
    """Iterate over pages without end, as `FeedReader.follow` does; it may be cancelled while it waits.
    """
    ordered = iterates(FeedReader.ordered, of="reader")


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True)
class AsyncReadModel(Generic[D]):
    """A generation of a read model, for asynchronous programs: the awaited methods of `ReadModel`, with the same
    errors.

    A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        model: the blocking read model, opened with an `AsyncPlace` or in memory.
    """

    model: ReadModel[D]

    apply = writes(ReadModel.apply, of="model")
    """Fold a delivery's events into the documents with a plain function `fold`, as `ReadModel.apply` does.
    """

    remove = writes(ReadModel.remove, of="model")
    skip = writes(ReadModel.skip, of="model")
    if TYPE_CHECKING:  # type checkers cannot follow `reads` through the forms of `get`

        @overload
        async def get(self, key: str) -> D | None: ...

        @overload
        async def get(self, key: str, default: T) -> D | T: ...

        async def get(self, key: str, default: Any = None) -> Any:
            """Read a document."""

    else:
        get = reads(ReadModel.get, of="model")
    list = reads(ReadModel.list, of="model")
    find = reads(ReadModel.find, of="model")
    count = reads(ReadModel.count, of="model")
    place = reads(ReadModel.place, of="model")
    wait_for = reads(ReadModel.wait_for, of="model")


@dataclass(frozen=True, slots=True)
class AsyncReadModels:
    """The read models of a table, for asynchronous programs.

    Attributes:
        store: the blocking read models, opened with an `AsyncPlace` or in memory.
    """

    store: ReadModels

    drop = writes(ReadModels.drop)

    @overload
    def open(
        self,
        name: str,
        generation: int,
        *,
        of: type[D],
        keys: Mapping[str, Callable[[D], Any] | SecondaryKey] | None = None,
        spread: int = 1,
        holds: Callable[[D], Any] | None = None,
    ) -> AsyncReadModel[D]: ...

    @overload
    def open(
        self,
        name: str,
        generation: int,
        *,
        of: None = None,
        keys: Mapping[str, Callable[[Any], Any] | SecondaryKey] | None = None,
        spread: int = 1,
        holds: Callable[[Any], Any] | None = None,
    ) -> AsyncReadModel[Any]: ...

    def open(
        self,
        name: str,
        generation: int,
        *,
        of: type[Any] | None = None,
        keys: Mapping[str, Callable[[Any], Any] | SecondaryKey] | None = None,
        spread: int = 1,
        holds: Callable[[Any], Any] | None = None,
    ) -> AsyncReadModel[Any]:
        """Open one generation of a read model, as `ReadModels.open` does, without a request: not awaited.

        Args:
            name, generation, of, keys, spread, holds: as of `ReadModels.open`.
        """
        opened: ReadModel[Any] = self.store.open(
            name, generation, of=cast("Any", of), keys=keys, spread=spread, holds=holds
        )
        return AsyncReadModel(opened)

    @overload
    async def live(self, name: str, *, of: type[D]) -> AsyncReadModel[D]: ...

    @overload
    async def live(self, name: str, *, of: None = None) -> AsyncReadModel[Any]: ...

    async def live(self, name: str, *, of: type[Any] | None = None) -> AsyncReadModel[Any]:
        """Open the live generation of a read model, or the first if none is live, as `ReadModels.live` does.

        Args:
            name, of: as of `ReadModels.live`.
        """
        live: Callable[[str], ReadModel[Any]] = partial(self.store.live, of=cast("Any", of))
        return AsyncReadModel(await run(live, name))

    async def swap(self, name: str, generation: int) -> AsyncReadModel[Any]:
        """Make a generation of a read model the live one and return it, or raise, as `ReadModels.swap` does.

        Args:
            name: name of the read model.
            generation: number of the generation.
        """
        return AsyncReadModel(await finished(run(self.store.swap, name, generation)))


# Deciders on streams and on tagged events, awaited.

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class AsyncDeciders(Generic[C, S, E]):
    """Deciders for asynchronous programs: the methods of `Deciders`, awaited, with the same errors.

    `decide` and `evolve` are plain functions, as before: they must not wait. A decision that is cancelled goes on to
    its end, and `cancelled_write` tells its outcome.

    Attributes:
        streams: the store of streams, opened with an `AsyncPlace` or in memory.
        access: what a decision reads and stores, such as snapshots, as in `Deciders`.
        attempts: number of decisions on one command before `Contended` is raised, as in `Deciders`.
        cache: cache of states, as in `Deciders`; None for none.
        codec: codec of the domain's events, as in `Deciders`.
        decider: the domain's rules, as in `Deciders`.
        forget_pruned: whether to begin anew from the initial state, instead of raising `EventsPruned`, if a stream was
            pruned, as in `Deciders`.
    """

    streams: AsyncStreams
    decider: Decider[C, S, E]
    codec: EventCodec[E]
    access: Access[S, E] = UNOPTIMIZED
    cache: Cache | None = None
    attempts: int = ATTEMPTS
    forget_pruned: bool = False
    deciders: Deciders[C, S, E] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        must_be(AsyncStreams, self.streams, "streams", "an AsyncStreams")
        object.__setattr__(self, "deciders", self._blocking())

    def _blocking(self) -> Deciders[C, S, E]:
        """Build the blocking deciders with the same settings, whose calls are awaited."""
        return Deciders(
            streams=self.streams.store,
            decider=self.decider,
            codec=self.codec,
            access=self.access,
            cache=self.cache,
            attempts=self.attempts,
            forget_pruned=self.forget_pruned,
        )

    if TYPE_CHECKING:  # type checkers cannot follow `writes` through the forms of `handle`

        @overload
        async def handle(
            self,
            stream: str,
            command: C,
            *,
            load: Load | AllowStale = REQUIRE_LOAD,
            expected: ExpectedVersion = ANY,
            metadata: Mapping[str, Any] | None = None,
            idempotency_key: str | None = None,
        ) -> Transacted[S, E]: ...

        @overload
        async def handle(
            self,
            stream: str,
            *,
            decide: Callable[[S], Answer[E]],
            with_result: Literal[False] = False,
            load: Load | AllowStale = REQUIRE_LOAD,
            expected: ExpectedVersion = ANY,
            metadata: Mapping[str, Any] | None = None,
            idempotency_key: str | None = None,
        ) -> Transacted[S, E]: ...

        @overload
        async def handle(
            self,
            stream: str,
            *,
            decide: Callable[[S], tuple[R, Answer[E]]],
            with_result: Literal[True],
            load: Load | AllowStale = REQUIRE_LOAD,
            expected: ExpectedVersion = ANY,
            metadata: Mapping[str, Any] | None = None,
            idempotency_key: str | None = None,
        ) -> tuple[R, Transacted[S, E]]: ...

        @overload
        async def handle(
            self,
            stream: str,
            *,
            decide: Callable[[S, Mapping[str, Any]], Answer[E]],
            given: Mapping[str, Projection[Any]],
            with_result: Literal[False] = False,
            load: Load | AllowStale = REQUIRE_LOAD,
            expected: ExpectedVersion = ANY,
            metadata: Mapping[str, Any] | None = None,
            idempotency_key: str | None = None,
        ) -> Transacted[S, E]: ...

        @overload
        async def handle(
            self,
            stream: str,
            *,
            decide: Callable[[S, Mapping[str, Any]], tuple[R, Answer[E]]],
            given: Mapping[str, Projection[Any]],
            with_result: Literal[True],
            load: Load | AllowStale = REQUIRE_LOAD,
            expected: ExpectedVersion = ANY,
            metadata: Mapping[str, Any] | None = None,
            idempotency_key: str | None = None,
        ) -> tuple[R, Transacted[S, E]]: ...

        async def handle(self, stream: str, command: Any = None, **options: Any) -> Any:
            """Decide as the blocking form does."""

    else:
        handle = writes(Deciders.handle, of="deciders")
    query = reads(Deciders[C, S, E].query, of="deciders")

    def on(self, stream: str, *, expected: ExpectedVersion = ANY) -> Party[S, E]:
        """Return a party to `handle_all`, as `Deciders.on` does; it sends no request.

        Args:
            stream: name of the stream.
            expected: version that the stream must have before the decision.
        """
        return self.deciders.on(stream, expected=expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncDecisions:
    """Decisions on tagged events for asynchronous programs: the methods of `Decisions`, awaited, with the same errors.

    Attributes:
        store: the store of tagged events, opened with an `AsyncPlace` or in memory.
        attempts: number of decisions on one command before `Contended` is raised, as in `Decisions`.
        snapshots: where folded models are stored, as in `Decisions`.
    """

    store: AsyncTaggedEvents
    attempts: int = ATTEMPTS
    snapshots: ModelSnapshots | None = None
    decisions: Decisions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        must_be(AsyncTaggedEvents, self.store, "store", "an AsyncTaggedEvents")
        decisions = Decisions(store=self.store.store, attempts=self.attempts, snapshots=self.snapshots)
        object.__setattr__(self, "decisions", decisions)

    model = reads(Decisions.model, of="decisions")
    handle = writes(Decisions.handle, of="decisions")


handle_all = written(on_streams.handle_all)
"""Run `epochal.deciders.handle_all` in asynchronous programs, on parties that `AsyncDeciders.on` makes."""
