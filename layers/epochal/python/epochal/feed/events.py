"""Events of each layout in the shape that the feed has for all of them.

tips       from the stream; what is pruned, and in no archive, comes as `pruned`
journal    by key; numbers have no holes, so one that is missing is corruption
dcb        the tag's entries, then the events that they name; one that is not there has expired
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Final

from epochal.errors import CorruptData
from epochal.feed.hydrating import Hydrate
from epochal.feed.results import FeedEvent
from epochal.layout.dcb.listing import TagEntry
from epochal.layout.dcb.reading import read_events
from epochal.layout.dcb.seeking import entries
from epochal.layout.journal.reading import Stretch, events
from epochal.model.aggregates import RecordedAggregateEvent
from epochal.model.dcb import RecordedTaggedEvent
from epochal.model.events import Recorded
from epochal.plan.limits import BATCH_KEYS
from epochal.store.aggregates import AggregateStore, recorded
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents

PLACES: Final = 10_000
"""Tags whose place is remembered: some 2 MB."""


class Places:
    """Where readers have got to in tags, so that they need not seek when they read on; safe under threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, int], str] = OrderedDict()

    def before(self, tag: str, index: int) -> str | None:
        """The sortable id of the entry before `index`, where that is known."""
        with self._lock:
            return self._known.get((tag, index))

    def keep(self, tag: str, last: TagEntry, index: int) -> None:
        """Remember the entry before `index`, and forget what was remembered longest ago."""
        with self._lock:
            self._known[tag, index] = last.sortable_id
            if len(self._known) > PLACES:
                self._known.popitem(last=False)


def from_streams(streams: Streams, *, fetch: bool = True) -> Hydrate:
    """Events of named streams; without `fetch`, bodies in the bucket stay claims."""

    def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
        at = first
        # Past the check of names, which is for callers: other libraries name streams more freely.
        for event in streams.reader(fetch=fetch).events(stream, first, end - first, "forward"):
            if event.index >= end:
                break
            yield from _pruned(stream, at, event.index)
            yield of_stream(event)
            at = event.index + 1
        yield from _pruned(stream, at, end)

    return hydrate


def from_aggregates(store: AggregateStore) -> Hydrate:
    """Events of aggregates."""

    def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
        aggregate = store.site.types.read(stream)
        if aggregate is None:
            raise CorruptData(f"{stream!r} is no id of an aggregate")
        for start in range(first, end, BATCH_KEYS):
            last = min(start + BATCH_KEYS, end)
            stretch = Stretch(aggregate=aggregate, first=start + 1, last=last, total=None)
            for event in store.driver.run(events(store.site, stretch, store.via)):
                yield of_aggregate(recorded(aggregate, event))

    return hydrate


def from_tagged(store: TaggedEvents, places: Places) -> Hydrate:
    """Tagged events, by tag."""

    def hydrate(tag: str, first: int, end: int) -> Iterator[FeedEvent]:
        at = first
        while at < end:
            after = places.before(tag, at)
            batch = store.driver.run(entries(store.site, tag, at, end, limit=BATCH_KEYS, after=after))
            found = store.driver.run(read_events(store.site, [entry.event_id for entry in batch]))
            for offset, entry in enumerate(batch):
                event = found.get(entry.event_id)
                yield (
                    _expired(tag, at + offset, entry) if event is None else of_tag(tag, at + offset, event)
                )
            at += len(batch)
            places.keep(tag, batch[-1], at)

    return hydrate


def of_stream(event: Recorded) -> FeedEvent:
    """An event of a named stream."""
    return FeedEvent(
        stream=event.stream,
        index=event.index,
        type=event.type,
        data=event.data,
        meta=event.meta,
        timestamp=event.timestamp,
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
    )


def of_aggregate(event: RecordedAggregateEvent) -> FeedEvent:
    """An event of an aggregate; numbers begin at 1, indices at 0."""
    return FeedEvent(
        stream=str(event.aggregate),
        index=event.seq_nr - 1,
        type=event.type,
        data=event.data,
        timestamp=event.occurred_at,
    )


def of_tag(tag: str, index: int, event: RecordedTaggedEvent) -> FeedEvent:
    """A tagged event, as event `index` of one of its tags."""
    return FeedEvent(
        stream=tag,
        index=index,
        type=event.type,
        data=event.data.encode(),
        timestamp=event.timestamp,
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        tags=event.tags,
        id=event.id,
        user=event.executed_user,
    )


def _expired(tag: str, index: int, entry: TagEntry) -> FeedEvent:
    return FeedEvent(
        stream=tag,
        index=index,
        type=entry.event_type,
        timestamp=entry.created_at,
        id=entry.event_id,
        gone="expired",
    )


def _pruned(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
    return (FeedEvent(stream=stream, index=index, type="", gone="pruned") for index in range(first, end))
