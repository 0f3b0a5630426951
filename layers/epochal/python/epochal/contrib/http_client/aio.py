"""The store behind an HTTP API for asynchronous programs: the same methods, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from epochal.aio.bridge import in_thread, iterates, reads, wait, writes
from epochal.contrib.http_client.api import PATIENCE, ApiClient, checked_url
from epochal.contrib.http_client.carrier import ANSWER_SECONDS
from epochal.contrib.http_client.credentials import sigv4
from epochal.contrib.http_client.deciders import HttpDeciders
from epochal.contrib.http_client.exchange import Auth, HttpAnswer, HttpRequest
from epochal.contrib.http_client.feed import HttpFeed
from epochal.contrib.http_client.streams import HttpStreams
from epochal.contrib.http_client.tagged import HttpTaggedEvents
from epochal.deciders.codecs import EventCodec
from epochal.deciders.loop import ATTEMPTS
from epochal.deciders.on_streams import Decider
from epochal.dynamo.wire.http import CONNECT_SECONDS, NoAnswer, Unsent
from epochal.errors import InvalidInput, brought_by
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.expected_version import ANY, ExpectedVersion
from epochal.model.kinds import must_be, must_be_seconds
from epochal.store.driver import Patience

with brought_by("async", "asynchronous stores", "aiohttp", "yarl"):
    import aiohttp
    from yarl import URL

if TYPE_CHECKING:
    from epochal.deciders.loop import Answer
    from epochal.deciders.stream_decisions import Transacted

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")


@asynccontextmanager
async def open_async_http_streams(
    url: str,
    *,
    auth: Auth | None = None,
    patience: Patience = PATIENCE,
    answer_seconds: float = ANSWER_SECONDS,
) -> AsyncIterator[AsyncHttpStreams]:
    """Open the streams behind an HTTP API in an asynchronous context, whose end closes the connections.

        async with open_async_http_streams("https://abc123.execute-api.eu-central-1.amazonaws.com") as streams:
            await streams.append("Cart-1", [Event.json("Opened", {})], expected=NO_STREAM)

    Args:
        url, patience, answer_seconds: as for `open_http_streams`.
        auth: likewise; it is called in a thread.
    """
    must_be_seconds(answer_seconds, "answer_seconds")
    seconds = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=answer_seconds)
    address, credentials = checked_url(url), sigv4() if auth is None else auth
    # aiohttp sends a request of these methods twice where the server has closed a connection that was kept. What is
    # deleted twice is a conflict, so these requests have connections of their own.
    alone = aiohttp.TCPConnector(force_close=True)
    async with (
        aiohttp.ClientSession(timeout=seconds, auto_decompress=False, trust_env=True) as session,
        aiohttp.ClientSession(
            timeout=seconds, auto_decompress=False, trust_env=True, connector=alone
        ) as once,
    ):
        api = ApiClient(
            url=address,
            send=AsyncHttpCarrier(session=session, once=once),
            auth=lambda request: in_thread(credentials, request),
            patience=patience,
            sleep=lambda seconds: wait(asyncio.sleep(seconds)),
        )
        yield AsyncHttpStreams(HttpStreams(api=api))


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncHttpCarrier:
    """Sends requests by aiohttp, each once, within what `bridge.run` runs.

    Attributes:
        session: of the event loop that runs it.
        once: likewise, for requests that must not be sent a second time.
    """

    session: aiohttp.ClientSession
    once: aiohttp.ClientSession

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        """Send a request once, and wait for the whole answer."""
        return wait(self._sent(request))

    async def _sent(self, request: HttpRequest) -> HttpAnswer:
        """Send a request once by aiohttp, return the whole answer; raise `Unsent` or `NoAnswer` without one."""
        session = self.once if request.method == "DELETE" else self.session
        if session.closed:
            raise InvalidInput("streams", "were closed while they were in use")
        where = request.url.partition("?")[0]
        try:
            async with session.request(
                request.method,
                URL(request.url, encoded=True),
                data=request.body or None,
                headers={**request.headers},
                allow_redirects=False,
            ) as answer:
                body = await answer.read()
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return HttpAnswer(status=answer.status, headers=headers, body=body)
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            nowhere = not isinstance(error, TimeoutError)
            raise Unsent(f"{type(error).__name__} at {where}", address=where, nowhere=nowhere) from error
        except (TimeoutError, aiohttp.ClientError) as error:
            raise NoAnswer(f"{type(error).__name__} at {where}") from error


@dataclass(frozen=True, slots=True)
class AsyncHttpStreams:
    """Streams behind an HTTP API: the methods of `HttpStreams`, awaited, with the same errors.

    A write that is cancelled goes on to its end, and `aio.bridge.cancelled_write` tells its outcome.

    Attributes:
        store: the blocking store of streams, whose requests are awaited.
    """

    store: HttpStreams

    append = writes(HttpStreams.append)
    try_append = writes(HttpStreams.try_append)
    append_all = writes(HttpStreams.append_all)
    try_append_all = writes(HttpStreams.try_append_all)
    append_each = writes(HttpStreams.append_each)
    load = reads(HttpStreams.load)
    page = reads(HttpStreams.page)
    read = iterates(HttpStreams.read)
    prune = writes(HttpStreams.prune)
    delete = writes(HttpStreams.delete)
    try_delete = writes(HttpStreams.try_delete)

    @property
    def tagged(self) -> AsyncHttpTaggedEvents:
        """The store of all events with tags behind the HTTP API of these streams."""
        return AsyncHttpTaggedEvents(self.store.tagged)

    @property
    def feed(self) -> AsyncHttpFeed:
        """The feed of all events behind the HTTP API of these streams."""
        return AsyncHttpFeed(self.store.feed)


@dataclass(frozen=True, slots=True)
class AsyncHttpTaggedEvents:
    """Tagged events behind an HTTP API: the methods of `HttpTaggedEvents`, awaited.

    Attributes:
        store: the blocking store of tagged events, whose requests are awaited.
    """

    store: HttpTaggedEvents

    append = writes(HttpTaggedEvents.append)
    try_append = writes(HttpTaggedEvents.try_append)
    read = reads(HttpTaggedEvents.read)
    event = reads(HttpTaggedEvents.event)


@dataclass(frozen=True, slots=True)
class AsyncHttpFeed:
    """The feed behind an HTTP API: the methods of `HttpFeed`, awaited.

    Attributes:
        store: the blocking feed, whose requests are awaited.
    """

    store: HttpFeed

    partitions = reads(HttpFeed.partitions)
    page = reads(HttpFeed.page)
    read = iterates(HttpFeed.read)
    follow = iterates(HttpFeed.follow)
    wait_for = reads(HttpFeed.wait_for)


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class AsyncHttpDeciders(Generic[C, S, E]):
    """Deciders behind an HTTP API: the methods of `HttpDeciders`, awaited, with the same errors.

    Attributes:
        streams: the blocking store of streams, whose requests are awaited.
        attempts: number of decisions on one command before `Contended` is raised, as in `HttpDeciders`.
        codec: codec of the domain's events, as in `HttpDeciders`.
        decider: the domain's rules, as in `HttpDeciders`.
    """

    streams: AsyncHttpStreams
    decider: Decider[C, S, E]
    codec: EventCodec[E]
    attempts: int = ATTEMPTS
    deciders: HttpDeciders[C, S, E] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        must_be(AsyncHttpStreams, self.streams, "streams", "an AsyncHttpStreams")
        object.__setattr__(self, "deciders", self._blocking())

    def _blocking(self) -> HttpDeciders[C, S, E]:
        """Build the deciders whose calls are awaited."""
        return HttpDeciders(
            streams=self.streams.store, decider=self.decider, codec=self.codec, attempts=self.attempts
        )

    if TYPE_CHECKING:  # type checkers cannot follow `writes` through the forms of `handle`

        @overload
        async def handle(
            self,
            stream: str,
            command: C,
            *,
            expected: ExpectedVersion = ANY,
            metadata: Mapping[str, Any] | None = None,
        ) -> Transacted[S, E]: ...

        @overload
        async def handle(
            self,
            stream: str,
            *,
            decide: Callable[[S], Answer[E]],
            with_result: Literal[False] = False,
            expected: ExpectedVersion = ANY,
            metadata: Mapping[str, Any] | None = None,
        ) -> Transacted[S, E]: ...

        @overload
        async def handle(
            self,
            stream: str,
            *,
            decide: Callable[[S], tuple[R, Answer[E]]],
            with_result: Literal[True],
            expected: ExpectedVersion = ANY,
            metadata: Mapping[str, Any] | None = None,
        ) -> tuple[R, Transacted[S, E]]: ...

        async def handle(self, stream: str, command: Any = None, **options: Any) -> Any:
            """Decide as the blocking form does."""

    else:
        handle = writes(HttpDeciders.handle, of="deciders")
    query = reads(HttpDeciders[C, S, E].query, of="deciders")
