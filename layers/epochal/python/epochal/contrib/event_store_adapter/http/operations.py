"""The operations on aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.contrib.event_store_adapter.http import representation
from epochal.contrib.event_store_adapter.model import AggregateId, AggregateTypes
from epochal.contrib.event_store_adapter.store import AggregateConflict, AggregateStore, page
from epochal.contrib.event_store_adapter.store import opened as stored
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.document import document, no_document
from epochal.http.fields import json_body, required
from epochal.http.operation import Request, Response
from epochal.http.performers import answer, appends, consumed, measured
from epochal.http.preconditions import idempotency_key, is_named, precondition
from epochal.http.problems import Problem
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT, QueryParameters, nothing
from epochal.model.versions import MAX_VERSION
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.units import Units
from epochal.settings import RESPONSE_BYTES

MAX_EVENTS: Final = TRANSACTION_ITEMS - 1
"""Events of an append: each is an item of one transaction, and so is the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """What the operations run on."""

    store: AggregateStore
    types: AggregateTypes


def opened(deployment: Deployment) -> Aggregates:
    """The aggregates of a deployment, and their types."""
    store = stored(deployment)
    return Aggregates(store=store, types=store.site.types)


def append_to_aggregate(aggregates: Aggregates, request: Request) -> Response:
    """Append events, and the state they lead to where one is sent, in one transaction."""
    QueryParameters(request)
    aggregate = representation.aggregate_of(aggregates.types, request)
    root = document(request)
    fields = root.members(("events", "snapshot", "expected"))
    events = tuple(map(representation.event_of, required(root, fields, "events").items(MAX_EVENTS)))
    if not events:
        raise InvalidInput("events", "must not be empty")
    snapshot = json_body(fields["snapshot"]) if "snapshot" in fields else None
    wanted = precondition(request, fields.get("expected"), representation.lock_of)
    key = idempotency_key(request)
    store, meter = measured(aggregates.store, request)
    try:
        outcome = store.try_append(
            aggregate, events, snapshot=snapshot, expected=wanted.expected, idempotency_key=key
        )
    except InvalidInput as error:
        # The number in a lock came in the header.
        if error.field != "seq_nr":
            raise
        raise InvalidInput("If-Match", error.rule) from error
    if isinstance(outcome, AggregateConflict):
        raise _refused(aggregate, outcome, meter.units, in_header=wanted.in_header)
    view = representation.appended(aggregate, outcome, meter.units)
    headers = {"ETag": representation.etag(outcome.lock)}
    return answer(
        meter, view, status=201, headers=headers, figures=appends(events, replayed=outcome.replayed)
    )


def _refused(
    aggregate: AggregateId, conflict: AggregateConflict, units: Units, *, in_header: bool
) -> Problem:
    version, lock = conflict.version, conflict.head.lock if conflict.head is not None else None
    return Problem(
        problems.PRECONDITION_FAILED if in_header else problems.VERSION_CONFLICT,
        f"{aggregate} is at version {version}",
        # A head that another library wrote last does not say which number its last event has.
        headers={} if lock is None else {"ETag": representation.etag(lock)},
        figures={"Conflicts": 1.0, **consumed(units)},
        aggregate=str(aggregate),
        version=version,
    )


def read_aggregate(aggregates: Aggregates, request: Request) -> Response:
    """An aggregate's snapshot and the events after it: two requests, where these are not many."""
    nothing(request)
    aggregate = representation.aggregate_of(aggregates.types, request)
    store, meter = measured(aggregates.store, request)
    snapshot = store.latest_snapshot(aggregate)
    if snapshot is None:
        raise _not_found(aggregate)
    headers = {"ETag": representation.etag(snapshot.lock), "Cache-Control": "no-cache"}
    if is_named(request, representation.lock_text(snapshot.lock)):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    start = snapshot.seq_nr + 1
    after = page(store, aggregate, snapshot.lock, start=start, limit=MAX_LIMIT, max_bytes=RESPONSE_BYTES)
    return answer(meter, representation.state(snapshot, after), headers=headers)


def read_aggregate_events(aggregates: Aggregates, request: Request) -> Response:
    """A page of an aggregate's events."""
    no_document(request)
    query = QueryParameters(request, ("from", "limit"))
    aggregate = representation.aggregate_of(aggregates.types, request)
    start = query.whole("from", 1, MAX_VERSION) or 1
    limit = query.whole("limit", 1, MAX_LIMIT) or DEFAULT_LIMIT
    store, meter = measured(aggregates.store, request)
    lock = store.lock(aggregate)
    if lock is None:
        raise _not_found(aggregate)
    found = page(store, aggregate, lock, start=start, limit=limit, max_bytes=RESPONSE_BYTES)
    return answer(meter, representation.page(aggregate, found))


def _not_found(aggregate: AggregateId) -> Problem:
    return Problem(problems.AGGREGATE_NOT_FOUND, f"{aggregate} has no events", aggregate=str(aggregate))
