"""The operations that read aggregates."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.deployment import Deployment
from epochal.http import problems
from epochal.http.aggregates import representation
from epochal.http.document import no_document
from epochal.http.operation import Request, Response
from epochal.http.performers import consumed, measured
from epochal.http.preconditions import is_named
from epochal.http.problems import Problem
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT, Query, nothing
from epochal.model.aggregates import AggregateId, AggregateTypes
from epochal.model.versions import MAX_VERSION
from epochal.settings import RESPONSE_BYTES
from epochal.store.aggregate_pages import page
from epochal.store.aggregates import AggregateStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the operations run on."""

    store: AggregateStore
    types: AggregateTypes


def opened(deployment: Deployment) -> Reading:
    """The aggregates of a deployment, and their types."""
    types = AggregateTypes(deployment.settings.aggregate_types)
    return Reading(store=deployment.aggregates, types=types)


def read_aggregate(reading: Reading, request: Request) -> Response:
    """An aggregate's snapshot and the events after it: two requests, where these are not many."""
    nothing(request)
    aggregate = representation.aggregate_of(reading.types, request)
    store, meter = measured(reading.store, request)
    snapshot = store.latest_snapshot(aggregate)
    if snapshot is None:
        raise _not_found(aggregate)
    headers = {"ETag": representation.etag(snapshot.lock), "Cache-Control": "no-cache"}
    if is_named(request, representation.lock_text(snapshot.lock)):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    start = snapshot.seq_nr + 1
    after = page(store, aggregate, snapshot.lock, start=start, limit=MAX_LIMIT, max_bytes=RESPONSE_BYTES)
    body = representation.state(snapshot, after)
    return Response(status=200, body=body, headers=headers, figures=consumed(meter.units))


def read_aggregate_events(reading: Reading, request: Request) -> Response:
    """A page of an aggregate's events."""
    no_document(request)
    query = Query(request, ("from", "limit"))
    aggregate = representation.aggregate_of(reading.types, request)
    start = query.whole("from", 1, MAX_VERSION) or 1
    limit = query.whole("limit", 1, MAX_LIMIT) or DEFAULT_LIMIT
    store, meter = measured(reading.store, request)
    lock = store.lock(aggregate)
    if lock is None:
        raise _not_found(aggregate)
    found = page(store, aggregate, lock, start=start, limit=limit, max_bytes=RESPONSE_BYTES)
    return Response(status=200, body=representation.page(aggregate, found), figures=consumed(meter.units))


def _not_found(aggregate: AggregateId) -> Problem:
    return Problem(problems.AGGREGATE_NOT_FOUND, f"{aggregate} has no events", aggregate=str(aggregate))
