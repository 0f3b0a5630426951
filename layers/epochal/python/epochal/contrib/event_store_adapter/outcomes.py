"""How appends to aggregates end, and what a replay reads.

These are not `Appended` and `Conflict` of streams: a version of an aggregate counts appends, not events, as other
libraries have it, so an outcome has a `Lock` of both numbers where that of a stream has a token.
"""

from __future__ import annotations

from epochal.contrib.event_store_adapter.items import AggregateHead
from epochal.contrib.event_store_adapter.model import AggregateSnapshot, Lock, RecordedAggregateEvent
from epochal.errors import EpochalError
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.capacity import NOTHING, Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateAppended:
    """Result of an append that is committed, once.

    Attributes:
        first: number of the first event of the append.
        lock: version of the aggregate after the append, and number of its last event.
        retention_error: error that kept old snapshot copies from being deleted or set to expire, or None; the append is
            safe all the same, and the next append or `retire` tries again.
        replayed: whether an earlier call with the idempotency key made the append.
        capacity: DynamoDB capacity that the append consumed.
    """

    first: int
    lock: Lock
    retention_error: EpochalError | None = None
    replayed: bool = False
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateConflict:
    """Result of an append that is not committed, since the aggregate was not as the caller expected.

    Attributes:
        version: version of the aggregate; 0 if there is none.
        head: item with the aggregate's latest snapshot and version, which the expectation did not match, or None;
            `AggregateStore.since` takes it.
        capacity: DynamoDB capacity that the refused append consumed.
    """

    version: int
    head: AggregateHead | None = field(default=None, compare=False, repr=False)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


def conflict_with(head: AggregateHead | None) -> AggregateConflict:
    """Make the conflict of an append that found an unexpected head; None means that there is no aggregate."""
    return AggregateConflict(version=0 if head is None else head.version, head=head)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """An aggregate's latest snapshot and the events after it. An append with `snapshot.lock` takes one request.

    Attributes:
        snapshot: latest snapshot of the aggregate.
        events: events after the snapshot, in order.
        capacity: DynamoDB capacity that reading the snapshot and events consumed.
    """

    snapshot: AggregateSnapshot
    events: tuple[RecordedAggregateEvent, ...]
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)
