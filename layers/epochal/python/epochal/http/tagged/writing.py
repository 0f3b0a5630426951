"""The operation that writes tagged events."""

from __future__ import annotations

from typing import Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.document import document
from epochal.http.fields import required
from epochal.http.operation import Request, Response
from epochal.http.performers import answer, appends, consumed, measured
from epochal.http.problems import Problem
from epochal.http.query import DEFAULT_LIMIT, Query
from epochal.http.tagged import representation
from epochal.http.tagged.representation import position_of
from epochal.model.positions import write_position
from epochal.model.tagged_results import TaggedConflict
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.units import Units
from epochal.store.tagged import TaggedEvents

MAX_EVENTS: Final = (TRANSACTION_ITEMS - 1) // 2
"""Events of an append: each has an entry at least, and they share a head at best. More tags leave room for fewer."""


def opened(deployment: Deployment) -> TaggedEvents:
    """The tagged events of a deployment."""
    return deployment.tagged


def append_tagged(store: TaggedEvents, request: Request) -> Response:
    """Append events, unless one that matches a query has been appended since a position."""
    Query(request)
    if request.header("Idempotency-Key") is not None:
        raise InvalidInput("Idempotency-Key", "is not known to tagged events: give the events ids instead")
    root = document(request)
    fields = root.members(("events", "failIf", "after"))
    events = tuple(map(representation.event_of, required(root, fields, "events").items(MAX_EVENTS)))
    if not events:
        raise InvalidInput("events", "must not be empty")
    given, heads = fields.get("failIf"), store.site.type_heads
    fail_if = None if given is None else representation.query_of(given, type_heads=heads)
    after = position_of(fields)
    store, meter = measured(store, request)
    listed = representation.Listed(DEFAULT_LIMIT)
    outcome = store.try_append(events, fail_if=fail_if, after=after, takes=listed)
    if isinstance(outcome, TaggedConflict):
        raise _refused(outcome, listed, meter.units)
    view = representation.appended(outcome, meter.units, conditional=fail_if is not None)
    return answer(meter, view, status=201, figures=appends(events, replayed=outcome.replayed))


def _refused(rejected: TaggedConflict, listed: representation.Listed, units: Units) -> Problem:
    """The events in the way, with which a writer decides anew without another read."""
    return Problem(
        problems.CONDITION_FAILED,
        "events that match failIf have been appended: decide again with them, and append after this position",
        figures={"Conflicts": 1.0, **consumed(units)},
        events=listed.views,
        position=write_position(rejected.position),
        more=rejected.more,
    )
