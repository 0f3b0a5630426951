"""Pages of the events of an aggregate, which end at a number of events or bytes, and say where to go on.

Events are read a request at a time, by range or by key: so a page costs what it holds, however long the aggregate is,
and at most one request more than was asked for is held in memory, which is 1 MB, or 100 events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import Lock, RecordedAggregateEvent
from epochal.contrib.event_store_adapter.reading import EventRange, onward
from epochal.contrib.event_store_adapter.store import AggregateStore, run_on_tables
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be_whole

_FIELDS: Final = 200
"""Estimated bytes of an event's fields besides its data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatePage:
    """A page of an aggregate's events, in order.

    Attributes:
        lock: version and last event number of the aggregate when the page was read.
        events: events of the page.
        next: number of the first event after the page; None if there is none.
    """

    lock: Lock
    events: tuple[RecordedAggregateEvent, ...]
    next: int | None


def page(
    store: AggregateStore, aggregate: AggregateId, lock: Lock, *, start: int, limit: int, max_bytes: int
) -> AggregatePage:
    """Read an aggregate's events from number `start` on as a page, up to `limit` or about `max_bytes`.

    Args:
        lock: version and last event number of the aggregate, from `AggregateStore.lock` or a snapshot.
        start: number of the first event.
        limit: most events of the page.
        max_bytes: size at which the page ends; its first event may exceed it.
    """
    for name, number in (("start", start), ("limit", limit), ("max_bytes", max_bytes)):
        must_be_whole(number, name, 1)
    events: list[RecordedAggregateEvent] = []
    size = 0
    for event in walk(store, aggregate, lock, start=start, limit=limit):
        size += _FIELDS + len(event.data)
        if events and size > max_bytes:
            break
        events.append(event)
    following = start + len(events)
    return AggregatePage(
        lock=lock, events=tuple(events), next=following if following <= lock.seq_nr else None
    )


def walk(
    store: AggregateStore, aggregate: AggregateId, lock: Lock, *, start: int, limit: int | None = None
) -> Iterator[RecordedAggregateEvent]:
    """Yield an aggregate's events from number `start` on, at most `limit`, in requests made as needed.

    Args:
        lock: version and last event number of the aggregate; events after it are not read.
    """
    number, last = start, lock.seq_nr if limit is None else min(lock.seq_nr, start + limit - 1)
    while number <= last:
        numbers = EventRange(aggregate=aggregate, first=number, last=last, total=lock.seq_nr)
        for event in run_on_tables(store.driver, onward(store.site, numbers)):
            yield store.recorded(aggregate, event)
            number = event.seq_nr + 1
