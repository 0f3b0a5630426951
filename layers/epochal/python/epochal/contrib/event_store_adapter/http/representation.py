"""Aggregates as JSON and back: events of a request, and what is answered.

    {"type": "Renamed", "data": {"to": "Ann"}, "occurredAt": "2013-01-01T10:00:00Z"}

`data` and a snapshot are any JSON, null included, their numbers exact. Bodies have no other form: the libraries that
share the tables could not read it. Every event has room in an answer of its own: it is an item of at most 400 KB.

An aggregate's ETag is the lock of its head, `"version.number"`: an exact state. Where an expectation may stand, and how
its failure is answered, is the same as for streams (`preconditions`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from simplejson import RawJSON

from epochal.contrib.event_store_adapter.model import (
    AggregateEvent,
    AggregateId,
    AggregateSnapshot,
    AggregateTypes,
    Lock,
    RecordedAggregateEvent,
)
from epochal.contrib.event_store_adapter.store import AggregateAppended, AggregatePage
from epochal.errors import InvalidInput
from epochal.http.answer_size import AnswerSize, capacity
from epochal.http.fields import MAX_TYPE_BYTES, Node, json_body, moment, required
from epochal.http.operation import Request
from epochal.model.versions import MAX_VERSION, AtVersion
from epochal.plan.units import Units

_NUMBER: Final = r"(0|[1-9]\d{0,9})"
_LOCK: Final = re.compile(rf"(?!0\.){_NUMBER}(?:\.{_NUMBER})?", re.ASCII)
"""A version alone, or a lock, whose version is 1 at least."""


def event_of(node: Node) -> AggregateEvent:
    """An event to append; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(("type", "data", "occurredAt"))
    return AggregateEvent(
        type=required(node, fields, "type").text(MAX_TYPE_BYTES),
        data=json_body(required(node, fields, "data")),
        occurred_at=moment(fields["occurredAt"]) if "occurredAt" in fields else None,
    )


def lock_of(text: str, field: str) -> Lock | AtVersion:
    """Read `lock_text` back, or a version alone; raises `InvalidInput` naming `field`."""
    match = _LOCK.fullmatch(text)
    numbers = [int(group) for group in match.groups() if group is not None] if match else []
    if not numbers or max(numbers) > MAX_VERSION:
        raise InvalidInput(
            field, "must be an ETag that an append or read of the aggregate returned, or a version"
        )
    if len(numbers) == 1:
        return AtVersion(version=numbers[0])
    return Lock(version=numbers[0], seq_nr=numbers[1])


def etag(lock: Lock) -> str:
    """The ETag of the state that a lock names."""
    return f'"{lock_text(lock)}"'


def lock_text(lock: Lock) -> str:
    """A lock as text, which `lock_of` reads back."""
    return f"{lock.version}.{lock.seq_nr}"


def appended(aggregate: AggregateId, outcome: AggregateAppended, units: Units) -> dict[str, Any]:
    """The answer to an append."""
    return {
        "aggregate": str(aggregate),
        "first": outcome.first,
        **stand(outcome.lock),
        "replayed": outcome.replayed,
        "capacity": capacity(units),
    }


def state(snapshot: AggregateSnapshot, found: AggregatePage) -> dict[str, Any]:
    """A snapshot and the events after it; they end earlier than `found` where the answer is full."""
    answer = AnswerSize()
    return {
        "aggregate": str(snapshot.aggregate),
        **stand(snapshot.lock),
        "snapshotSeqNr": snapshot.seq_nr,
        "snapshot": answer.fit(body(snapshot.data)),
        **_events(found, answer),
    }


def page(aggregate: AggregateId, found: AggregatePage) -> dict[str, Any]:
    """A page of events; it ends earlier than `found` where the answer is full."""
    return {"aggregate": str(aggregate), **stand(found.lock), **_events(found, AnswerSize())}


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


def _events(found: AggregatePage, answer: AnswerSize) -> dict[str, Any]:
    shown = list(_fitting(found.events, answer))
    following = found.next if len(shown) == len(found.events) else found.events[len(shown)].seq_nr
    return {"events": shown, "next": following}


def _fitting(events: Iterable[RecordedAggregateEvent], answer: AnswerSize) -> Iterable[Any]:
    for each in events:
        view = answer.fit(event(each))
        if view is None:
            return
        yield view


def aggregate_of(types: AggregateTypes, request: Request) -> AggregateId:
    """The path's aggregate; a refusal names the path's parameter."""
    try:
        return types.id(request.path["type"], request.path["id"])
    except InvalidInput as error:
        raise InvalidInput("id" if error.field == "value" else error.field, error.rule) from error
