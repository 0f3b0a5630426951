"""The operation that writes tagged events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.answer_size import text_of
from epochal.http.document import document
from epochal.http.fields import required
from epochal.http.operation import Request, Response
from epochal.http.performers import consumed, measured
from epochal.http.problems import Problem
from epochal.http.query import DEFAULT_LIMIT, Query
from epochal.http.tagged import representation
from epochal.http.tagged.representation import position_of
from epochal.model.dcb import (
    Position,
    TaggedEvent,
)
from epochal.model.dcb import Query as EventQuery
from epochal.model.positions import write_position
from epochal.model.tagged_results import (
    TaggedAppended,
    TaggedConflict,
)
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.units import Units
from epochal.store.tagged import TaggedEvents

MAX_EVENTS: Final = (TRANSACTION_ITEMS - 1) // 2
"""Events of an append: each has an entry at least, and they share a head at best. More tags leave room for fewer."""


def opened(deployment: Deployment) -> TaggedEvents:
    """The tagged events of a deployment."""
    return deployment.tagged


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendTagged:
    """`POST /dcb/events`."""

    events: tuple[TaggedEvent, ...]
    fail_if: EventQuery | None
    after: Position | None


def _parse_append_tagged(request: Request, *, type_heads: bool) -> AppendTagged:
    """Parse an append."""
    Query(request)
    if request.header("Idempotency-Key") is not None:
        raise InvalidInput("Idempotency-Key", "is not known to tagged events: give the events ids instead")
    root = document(request)
    fields = root.members(("events", "failIf", "after"))
    events = tuple(map(representation.event_of, required(root, fields, "events").items(MAX_EVENTS)))
    if not events:
        raise InvalidInput("events", "must not be empty")
    return AppendTagged(
        events=events,
        fail_if=representation.query_of(fields["failIf"], type_heads=type_heads)
        if "failIf" in fields
        else None,
        after=position_of(fields),
    )


def append_tagged(store: TaggedEvents, request: Request) -> Response:
    """Append events, unless one that matches a query has been appended since a position."""
    command = _parse_append_tagged(request, type_heads=store.site.type_heads)
    store, meter = measured(store, request)
    listed = representation.Listed(DEFAULT_LIMIT)
    outcome = store.try_append(command.events, fail_if=command.fail_if, after=command.after, takes=listed)
    match outcome:
        case TaggedAppended():
            body = representation.appended(outcome, meter.units, conditional=command.fail_if is not None)
            written = {} if outcome.replayed else {"Appends": 1.0, "Events": float(len(command.events))}
            return Response(status=201, body=text_of(body), figures={**written, **consumed(meter.units)})
        case TaggedConflict():
            raise _refused(outcome, listed, meter.units)


def _refused(rejected: TaggedConflict, listed: representation.Listed, units: Units) -> Problem:
    """What stood in the way, which a writer decides on anew without reading it again."""
    return Problem(
        problems.CONDITION_FAILED,
        "events that match failIf have been appended: decide again with them, and append after this position",
        figures={"Conflicts": 1.0, **consumed(units)},
        events=listed.views,
        position=write_position(rejected.position),
        more=rejected.more,
    )
