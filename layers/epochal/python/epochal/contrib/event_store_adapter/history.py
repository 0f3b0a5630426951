"""Events of aggregates, for the feed: by key; numbers have no holes, so one that is missing is corruption."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from epochal.contrib.event_store_adapter.append import read
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import JournalEvent
from epochal.contrib.event_store_adapter.model import RecordedAggregateEvent
from epochal.contrib.event_store_adapter.port import IdCategories, heal_journal
from epochal.contrib.event_store_adapter.reading import EventRange, events
from epochal.contrib.event_store_adapter.store import AggregateStore, aggregates_of, run_on_tables
from epochal.errors import CorruptData
from epochal.feed.events import FeedEvent, unreadable_events
from epochal.feed.history import History
from epochal.feed.hydration import Hydrate, read_in_halves
from epochal.layout.healing import end_since
from epochal.lazy_dataclasses import dataclass, replace
from epochal.plan.limits import BATCH_KEYS
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec


@dataclass(frozen=True, slots=True)
class AggregateHistory(History):
    """Reads the events of aggregates for readers of the feed.

    Attributes:
        store: the store of aggregates.
    """

    store: AggregateStore
    name = "journal"

    @property
    def categories(self) -> IdCategories:
        """The rule that gives an aggregate its category, by the declared types."""
        return IdCategories(self.store.site.types)

    def on(self, driver: Driver) -> AggregateHistory:
        """Return the same history through another driver."""
        return AggregateHistory(replace(self.store, driver=driver))

    def events(self, *, fetch: bool = True) -> Hydrate:  # noqa: ARG002  nothing of an aggregate is in the bucket
        """Return a function that reads a range of an aggregate's events from the store."""

        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
            """Yield events `first` to `end - 1` of an aggregate, with at most 100 keys a request.

            Events that cannot be read are yielded with a fault.
            """
            aggregate = self.store.site.types.read(stream)
            if aggregate is None:
                yield from unreadable_events(
                    stream, first, end, CorruptData(f"{stream!r} is not an id of an aggregate")
                )
                return
            for start in range(first, end, BATCH_KEYS):
                read = partial(_of_aggregate, self.store, aggregate)
                yield from read_in_halves(stream, start, min(start + BATCH_KEYS, end), read)

        return hydrate

    def end_of(self, stream: str, since: int) -> int:
        """Return the index after an aggregate's last event: by its head, or by a search from `since` on.

        A head that another library wrote last does not say; then the end is searched in the journal from index `since`
        on. If `since` is above 0, the end is always searched from there.
        """
        aggregate = self.store.site.types.read(stream)
        if aggregate is not None and not since:
            head = run_on_tables(self.store.driver, read(self.store.site, aggregate))
            if head is None or head.last_seq_nr is not None:
                return 0 if head is None else head.last_seq_nr or 0
        end, error = run_on_tables(self.store.driver, end_since(heal_journal(self.store.site), stream, since))
        if error is not None:
            raise error
        return end


def open_history(settings: Settings, driver: Driver, _: BodyCodec) -> AggregateHistory:
    """Open the history of a deployment's aggregates."""
    return AggregateHistory(aggregates_of(settings, driver))


def history_of(store: object) -> AggregateHistory | None:
    """Return the history of a store of aggregates; None for any other store."""
    return AggregateHistory(store) if isinstance(store, AggregateStore) else None


def _of_aggregate(store: AggregateStore, aggregate: AggregateId, first: int, end: int) -> list[FeedEvent]:
    """Read events `first` to `end - 1` of an aggregate, by index, as events of the feed."""
    numbers = EventRange(aggregate=aggregate, first=first + 1, last=end, total=None)
    return [
        _shown(store, aggregate, event)
        for event in run_on_tables(store.driver, events(store.site, numbers, store.via))
    ]


def _shown(store: AggregateStore, aggregate: AggregateId, event: JournalEvent) -> FeedEvent:
    """Convert a journal event into one of the feed; a payload that cannot be read becomes its fault."""
    try:
        return _event(store.recorded(aggregate, event))
    except CorruptData as fault:
        return FeedEvent(
            stream=str(aggregate),
            index=event.seq_nr - 1,
            type=event.event_type or "",
            timestamp=event.occurred_at,
            fault=fault,
        )


def _event(event: RecordedAggregateEvent) -> FeedEvent:
    """Convert an aggregate's event into one of the feed, whose indices begin at 0 instead of 1."""
    return FeedEvent(
        stream=str(event.aggregate),
        index=event.seq_nr - 1,
        type=event.type,
        data=event.data,
        timestamp=event.occurred_at,
    )
