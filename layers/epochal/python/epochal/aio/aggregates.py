"""Aggregates, awaited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epochal.aio.bridge import run
from epochal.aio.writes import finished
from epochal.model.aggregates import (
    AggregateEvent,
    AggregateId,
    AggregateSnapshot,
    ExpectedLock,
    Lock,
    RecordedAggregateEvent,
)
from epochal.model.versions import ANY

if TYPE_CHECKING:
    from epochal.store.aggregates import AggregateAppended, AggregateConflict, AggregateStore, Replay


@dataclass(frozen=True, slots=True)
class AsyncAggregates:
    """Aggregates for asynchronous programs: each method is that of `AggregateStore`, awaited, and raises what it does.

    A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
    """

    store: AggregateStore

    async def append(
        self,
        aggregate: AggregateId,
        new: Sequence[AggregateEvent],
        *,
        snapshot: bytes | None = None,
        expected: ExpectedLock = ANY,
        idempotency_key: str | None = None,
    ) -> AggregateAppended:
        """`AggregateStore.append`."""
        return await finished(
            run(
                self.store.append,
                aggregate,
                new,
                snapshot=snapshot,
                expected=expected,
                idempotency_key=idempotency_key,
            )
        )

    async def try_append(
        self,
        aggregate: AggregateId,
        new: Sequence[AggregateEvent],
        *,
        snapshot: bytes | None = None,
        expected: ExpectedLock = ANY,
        idempotency_key: str | None = None,
    ) -> AggregateAppended | AggregateConflict:
        """`AggregateStore.try_append`."""
        return await finished(
            run(
                self.store.try_append,
                aggregate,
                new,
                snapshot=snapshot,
                expected=expected,
                idempotency_key=idempotency_key,
            )
        )

    async def persist_event(
        self, aggregate: AggregateId, event: AggregateEvent, lock: Lock
    ) -> AggregateAppended:
        """`AggregateStore.persist_event`."""
        return await finished(run(self.store.persist_event, aggregate, event, lock))

    async def persist_event_and_snapshot(
        self, aggregate: AggregateId, event: AggregateEvent, snapshot: bytes, lock: Lock | None = None
    ) -> AggregateAppended:
        """`AggregateStore.persist_event_and_snapshot`."""
        return await finished(run(self.store.persist_event_and_snapshot, aggregate, event, snapshot, lock))

    async def lock(self, aggregate: AggregateId) -> Lock | None:
        """`AggregateStore.lock`."""
        return await run(self.store.lock, aggregate)

    async def latest_snapshot(self, aggregate: AggregateId) -> AggregateSnapshot | None:
        """`AggregateStore.latest_snapshot`."""
        return await run(self.store.latest_snapshot, aggregate)

    async def replay(self, aggregate: AggregateId) -> Replay | None:
        """`AggregateStore.replay`."""
        return await run(self.store.replay, aggregate)

    async def events_after(
        self, aggregate: AggregateId, seq_nr: int = 0, *, limit: int | None = None
    ) -> list[RecordedAggregateEvent]:
        """`AggregateStore.events_after`."""
        return await run(self.store.events_after, aggregate, seq_nr, limit=limit)

    async def retire(self, aggregate: AggregateId) -> int:
        """`AggregateStore.retire`."""
        return await finished(run(self.store.retire, aggregate))
