"""How appends to aggregates end, and what a replay reads.

These are not `Appended` and `Conflict` of streams: a version of an aggregate counts appends, not events, as other
libraries have it, so an outcome has a `Lock` of both numbers where that of a stream has a token.
"""

from __future__ import annotations

from epochal.contrib.event_store_adapter.items import AggregateHead
from epochal.contrib.event_store_adapter.model import AggregateSnapshot, Lock, RecordedAggregateEvent
from epochal.errors import EpochalError
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.versions import NOTHING, Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateAppended:
    """Result of an append that is committed, once.

    Attributes:
        first: number of the first event of the append.
        lock: lock that the append left, with the number of its last event.
        retention_error: error with which retiring old snapshots failed afterwards, or None; the events are safe all the
            same, and the next append or `retire` takes it up.
        replayed: whether an earlier call with the idempotency key made the append.
        capacity: capacity that the call consumed.
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
        head: the aggregate's head that did not match the expectation, or None; see `AggregateStore.since`.
        capacity: capacity that the call consumed.
    """

    version: int
    head: AggregateHead | None = field(default=None, compare=False, repr=False)
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


def conflict_with(head: AggregateHead | None) -> AggregateConflict:
    """Make the conflict of an append that found an unexpected head; None means that there is no aggregate."""
    return AggregateConflict(version=0 if head is None else head.version, head=head)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """An aggregate's snapshot and the events after it. `snapshot.lock` makes the next append one request.

    Attributes:
        snapshot: snapshot in the aggregate's head.
        events: events after the snapshot, in order.
        capacity: capacity that the replay consumed.
    """

    snapshot: AggregateSnapshot
    events: tuple[RecordedAggregateEvent, ...]
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)
