"""Pages of an aggregate's events: they end at a number of events or bytes, and say where to go on.

Events are read a request at a time, by range or by key: so a page costs what it holds, however long the aggregate is,
and at most one request more than was asked for is held in memory, which is 1 MB, or 100 events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from epochal.layout.journal.reading import EventRange, onward
from epochal.model.aggregates import AggregateId, Lock, RecordedAggregateEvent
from epochal.model.kinds import must_be_whole
from epochal.store.aggregates import AggregateStore

_FIELDS: Final = 200
"""Bytes reckoned for an event's fields besides its data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatePage:
    """Some events of an aggregate, in order.

    Attributes:
        lock: where the aggregate stood when the page was read.
        next: number of the first event that is not here; None where there is none.
    """

    lock: Lock
    events: tuple[RecordedAggregateEvent, ...]
    next: int | None


def page(
    store: AggregateStore, aggregate: AggregateId, lock: Lock, *, start: int, limit: int, max_bytes: int
) -> AggregatePage:
    """Events from number `start` on up to `limit` or a size, at least one where there is one.

    Args:
        lock: where the aggregate stands, from `AggregateStore.lock` or a snapshot.
    """
    for name, number in (("from", start), ("limit", limit), ("max_bytes", max_bytes)):
        must_be_whole(number, name, 1)
    taken: list[RecordedAggregateEvent] = []
    size = 0
    for event in walk(store, aggregate, lock, start=start, limit=limit):
        size += _FIELDS + len(event.data)
        if taken and size > max_bytes:
            break
        taken.append(event)
    following = start + len(taken)
    return AggregatePage(lock=lock, events=tuple(taken), next=following if following <= lock.seq_nr else None)


def walk(
    store: AggregateStore, aggregate: AggregateId, lock: Lock, *, start: int, limit: int | None = None
) -> Iterator[RecordedAggregateEvent]:
    """Events from number `start` on, at most `limit`, read as they are taken."""
    at, last = start, lock.seq_nr if limit is None else min(lock.seq_nr, start + limit - 1)
    while at <= last:
        wanted = EventRange(aggregate=aggregate, first=at, last=last, total=lock.seq_nr)
        for event in store.driver.run(onward(store.site, wanted)):
            yield store.recorded(aggregate, event)
            at = event.seq_nr + 1
