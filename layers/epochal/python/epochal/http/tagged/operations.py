"""Appending tagged events, querying them, and reading one.

Bodies in the bucket are answered with a link: they may be larger than a function's memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.bodies import Link
from epochal.http.document import document
from epochal.http.fields import Node, required
from epochal.http.operation import Request, Response
from epochal.http.performers import answer, appends, consumed, measured
from epochal.http.preconditions import idempotency_key
from epochal.http.problems import Problem
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT, QueryParameters, nothing
from epochal.http.tagged import representation
from epochal.http.tagged.representation import MAX_POSITION_BYTES, position_of
from epochal.model.dcb import parse_event_id
from epochal.model.positions import write_position
from epochal.model.tagged_results import (
    BackwardPage,
    Down,
    TaggedConflict,
    TaggedPage,
    parse_down,
    parse_rest,
)
from epochal.plan.units import Units
from epochal.store.driver import Meter
from epochal.store.tagged_store import TaggedStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """What the operations run on.

    Attributes:
        link: signs downloads from the bucket.
    """

    store: TaggedStore
    link: Link

    def on(self, request: Request) -> tuple[TaggedStore, Meter]:
        """The store for one request."""
        return measured(self.store, request)


def opened(deployment: Deployment, store: str) -> Tagged:
    """A store of tagged events of a deployment, by its name there."""
    found: TaggedStore = getattr(deployment, store)
    return Tagged(store=replace(found, fetch=False), link=deployment.bucket.links.download)


def append_tagged(tagged: Tagged, request: Request) -> Response:
    """Append events, unless one that matches a query has been appended since a position."""
    QueryParameters(request)
    key = idempotency_key(request)
    root = document(request)
    fields = root.members(("events", "failIf", "after"))
    nodes = required(root, fields, "events").items(tagged.store.most_events)
    events = tuple(representation.event_of(node, tagged.store.most_bytes) for node in nodes)
    if not events:
        raise InvalidInput("events", "must not be empty")
    given = fields.get("failIf")
    fail_if = None if given is None else representation.query_of(given, tagged.store)
    after = position_of(fields)
    store, meter = tagged.on(request)
    listed = representation.Listed(DEFAULT_LIMIT, tagged.link)
    after = None if after is None else store.believed(after)
    outcome = store.try_append(events, fail_if=fail_if, after=after, takes=listed, idempotency_key=key)
    outcome = replace(outcome, position=store.sealed(outcome.position, writes=True))
    if isinstance(outcome, TaggedConflict):
        raise _refused(outcome, listed, meter.units)
    view = representation.appended(outcome, meter.units)
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


def query_tagged(tagged: Tagged, request: Request) -> Response:
    """A page of the events that match a query."""
    QueryParameters(request)
    root = document(request)
    fields = root.members(("query", "after", "from", "limit", "direction", "positions"))
    backward = "direction" in fields and _is_backward(fields["direction"])
    query = representation.query_of(required(root, fields, "query"), tagged.store)
    after = position_of(fields)
    start = fields["from"].text(2 * MAX_POSITION_BYTES) if "from" in fields else None
    rest = None if start is None else parse_down(start) if backward else parse_rest(start)
    limit = fields["limit"].whole(1, MAX_LIMIT) if "limit" in fields else DEFAULT_LIMIT
    positions = "positions" in fields and fields["positions"].flag()
    listed = representation.Listed(limit, tagged.link, positions=positions)
    store, meter = tagged.on(request)
    found: TaggedPage | BackwardPage
    if isinstance(rest, Down) or (backward and rest is None):
        found = store.page_back(query, after=after, rest=rest, takes=listed, limit=limit)
    else:
        found = store.page(query, after=after, rest=rest, takes=listed, limit=limit)
    if found.position is not None:
        found = replace(found, position=store.sealed(found.position, writes=False))
    return answer(meter, representation.page(found, listed))


def _is_backward(node: Node) -> bool:
    if node.value not in ("forward", "backward"):
        raise InvalidInput(node.name, "must be forward or backward")
    return bool(node.value == "backward")


def read_tagged(tagged: Tagged, request: Request) -> Response:
    """One event by its id."""
    nothing(request)
    event_id = parse_event_id(request.path["id"])
    store, meter = tagged.on(request)
    found = store.event(event_id)
    if found is None:
        raise Problem(problems.EVENT_NOT_FOUND, f"there is no event {event_id}")
    return answer(meter, representation.single(found, tagged.link))
