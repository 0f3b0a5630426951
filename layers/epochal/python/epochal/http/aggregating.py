"""The operations on aggregates: `append` serves the first, `replay` the others."""

from __future__ import annotations

from functools import partial

from epochal.errors import InvalidInput
from epochal.http import aggregate_commands as commands
from epochal.http import aggregate_views as views
from epochal.http import problems
from epochal.http.answer_size import text_of
from epochal.http.commands import MAX_LIMIT
from epochal.http.locks import etag, unchanged
from epochal.http.message import Request, Response
from epochal.http.problems import Problem
from epochal.http.service import Operations, consumed, measured
from epochal.model.aggregates import AggregateId, AggregateTypes
from epochal.plan.units import Units
from epochal.settings import RESPONSE_BYTES
from epochal.store.aggregate_pages import page
from epochal.store.aggregates import AggregateAppended, AggregateConflict, AggregateStore


def appending(store: AggregateStore, types: AggregateTypes) -> Operations:
    """The operations that write, by name."""
    return {"appendToAggregate": partial(append_to_aggregate, store, types)}


def replaying(store: AggregateStore, types: AggregateTypes) -> Operations:
    """The operations that read, by name."""
    return {
        "readAggregate": partial(read_aggregate, store, types),
        "readAggregateEvents": partial(read_aggregate_events, store, types),
    }


def append_to_aggregate(store: AggregateStore, types: AggregateTypes, request: Request) -> Response:
    """Append events, and the state they lead to where one is sent, in one transaction."""
    command = commands.append_to_aggregate(types, request)
    store, meter = measured(store, request)
    match _appended(store, command):
        case AggregateAppended() as outcome:
            written = {} if outcome.replayed else {"Appends": 1.0, "Events": float(len(command.events))}
            return Response(
                status=201,
                body=text_of(views.appended(command.aggregate, outcome, meter.units)),
                headers={"ETag": etag(outcome.lock)},
                figures={**written, **consumed(meter.units)},
            )
        case AggregateConflict(version=version):
            in_header = command.precondition.in_header
            raise _refused(command.aggregate, version, meter.units, in_header=in_header)


def read_aggregate(store: AggregateStore, types: AggregateTypes, request: Request) -> Response:
    """An aggregate's snapshot and the events after it: two requests, where these are not many."""
    aggregate = commands.read_aggregate(types, request)
    store, meter = measured(store, request)
    snapshot = store.latest_snapshot(aggregate)
    if snapshot is None:
        raise _not_found(aggregate)
    headers = {"ETag": etag(snapshot.lock), "Cache-Control": "no-cache"}
    if unchanged(request, snapshot.lock):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    after = page(
        store,
        aggregate,
        snapshot.lock,
        start=snapshot.seq_nr + 1,
        limit=MAX_LIMIT,
        max_bytes=RESPONSE_BYTES,
    )
    body = views.state(snapshot, after)
    return Response(status=200, body=body, headers=headers, figures=consumed(meter.units))


def read_aggregate_events(store: AggregateStore, types: AggregateTypes, request: Request) -> Response:
    """A page of an aggregate's events."""
    command = commands.read_aggregate_events(types, request)
    store, meter = measured(store, request)
    lock = store.lock(command.aggregate)
    if lock is None:
        raise _not_found(command.aggregate)
    found = page(
        store,
        command.aggregate,
        lock,
        start=command.start,
        limit=command.limit,
        max_bytes=RESPONSE_BYTES,
    )
    return Response(status=200, body=views.page(command.aggregate, found), figures=consumed(meter.units))


def _appended(
    store: AggregateStore, command: commands.AppendToAggregate
) -> AggregateAppended | AggregateConflict:
    try:
        return store.try_append(
            command.aggregate,
            command.events,
            snapshot=command.snapshot,
            expected=command.precondition.expected,
            idempotency_key=command.idempotency_key,
        )
    except InvalidInput as error:
        # The number in a lock came in the header.
        if error.field != "seq_nr":
            raise
        raise InvalidInput("If-Match", error.rule) from error


def _refused(aggregate: AggregateId, version: int, units: Units, *, in_header: bool) -> Problem:
    return Problem(
        problems.PRECONDITION_FAILED if in_header else problems.VERSION_CONFLICT,
        f"{aggregate} is at version {version}",
        figures={"Conflicts": 1.0, **consumed(units)},
        aggregate=str(aggregate),
        version=version,
    )


def _not_found(aggregate: AggregateId) -> Problem:
    return Problem(problems.AGGREGATE_NOT_FOUND, f"{aggregate} has no events", aggregate=str(aggregate))
