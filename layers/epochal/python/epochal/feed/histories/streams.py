"""Events of named streams of any layout, from the stream; what is pruned, and in no archive, comes as `pruned`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from epochal.errors import CorruptData
from epochal.feed.history import Hydrate, faulty
from epochal.feed.results import FeedEvent
from epochal.layout.streams import Head
from epochal.model.events import Recorded
from epochal.plugins import at
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.reading import Unreadable
from epochal.store.streams import Streams


@dataclass(frozen=True, slots=True)
class StreamHistory:
    """Events of named streams."""

    store: Streams

    @property
    def name(self) -> str:
        """The layout that the streams are stored in."""
        return self.store.layout.name

    def on(self, driver: Driver) -> StreamHistory:
        """The same, through another driver."""
        return StreamHistory(self.store.on(driver))

    def events(self, *, fetch: bool = True) -> Hydrate:
        """Reads events of streams."""

        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
            if first == end:
                return
            at = first
            try:
                # Past the check of names, which is for callers: other libraries name streams more freely.
                for found in self.store.reader(fetch=fetch).found(stream, first, limit=end - first):
                    if found.index >= end:
                        break
                    yield from _pruned(stream, at, found.index)
                    yield _shown(found) if isinstance(found, Recorded) else _unreadable(stream, found)
                    at = found.index + 1
            except CorruptData as fault:
                # An item that cannot be read hides what is behind it, but no other stream.
                yield from faulty(stream, at, end, fault)
            else:
                yield from _pruned(stream, at, end)

        return hydrate

    def end_of(self, stream: str, since: int) -> int:
        """The next index of a stream."""
        head: Head | None = self.store.driver.run(self.store.layout.load(self.store.table, stream))
        return max(since, 0 if head is None else head.version)


@dataclass(frozen=True, slots=True)
class DeployedHistory:
    """Events of named streams of a deployment. Their store is opened when events are first asked for: a function starts
    up without it.

    Attributes:
        name: the layout that the streams are stored in.
        of: what opens their store.
    """

    name: str
    of: str
    settings: Settings
    driver: Driver
    codec: BodyCodec

    def on(self, driver: Driver) -> Self:
        """The same, through another driver."""
        return replace(self, driver=driver)

    def events(self, *, fetch: bool = True) -> Hydrate:
        """Reads events of streams."""
        return self.opened().events(fetch=fetch)

    def end_of(self, stream: str, since: int) -> int:
        """The next index of a stream."""
        return self.opened().end_of(stream, since)

    def opened(self) -> StreamHistory:
        """The history of their store."""
        return StreamHistory(at(self.of)(self.settings, self.driver, self.codec))


def _shown(event: Recorded) -> FeedEvent:
    return FeedEvent(
        stream=event.stream,
        index=event.index,
        type=event.type,
        data=event.data,
        meta=event.meta,
        timestamp=event.timestamp,
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        tags=event.tags,
        id=event.id,
        home=event.stream if event.tags else "",
    )


def _unreadable(stream: str, found: Unreadable) -> FeedEvent:
    return FeedEvent(
        stream=stream, index=found.index, type=found.type, timestamp=found.timestamp, fault=found.fault
    )


def _pruned(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
    return (FeedEvent(stream=stream, index=index, type="", gone="pruned") for index in range(first, end))
