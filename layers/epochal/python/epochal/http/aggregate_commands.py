"""What each operation on aggregates asks for, parsed as `commands` does for streams: pure, and total but for
`InvalidInput`.

    {"events": [{"type": "Renamed", "data": {"to": "Ann"}, "occurredAt": "2013-01-01T10:00:00Z"}],
     "snapshot": {"name": "Ann"}, "expected": 3}

`data` and `snapshot` are any JSON, null included, their numbers exact. Bodies have no other form: the libraries that
share the tables could not read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.errors import InvalidInput
from epochal.http import events as parse
from epochal.http.commands import DEFAULT_LIMIT, MAX_LIMIT, idempotency_key
from epochal.http.document import document, no_document
from epochal.http.fields import Node
from epochal.http.locks import parse_lock
from epochal.http.message import Request
from epochal.http.preconditions import Precondition, precondition
from epochal.http.query import Query
from epochal.model.aggregates import AggregateEvent, AggregateId, AggregateTypes, Lock
from epochal.model.versions import MAX_VERSION
from epochal.plan.limits import TRANSACTION_ITEMS

MAX_EVENTS: Final = TRANSACTION_ITEMS - 1
"""Events of an append: each is an item of one transaction, and so is the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendToAggregate:
    """`POST /aggregates/{type}/{id}/events`."""

    aggregate: AggregateId
    events: tuple[AggregateEvent, ...]
    snapshot: bytes | None
    precondition: Precondition[Lock]
    idempotency_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAggregateEvents:
    """`GET /aggregates/{type}/{id}/events`."""

    aggregate: AggregateId
    start: int
    limit: int


def append_to_aggregate(types: AggregateTypes, request: Request) -> AppendToAggregate:
    """Parse an append."""
    Query(request)
    aggregate = _aggregate(types, request)
    root = document(request)
    fields = root.members(("events", "snapshot", "expected"))
    given = tuple(map(event, parse.required(root, fields, "events").items(MAX_EVENTS)))
    if not given:
        raise InvalidInput("events", "must not be empty")
    return AppendToAggregate(
        aggregate=aggregate,
        events=given,
        snapshot=parse.json_body(fields["snapshot"]) if "snapshot" in fields else None,
        precondition=precondition(request, fields.get("expected"), parse_lock),
        idempotency_key=idempotency_key(request),
    )


def read_aggregate(types: AggregateTypes, request: Request) -> AggregateId:
    """Parse a read of an aggregate: which one."""
    no_document(request)
    Query(request)
    return _aggregate(types, request)


def read_aggregate_events(types: AggregateTypes, request: Request) -> ReadAggregateEvents:
    """Parse a read of a page of an aggregate's events."""
    no_document(request)
    query = Query(request, ("from", "limit"))
    return ReadAggregateEvents(
        aggregate=_aggregate(types, request),
        start=query.whole("from", 1, MAX_VERSION) or 1,
        limit=query.whole("limit", 1, MAX_LIMIT) or DEFAULT_LIMIT,
    )


def event(node: Node) -> AggregateEvent:
    """An event to append; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(("type", "data", "occurredAt"))
    return AggregateEvent(
        type=parse.required(node, fields, "type").text(parse.MAX_TYPE_BYTES),
        data=parse.json_body(parse.required(node, fields, "data")),
        occurred_at=parse.moment(fields["occurredAt"]) if "occurredAt" in fields else None,
    )


def _aggregate(types: AggregateTypes, request: Request) -> AggregateId:
    """The path's aggregate; what its id is refused for is said of the path's parameter."""
    try:
        return types.id(request.path["type"], request.path["id"])
    except InvalidInput as error:
        raise InvalidInput("id" if error.field == "value" else error.field, error.rule) from error
