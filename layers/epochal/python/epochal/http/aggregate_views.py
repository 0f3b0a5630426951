"""Aggregates, their events and appends to them as JSON text.

Every event has room in an answer of its own: it is an item of at most 400 KB.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simplejson import RawJSON

from epochal.http.answer_size import Room, text_of
from epochal.model.aggregates import AggregateId, AggregateSnapshot, Lock, RecordedAggregateEvent
from epochal.plan.units import Units
from epochal.store.aggregate_pages import AggregatePage
from epochal.store.aggregates import AggregateAppended


def appended(aggregate: AggregateId, outcome: AggregateAppended, units: Units) -> dict[str, Any]:
    """The answer to an append."""
    return {
        "aggregate": str(aggregate),
        "first": outcome.first,
        **stand(outcome.lock),
        "replayed": outcome.replayed,
        "capacity": {"read": units.read, "write": units.write},
    }


def state(snapshot: AggregateSnapshot, found: AggregatePage) -> str:
    """A snapshot and the events after it; they end earlier than `found` where the answer is full."""
    room = Room()
    return text_of(
        {
            "aggregate": str(snapshot.aggregate),
            **stand(snapshot.lock),
            "snapshotSeqNr": snapshot.seq_nr,
            "snapshot": room.fit(body(snapshot.data)),
            **_events(found, room),
        }
    )


def page(aggregate: AggregateId, found: AggregatePage) -> str:
    """A page of events; it ends earlier than `found` where the answer is full."""
    return text_of({"aggregate": str(aggregate), **stand(found.lock), **_events(found, Room())})


def event(found: RecordedAggregateEvent) -> dict[str, Any]:
    """An event."""
    return {
        "seqNr": found.seq_nr,
        "type": found.type,
        "occurredAt": found.occurred_at,
        "data": body(found.data),
    }


def stand(lock: Lock) -> dict[str, int]:
    """Where an aggregate stands."""
    return {"version": lock.version, "lastSeqNr": lock.seq_nr}


def body(data: bytes) -> Any:
    """An event's data or a snapshot: JSON to the byte, which payloads always hold."""
    return RawJSON(data.decode())


def _events(found: AggregatePage, room: Room) -> dict[str, Any]:
    shown = list(_fitting(found.events, room))
    following = found.next if len(shown) == len(found.events) else found.events[len(shown)].seq_nr
    return {"events": shown, "next": following}


def _fitting(events: Iterable[RecordedAggregateEvent], room: Room) -> Iterable[Any]:
    for each in events:
        view = room.fit(event(each))
        if view is None:
            return
        yield view
