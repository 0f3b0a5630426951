"""Aggregates and deciders on them, awaited.

async with AsyncPlace() as place:
    aggregates = AsyncAggregates(open_aggregates("journal", "snapshot", place=place))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from epochal.aio.bridge import finished, reads, run, writes
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders, AggregateTransacted, Standing
from epochal.contrib.event_store_adapter.model import AggregateId
from epochal.contrib.event_store_adapter.store import AggregateStore

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")


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


@dataclass(frozen=True)
class AsyncAggregateDeciders(Generic[C, S, E]):
    """Deciders on aggregates: each method is that of `AggregateDeciders`, awaited, and raises what it does.

    Attributes:
        deciders: over the `store` of an `AsyncAggregates`.
    """

    deciders: AggregateDeciders[C, S, E]

    async def handle(
        self,
        aggregate: AggregateId,
        command: C,
        *,
        known: Standing[S] | None = None,
        idempotency_key: str | None = None,
    ) -> AggregateTransacted[S, E]:
        """`AggregateDeciders.handle`."""
        return await finished(
            run(self.deciders.handle, aggregate, command, known=known, idempotency_key=idempotency_key)
        )

    async def transact(
        self,
        aggregate: AggregateId,
        decide: Callable[[S], Sequence[E]],
        *,
        known: Standing[S] | None = None,
        idempotency_key: str | None = None,
    ) -> AggregateTransacted[S, E]:
        """`AggregateDeciders.transact`."""
        return await finished(
            run(self.deciders.transact, aggregate, decide, known=known, idempotency_key=idempotency_key)
        )

    async def transact_result(
        self,
        aggregate: AggregateId,
        decide: Callable[[S], tuple[R, Sequence[E]]],
        *,
        known: Standing[S] | None = None,
        idempotency_key: str | None = None,
    ) -> tuple[R, AggregateTransacted[S, E]]:
        """`AggregateDeciders.transact_result`."""
        return await finished(
            run(
                self.deciders.transact_result, aggregate, decide, known=known, idempotency_key=idempotency_key
            )
        )

    async def load(self, aggregate: AggregateId) -> Standing[S]:
        """`AggregateDeciders.load`."""
        return await run(self.deciders.load, aggregate)

    async def query(self, aggregate: AggregateId, projection: Callable[[S], R]) -> R:
        """`AggregateDeciders.query`."""
        return await run(self.deciders.query, aggregate, projection)
