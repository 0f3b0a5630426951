"""The operation that writes aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.aggregates import representation
from epochal.http.answer_size import text_of
from epochal.http.document import document
from epochal.http.fields import json_body, required
from epochal.http.operation import Request, Response
from epochal.http.performers import consumed, measured
from epochal.http.preconditions import Precondition, idempotency_key, precondition
from epochal.http.problems import Problem
from epochal.http.query import Query
from epochal.model.aggregates import AggregateEvent, AggregateId, AggregateTypes, Lock
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.units import Units
from epochal.store.aggregates import AggregateAppended, AggregateConflict, AggregateStore

MAX_EVENTS: Final = TRANSACTION_ITEMS - 1
"""Events of an append: each is an item of one transaction, and so is the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What the operation runs on."""

    store: AggregateStore
    types: AggregateTypes


def opened(deployment: Deployment) -> Writing:
    """The aggregates of a deployment, and their types."""
    types = AggregateTypes(deployment.settings.aggregate_types)
    return Writing(store=deployment.aggregates, types=types)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendToAggregate:
    """`POST /aggregates/{type}/{id}/events`."""

    aggregate: AggregateId
    events: tuple[AggregateEvent, ...]
    snapshot: bytes | None
    precondition: Precondition[Lock]
    idempotency_key: str | None


def _parse_append_to_aggregate(types: AggregateTypes, request: Request) -> AppendToAggregate:
    """Parse an append."""
    Query(request)
    aggregate = representation.aggregate_of(types, request)
    root = document(request)
    fields = root.members(("events", "snapshot", "expected"))
    given = tuple(map(representation.event_of, required(root, fields, "events").items(MAX_EVENTS)))
    if not given:
        raise InvalidInput("events", "must not be empty")
    return AppendToAggregate(
        aggregate=aggregate,
        events=given,
        snapshot=json_body(fields["snapshot"]) if "snapshot" in fields else None,
        precondition=precondition(request, fields.get("expected"), representation.lock_of),
        idempotency_key=idempotency_key(request),
    )


def append_to_aggregate(writing: Writing, request: Request) -> Response:
    """Append events, and the state they lead to where one is sent, in one transaction."""
    command = _parse_append_to_aggregate(writing.types, request)
    store, meter = measured(writing.store, request)
    match _appended(store, command):
        case AggregateAppended() as outcome:
            written = {} if outcome.replayed else {"Appends": 1.0, "Events": float(len(command.events))}
            return Response(
                status=201,
                body=text_of(representation.appended(command.aggregate, outcome, meter.units)),
                headers={"ETag": representation.etag(outcome.lock)},
                figures={**written, **consumed(meter.units)},
            )
        case AggregateConflict(version=version):
            in_header = command.precondition.in_header
            raise _refused(command.aggregate, version, meter.units, in_header=in_header)


def _appended(store: AggregateStore, command: AppendToAggregate) -> AggregateAppended | AggregateConflict:
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
