"""Pages of an aggregate's events: they end at a number of events or bytes, and say where to go on.

Events are read by key, a batch at a time: so a page costs what it holds, however long the aggregate is, and holds at
most one batch more than was asked for in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from epochal.layout.journal.reading import Stretch, events
from epochal.model.aggregates import AggregateId, Lock, RecordedAggregateEvent
from epochal.plan.limits import BATCH_KEYS
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
    taken: list[RecordedAggregateEvent] = []
    size = 0
    for event in walk(store, aggregate, start, min(lock.seq_nr, start + limit - 1)):
        size += _FIELDS + len(event.data)
        if taken and size > max_bytes:
            break
        taken.append(event)
    following = start + len(taken)
    return AggregatePage(lock=lock, events=tuple(taken), next=following if following <= lock.seq_nr else None)


def walk(
    store: AggregateStore, aggregate: AggregateId, first: int, last: int
) -> Iterator[RecordedAggregateEvent]:
    """Events `first` to `last`, which must be there, read as they are taken."""
    for start in range(first, last + 1, BATCH_KEYS):
        end = min(last, start + BATCH_KEYS - 1)
        stretch = Stretch(aggregate=aggregate, first=start, last=end, total=last)
        for event in store.driver.run(events(store.site, stretch, "table")):
            yield store.recorded(aggregate, event)
