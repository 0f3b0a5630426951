"""Tagged events, by tag: the tag's entries, then the events that they name.

One that is missing, and not being written, has expired.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Final

from epochal.contrib.sekiban.entries import entries
from epochal.contrib.sekiban.items import RecordedTaggedEvent
from epochal.contrib.sekiban.reading import certain_events, read_heads
from epochal.contrib.sekiban.store import DcbEvents, dcb_of
from epochal.errors import CorruptData
from epochal.feed.events import FeedEvent, tagged_feed_event, unreadable_events
from epochal.feed.history import History
from epochal.feed.hydration import Hydrate
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.tag_answers import TagEntry
from epochal.plan.limits import BATCH_KEYS
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec

PLACES: Final = 10_000
"""Tags whose last read place is remembered: some 2 MB."""


class TagPlaces:
    """A cache of how far tags have been read, so that reading on needs no seek; safe under threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, int], str] = OrderedDict()

    def before(self, tag: str, index: int) -> str | None:
        """Return the sortable id of the entry before `index` of a tag, or None if not cached."""
        with self._lock:
            return self._known.get((tag, index))

    def keep(self, tag: str, last: TagEntry, index: int) -> None:
        """Remember the entry before `index` of a tag, and evict the oldest one if the cache is full."""
        with self._lock:
            self._known[tag, index] = last.place
            if len(self._known) > PLACES:
                self._known.popitem(last=False)


@dataclass(frozen=True, slots=True)
class TagHistory(History):
    """The history of tagged events for the feed, each tag read as a stream."""

    store: DcbEvents
    places: TagPlaces = field(default_factory=TagPlaces, repr=False, compare=False)
    name = "dcb"

    def on(self, driver: Driver) -> TagHistory:
        """Return the same history read through another driver."""
        return replace(self, store=replace(self.store, driver=driver))

    def events(self, *, fetch: bool = True) -> Hydrate:  # noqa: ARG002  nothing of a tagged event is in the bucket
        """Return a function that yields the events `first` to `end - 1` of a tag."""

        def hydrate(tag: str, first: int, end: int) -> Iterator[FeedEvent]:
            """Yield the events `first` to `end - 1` of a tag, with a marker for an expired or broken event."""
            offset = first
            while offset < end:
                after = self.places.before(tag, offset)
                try:
                    batch = self.store.driver.run(
                        entries(self.store.site, tag, offset, end, limit=BATCH_KEYS, after=after)
                    )
                except CorruptData as fault:
                    yield from unreadable_events(tag, offset, end, fault)
                    return
                events = _tagged(self.store, [entry.event_id for entry in batch])
                for index, entry in enumerate(batch, offset):
                    yield _of_entry(tag, index, entry, events.get(entry.event_id))
                offset += len(batch)
                self.places.keep(tag, batch[-1], offset)

        return hydrate

    def end_of(self, stream: str, since: int) -> int:
        """Return the number of events that a tag has had, at least `since`."""
        return max(since, self.store.driver.run(read_heads(self.store.site, [stream]))[stream].count)


def open_history(settings: Settings, driver: Driver, _: BodyCodec) -> TagHistory:
    """Open the history of a deployment's tagged events."""
    return TagHistory(dcb_of(settings, driver))


def history_of(store: object) -> TagHistory | None:
    """Return the history of a store of tagged events, or None for any other store."""
    return TagHistory(store) if isinstance(store, DcbEvents) else None


def _tagged(store: DcbEvents, ids: list[str]) -> dict[str, RecordedTaggedEvent | CorruptData]:
    """Read tagged events by id, with the `CorruptData` error in place of each broken event.

    All are read together; if one of them is broken, each half is read separately. Missing events have expired.
    """
    try:
        return {**store.driver.run(certain_events(store.site, ids))}
    except CorruptData as fault:
        if len(ids) == 1:
            return {ids[0]: fault}
        half = len(ids) // 2
        return _tagged(store, ids[:half]) | _tagged(store, ids[half:])


def _of_entry(
    tag: str, index: int, entry: TagEntry, event: RecordedTaggedEvent | CorruptData | None
) -> FeedEvent:
    """Make the feed event of an entry; if its event is expired or broken, make a marker instead."""
    if isinstance(event, RecordedTaggedEvent):
        return tagged_feed_event(tag, index, event, event.executed_user)
    return FeedEvent(
        stream=tag,
        index=index,
        type=entry.event_type,
        timestamp=entry.created_at,
        id=entry.event_id,
        gone="expired" if event is None else None,
        fault=event,
    )
