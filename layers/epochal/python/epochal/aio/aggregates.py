"""Aggregates, awaited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochal.aio.methods import reads, writes
from epochal.store.aggregates import AggregateStore

if TYPE_CHECKING:
    from epochal.store.aggregates import AggregateStore


@dataclass(frozen=True, slots=True)
class AsyncAggregates:
    """Aggregates for asynchronous programs: each method is that of `AggregateStore`, awaited, and raises what it does.

    A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
    """

    store: AggregateStore

    append = writes(AggregateStore.append)
    try_append = writes(AggregateStore.try_append)
    persist_event = writes(AggregateStore.persist_event)
    persist_event_and_snapshot = writes(AggregateStore.persist_event_and_snapshot)
    lock = reads(AggregateStore.lock)
    latest_snapshot = reads(AggregateStore.latest_snapshot)
    replay = reads(AggregateStore.replay)
    events_after = reads(AggregateStore.events_after)
    retire = writes(AggregateStore.retire)
