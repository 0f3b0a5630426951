"""Aggregates and deciders on them, awaited.

async with AsyncPlace() as place:
    aggregates = AsyncAggregates(open_aggregates("journal", "snapshot", place=place))
"""

from __future__ import annotations

from typing import Generic, TypeVar

from epochal.aio.bridge import reads, writes
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.lazy_dataclasses import dataclass

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class AsyncAggregates:
    """Aggregates for asynchronous programs: each method awaits that of `AggregateStore`.

    It raises the same errors. A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: the store of aggregates, from an `AsyncPlace` or in memory.
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


@dataclass(frozen=True)
class AsyncAggregateDeciders(Generic[C, S, E]):
    """Deciders on aggregates for asynchronous programs: each method awaits that of `AggregateDeciders`.

    It raises the same errors.

    Attributes:
        deciders: the deciders, over the `store` of an `AsyncAggregates`.
    """

    deciders: AggregateDeciders[C, S, E]

    handle = writes(AggregateDeciders[C, S, E].handle, of="deciders")
    transact = writes(AggregateDeciders[C, S, E].transact, of="deciders")
    transact_result = writes(AggregateDeciders[C, S, E].transact_result, of="deciders")
    load = reads(AggregateDeciders[C, S, E].load, of="deciders")
    query = reads(AggregateDeciders[C, S, E].query, of="deciders")
