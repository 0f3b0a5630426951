"""Stores, awaited: streams, tagged events, the feed, read models, and keys of people who can be forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from epochal.aio.bridge import each, finished, iterates, reads, run, writes, written
from epochal.bulk import Bulk
from epochal.deciders import on_queries, on_streams
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Deciders, Party
from epochal.feed.reader import FeedReader
from epochal.joined import JoinedAppends
from epochal.lazy_dataclasses import dataclass
from epochal.read_models.documents import ReadModel, ReadModels
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore
from epochal.timers.stores import StreamTimers, TagTimers, timers_of

if TYPE_CHECKING:
    from epochal.read_models.keys import Dropped, SecondaryKey
    from epochal.subjects.sealing import Shredded, Subjects


@dataclass(frozen=True, slots=True)
class AsyncStreams:
    """A store of streams for asynchronous programs: each method is that of `Streams`, awaited, and raises what it does.

    A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
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
        """`Streams.tagged`, awaited."""
        return AsyncTaggedEvents(self.store.tagged)

    @property
    def timers(self) -> AsyncStreamTimers:
        """Its timers, awaited."""
        return AsyncStreamTimers(timers_of(self.store))


@dataclass(frozen=True, slots=True)
class AsyncTaggedEvents:
    """A store of tagged events for asynchronous programs: its methods, awaited, raise what the store's own do.

    An append that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
    """

    store: TaggedStore

    append = writes(TaggedStore.append)
    try_append = writes(TaggedStore.try_append)
    read = reads(TaggedStore.read)
    event = reads(TaggedStore.event)
    events = reads(TaggedStore.events)
    appended = reads(TaggedStore.appended)

    @property
    def timers(self) -> AsyncTagTimers:
        """Its timers, awaited."""
        return AsyncTagTimers(timers_of(self.store))


@dataclass(frozen=True, slots=True)
class AsyncStreamTimers:
    """Timers of streams for asynchronous programs: the methods of `StreamTimers`, awaited, raise what those do."""

    store: StreamTimers

    pending = reads(StreamTimers.pending)
    schedule = writes(StreamTimers.schedule)
    cancel = writes(StreamTimers.cancel)


@dataclass(frozen=True, slots=True)
class AsyncTagTimers:
    """Timers of tags for asynchronous programs: the methods of `TagTimers`, awaited, raise what those do."""

    store: TagTimers

    pending = reads(TagTimers.pending)
    schedule = writes(TagTimers.schedule)
    cancel = writes(TagTimers.cancel)


@dataclass(frozen=True, slots=True)
class AsyncJoinedAppends:
    """Appends of tasks, joined where they meet: the methods of `JoinedAppends`, awaited, which raise what those do.

    One that is cancelled goes on to its end, whether it writes or waits for another that does, and `cancelled_write`
    tells its outcome. What others append with it is not touched by that.

    Attributes:
        joined: over the `store` of an `AsyncStreams`; one for all tasks.
    """

    joined: JoinedAppends

    append = writes(JoinedAppends.append, of="joined")
    try_append = writes(JoinedAppends.try_append, of="joined")


@dataclass(frozen=True, slots=True)
class AsyncBulk:
    """Many appends at once: `Bulk.append`, awaited, which raises what it does.

    A call that is cancelled goes on to its end, and `cancelled_write` tells its answers.

    Attributes:
        bulk: over the `store` of an `AsyncStreams`.
    """

    bulk: Bulk

    append = writes(Bulk.append, of="bulk")


@dataclass(frozen=True, slots=True)
class AsyncFeed:
    """The feed for asynchronous programs: each method is that of `FeedReader`, awaited, and raises what it does.

    Attributes:
        reader: of an `AsyncPlace`, or in memory.
    """

    reader: FeedReader

    partitions = reads(FeedReader.partitions, of="reader")
    place = reads(FeedReader.place, of="reader")
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
    """A page that is waited for may be cancelled at any time."""
    ordered = iterates(FeedReader.ordered, of="reader")


