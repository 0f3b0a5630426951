"""Events of each layout in the shape that the feed has for all of them.

tips       from the stream; what is pruned, and in no archive, comes as `pruned`
journal    by key; numbers have no holes, so one that is missing is corruption
dcb        the tag's entries, then the events that they name; one that is missing, and not being written, has expired

What cannot be read comes with its fault, and whatever can be is read beside it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Final

from epochal.errors import CorruptData
from epochal.feed.hydration import Hydrate
from epochal.feed.results import FeedEvent
from epochal.layout.dcb.reading import certain_events
from epochal.layout.dcb.seeking import entries
from epochal.layout.journal.items import StoredEvent
from epochal.layout.journal.reading import Stretch, events
from epochal.model.aggregates import AggregateId, RecordedAggregateEvent
from epochal.model.dcb import RecordedTaggedEvent, bytes_of
from epochal.model.events import Recorded
from epochal.model.tagged_results import TagEntry
from epochal.plan.limits import BATCH_KEYS
from epochal.store.aggregates import AggregateStore
from epochal.store.results import Unreadable
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
        try:
            # Past the check of names, which is for callers: other libraries name streams more freely.
            for found in streams.reader(fetch=fetch).found(stream, first, limit=end - first):
                if found.index >= end:
                    break
                yield from _pruned(stream, at, found.index)
                yield of_stream(found) if isinstance(found, Recorded) else _unreadable(stream, found)
                at = found.index + 1
        except CorruptData as fault:
            # An item that cannot be read hides what lies behind it, but no other stream.
            yield from _faulty(stream, at, end, fault)
        else:
            yield from _pruned(stream, at, end)

    return hydrate


def from_aggregates(store: AggregateStore) -> Hydrate:
    """Events of aggregates."""

    def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
        aggregate = store.site.types.read(stream)
        if aggregate is None:
            yield from _faulty(stream, first, end, CorruptData(f"{stream!r} is no id of an aggregate"))
            return
        for start in range(first, end, BATCH_KEYS):
            yield from _of_aggregate(store, aggregate, start, min(start + BATCH_KEYS, end))

    return hydrate


def _of_aggregate(store: AggregateStore, aggregate: AggregateId, first: int, end: int) -> Iterator[FeedEvent]:
    """Events of an aggregate together; where one of them is missing or broken, those of either half."""
    stretch = Stretch(aggregate=aggregate, first=first + 1, last=end, total=None)
    try:
        found = store.driver.run(events(store.site, stretch, store.via))
    except CorruptData as fault:
        if end - first == 1:
            yield from _faulty(str(aggregate), first, end, fault)
            return
        middle = (first + end) // 2
        yield from _of_aggregate(store, aggregate, first, middle)
        yield from _of_aggregate(store, aggregate, middle, end)
    else:
        yield from (_shown(store, aggregate, event) for event in found)


def _shown(store: AggregateStore, aggregate: AggregateId, event: StoredEvent) -> FeedEvent:
    try:
        return of_aggregate(store.recorded(aggregate, event))
    except CorruptData as fault:
        return FeedEvent(
            stream=str(aggregate),
            index=event.seq_nr - 1,
            type=event.event_type or "",
            timestamp=event.occurred_at,
            fault=fault,
        )


def from_tagged(store: TaggedEvents, places: Places) -> Hydrate:
    """Tagged events, by tag."""

    def hydrate(tag: str, first: int, end: int) -> Iterator[FeedEvent]:
        at = first
        while at < end:
            after = places.before(tag, at)
            try:
                batch = store.driver.run(entries(store.site, tag, at, end, limit=BATCH_KEYS, after=after))
            except CorruptData as fault:
                yield from _faulty(tag, at, end, fault)
                return
            found = _tagged(store, [entry.event_id for entry in batch])
            for index, entry in enumerate(batch, at):
                yield _of_entry(tag, index, entry, found.get(entry.event_id))
            at += len(batch)
            places.keep(tag, batch[-1], at)

    return hydrate


def _tagged(store: TaggedEvents, ids: list[str]) -> dict[str, RecordedTaggedEvent | CorruptData]:
    """Tagged events together; where one of them is broken, those of either half. What is missing has expired."""
    try:
        return {**store.driver.run(certain_events(store.site, ids))}
    except CorruptData as fault:
        if len(ids) == 1:
            return {ids[0]: fault}
        half = len(ids) // 2
        return _tagged(store, ids[:half]) | _tagged(store, ids[half:])


def _of_entry(
    tag: str, index: int, entry: TagEntry, found: RecordedTaggedEvent | CorruptData | None
) -> FeedEvent:
    if isinstance(found, RecordedTaggedEvent):
        return of_tag(tag, index, found)
    return FeedEvent(
        stream=tag,
        index=index,
        type=entry.event_type,
        timestamp=entry.created_at,
        id=entry.event_id,
        gone="expired" if found is None else None,
        fault=found,
    )


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
        data=bytes_of(event.data),
        meta=bytes_of(event.meta),
        timestamp=event.timestamp,
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        tags=event.tags,
        id=event.id,
        user=event.executed_user,
    )


def _unreadable(stream: str, found: Unreadable) -> FeedEvent:
    return FeedEvent(
        stream=stream, index=found.index, type=found.type, timestamp=found.timestamp, fault=found.fault
    )


def _faulty(stream: str, first: int, end: int, fault: CorruptData) -> Iterator[FeedEvent]:
    return (FeedEvent(stream=stream, index=index, type="", fault=fault) for index in range(first, end))


def _pruned(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
    return (FeedEvent(stream=stream, index=index, type="", gone="pruned") for index in range(first, end))
