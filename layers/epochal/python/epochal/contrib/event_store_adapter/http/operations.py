"""The operations on aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.contrib.event_store_adapter.http import shapes
from epochal.contrib.event_store_adapter.http.shapes import (
    AGGREGATE,
    APPEND,
    APPENDED,
    EVENT_PAGE,
    ID,
    SEQ_NR,
    TYPE,
)
from epochal.contrib.event_store_adapter.model import AggregateId, AggregateTypes
from epochal.contrib.event_store_adapter.store import AggregateConflict, AggregateStore, page
from epochal.contrib.event_store_adapter.store import opened as stored
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.operation import Request, Response
from epochal.http.problems import Kind, Problem
from epochal.http.shapes import (
    IDEMPOTENCY_KEY,
    KNOWN_STATES,
    LIMIT,
    MAX_LIMIT,
    MEGABYTES,
    NO_CACHE,
    QueryString,
    answer,
    appends,
    consumed,
    document,
    header,
    idempotency_key,
    is_named,
    measured,
    operation,
    path,
    precondition,
    query,
    text,
)
from epochal.plan.values import Units
from epochal.settings import RESPONSE_BYTES

NOT_FOUND: Final = Kind("aggregate-not-found", "There is no such aggregate", 404)

_WHICH: Final = (path("type", TYPE), path("id", ID))
_ETAG: Final = {"ETag": text("The aggregate's exact state, for `If-Match` and `If-None-Match`.")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """What the operations run on."""

    store: AggregateStore
    types: AggregateTypes


def opened(deployment: Deployment) -> Aggregates:
    """The aggregates of a deployment, and their types."""
    store = stored(deployment)
    return Aggregates(store=store, types=store.site.types)


@operation(
    "Append events to an aggregate, with a snapshot or without",
    "One transaction, and one request to the store where an ETag is given. What the aggregate is "
    "expected to be stands in one place: `If-Match`, `If-None-Match: *` or `expected`.",
    parameters=(
        *_WHICH,
        header(
            "If-Match",
            'An ETag of the aggregate, a version in quotes (`"17"`), or `*` for any that exists; else 412.',
            pattern=r'(\*|"(0|[1-9]\d{0,9}(\.(0|[1-9]\d{0,9}))?)")',
        ),
        header("If-None-Match", "`*`: the aggregate must not exist; else 412.", enum=["*"]),
        IDEMPOTENCY_KEY,
    ),
    takes=APPEND,
    status=201,
    gives=APPENDED,
    headers=_ETAG,
    fails=(problems.VERSION_CONFLICT, problems.PRECONDITION_FAILED),
)
def append_to_aggregate(aggregates: Aggregates, request: Request, _: QueryString) -> Response:
    """Append events, and the state they lead to where one is sent, in one transaction."""
    aggregate = shapes.aggregate_of(aggregates.types, request)
    sent = APPEND.read(document(request))
    events, snapshot = sent["events"], sent.get("snapshot")
    wanted = precondition(request, sent.get("expected"), shapes.lock_of)
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
    view = shapes.appended(aggregate, outcome, meter.units)
    headers = {"ETag": shapes.etag(outcome.lock)}
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
        headers={} if lock is None else {"ETag": shapes.etag(lock)},
        figures={"Conflicts": 1.0, **consumed(units)},
        aggregate=str(aggregate),
        version=version,
    )


@operation(
    "Read an aggregate: its snapshot, and the events after it",
    f"Where the events are more than {MEGABYTES} MB the answer says in `next` where to go on reading them.",
    parameters=(*_WHICH, KNOWN_STATES),
    gives=AGGREGATE,
    headers={**_ETAG, **NO_CACHE},
    not_modified=True,
    fails=(NOT_FOUND,),
)
def read_aggregate(aggregates: Aggregates, request: Request, _: QueryString) -> Response:
    """An aggregate's snapshot and the events after it: two requests, where these are not many."""
    aggregate = shapes.aggregate_of(aggregates.types, request)
    store, meter = measured(aggregates.store, request)
    snapshot = store.latest_snapshot(aggregate)
    if snapshot is None:
        raise _not_found(aggregate)
    headers = {"ETag": shapes.etag(snapshot.lock), "Cache-Control": "no-cache"}
    if is_named(request, shapes.lock_text(snapshot.lock)):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    start = snapshot.seq_nr + 1
    after = page(store, aggregate, snapshot.lock, start=start, limit=MAX_LIMIT, max_bytes=RESPONSE_BYTES)
    return answer(meter, shapes.state(snapshot, after), headers=headers)


@operation(
    "Read a page of an aggregate's events",
    f"A page ends at its limit or at {MEGABYTES} MB, and says where to go on.",
    parameters=(
        *_WHICH,
        query("from", {**SEQ_NR, "description": "Number of the first event; left out: 1."}),
        query("limit", {**LIMIT, "description": "Events at most."}),
    ),
    gives=EVENT_PAGE,
    fails=(NOT_FOUND,),
)
def read_aggregate_events(aggregates: Aggregates, request: Request, asked: QueryString) -> Response:
    """A page of an aggregate's events."""
    aggregate = shapes.aggregate_of(aggregates.types, request)
    start, limit = asked.whole("from") or 1, asked.limit()
    store, meter = measured(aggregates.store, request)
    lock = store.lock(aggregate)
    if lock is None:
        raise _not_found(aggregate)
    found = page(store, aggregate, lock, start=start, limit=limit, max_bytes=RESPONSE_BYTES)
    return answer(meter, shapes.page(aggregate, found))


def _not_found(aggregate: AggregateId) -> Problem:
    return Problem(NOT_FOUND, f"{aggregate} has no events", aggregate=str(aggregate))