@dataclass(frozen=True, slots=True)
class AsyncReadModel:
    """One generation of a read model: each method is that of `ReadModel`, awaited, and raises what it does.

    A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.
    """

    model: ReadModel

    apply = writes(ReadModel.apply, of="model")
    """`fold` is a plain function: what its `documents` wait for is awaited all the same."""

    remove = writes(ReadModel.remove, of="model")
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
        store: of an `AsyncPlace`, or in memory.
    """

    store: ReadModels

    def open(
        self,
        name: str,
        generation: int,
        *,
        of: type | None = None,
        keys: Mapping[str, Callable[[Any], Any] | SecondaryKey] | None = None,
        spread: int = 1,
        holds: Callable[[Any], Any] | None = None,
    ) -> AsyncReadModel:
        """`ReadModels.open`, which asks for nothing: it is not awaited."""
        opened = self.store.open(name, generation, of=of, keys=keys, spread=spread, holds=holds)
        return AsyncReadModel(opened)

    async def live(self, name: str, *, of: type | None = None) -> AsyncReadModel:
        """`ReadModels.live`."""
        return AsyncReadModel(await run(partial(self.store.live, of=of), name))

    async def drop(self, name: str, generation: int, *, after: str | None = None) -> Dropped:
        """`ReadModels.drop`."""
        return await finished(run(partial(self.store.drop, after=after), name, generation))

    async def swap(self, name: str, generation: int) -> AsyncReadModel:
        """`ReadModels.swap`."""
        return AsyncReadModel(await finished(run(self.store.swap, name, generation)))


@dataclass(frozen=True, slots=True)
class AsyncSubjects:
    """Keys of subjects for asynchronous programs: each method is that of `Subjects`, awaited, and raises what it does.

    `sealed_codec` takes the `store`: stores and deciders of the same event loop seal and unseal with it.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
    """

    store: Subjects

    async def seal(self, subject: str, body: bytes) -> bytes:
        """`Subjects.seal`."""
        return await run(self.store.seal, subject, body)

    async def unseal(self, body: bytes) -> bytes | Shredded:
        """`Subjects.unseal`."""
        return await run(self.store.unseal, body)

    async def forget(self, subject: str) -> None:
        """`Subjects.forget`."""
        await finished(run(self.store.forget, subject))

    async def is_forgotten(self, subject: str) -> bool:
        """`Subjects.is_forgotten`."""
        return await run(self.store.is_forgotten, subject)

    async def reapply(self) -> AsyncIterator[str]:
        """`Subjects.reapply`: each subject, as it is forgotten again."""
        async for subject in each(self.store.reapply):
            yield subject


# Deciders on streams and on tagged events, awaited.

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True)
class AsyncDeciders(Generic[C, S, E]):
    """Deciders for asynchronous programs: each method is that of `Deciders`, awaited, and raises what it does.

    `decide` and `evolve` are plain functions, as before: they must not wait. A transaction that is cancelled goes on to
    its end, and `cancelled_write` tells its outcome.

    Attributes:
        deciders: over the `store` of an `AsyncStreams`.
    """

    deciders: Deciders[C, S, E]

    handle = writes(Deciders[C, S, E].handle, of="deciders")
    transact = writes(Deciders[C, S, E].transact, of="deciders")
    transact_result = writes(Deciders[C, S, E].transact_result, of="deciders")
    query = reads(Deciders[C, S, E].query, of="deciders")

    def on(self, stream: str) -> Party[S, E]:
        """`Deciders.on`, which asks for nothing: a party to `transact_all`."""
        return self.deciders.on(stream)


@dataclass(frozen=True, slots=True)
class AsyncDecisions:
    """Decisions on tagged events: each method is that of `Decisions`, awaited, and raises what it does.

    Attributes:
        decisions: over the `store` of an `AsyncTaggedEvents`.
    """

    decisions: Decisions

    model = reads(Decisions.model, of="decisions")
    decide = writes(Decisions.decide, of="decisions")
    decide_result = writes(Decisions.decide_result, of="decisions")


transact_all = written(on_streams.transact_all)
"""`epochal.deciders.on_streams.transact_all`, of parties that `AsyncDeciders.on` makes."""

transact_all_result = written(on_streams.transact_all_result)
"""`epochal.deciders.on_streams.transact_all_result`, likewise."""

transact_with = written(on_queries.transact_with)
"""`epochal.deciders.on_queries.transact_with`, likewise."""
