"""The operations on states of projections. A state is written as

    {"eventsProcessed": 1204, "lastSortableId": "063934…", "state": {"subscribed": 17}}

in `state` (any JSON, null included, its numbers exact) or `state64` (any bytes, in base64).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput, TooLarge
from epochal.http import problems
from epochal.http.document import document, no_document
from epochal.http.fields import Node, json_body, required
from epochal.http.operation import Request, Response
from epochal.http.performers import answer, consumed, measured
from epochal.http.preconditions import is_named
from epochal.http.problems import Problem, problem_of
from epochal.http.projections import representation
from epochal.http.projections.representation import Link
from epochal.http.query import QueryParameters, nothing
from epochal.model.dcb import parse_sortable_id
from epochal.store.projections import ProjectionStates

MAX_STATE_BYTES: Final = 4 * 1024 * 1024
"""What a request has room for in base64: a function is handed 6 MB at most."""

MAX_PROCESSED: Final = 2**53 - 1
"""As far as every reader of JSON counts exactly."""

MAX_WINDOW_BYTES: Final = 512
VERSIONS: Final = 20
MAX_VERSIONS: Final = 100
"""Versions of a listing: a request to the store for every two or three, where their states are large."""

LARGER: Final = "larger states are written by the library, or by `epochal projections put`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections:
    """What the operations run on."""

    states: ProjectionStates
    link: Link


def opened(deployment: Deployment) -> Projections:
    """The states of a deployment, and URLs of those in its bucket."""
    return Projections(states=deployment.states, link=deployment.bucket.links.object)


def read_projection_state(projections: Projections, request: Request) -> Response:
    """A state, or where it is."""
    nothing(request)
    name, version = representation.path_of(request)
    states, meter = measured(projections.states, request)
    found = states.find(name, version)
    if found is None:
        rule = f"there is no state of {name} {version}"
        raise Problem(problems.PROJECTION_NOT_FOUND, rule, name=name, version=version)
    tag = representation.tag_of(found)
    headers = {"ETag": f'"{tag}"', "Cache-Control": "no-cache"}
    if is_named(request, tag):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    view = representation.shown(found, partial(states.open, found), projections.link)
    return answer(meter, view, headers=headers)


def list_projection_states(projections: Projections, request: Request) -> Response:
    """A page of a projection's versions, without their states."""
    no_document(request)
    query = QueryParameters(request, ("from", "limit"))
    name, beyond = request.path["name"], query.text("from")
    representation.check_path(name, "-" if beyond is None else beyond, "from")
    limit = query.whole("limit", 1, MAX_VERSIONS) or VERSIONS
    states, meter = measured(projections.states, request)
    found, following = states.page(name, beyond=beyond, limit=limit)
    versions = [representation.described(each) for each in found]
    return answer(meter, {"name": name, "versions": versions, "next": following})


def write_projection_state(projections: Projections, request: Request) -> Response:
    """Store a state, unless one that has processed more events is there."""
    QueryParameters(request)
    name, version = representation.path_of(request)
    root = document(request)
    fields = root.members(("eventsProcessed", "lastSortableId", "safeWindow", "state", "state64"))
    processed = required(root, fields, "eventsProcessed").whole(0, MAX_PROCESSED)
    state = _state(root, fields)
    last = _last(root, fields, needed=processed > 0)
    window = fields["safeWindow"].text(MAX_WINDOW_BYTES) if "safeWindow" in fields else None
    states, meter = measured(projections.states, request)
    newer = states.try_save(
        name, version, [state], events_processed=processed, last_sortable_id=last, safe_window=window
    )
    if newer is not None:
        raise Problem(
            problems.PROJECTION_BEHIND,
            f"the stored state has processed {newer.events_processed:,} events",
            figures={"Conflicts": 1.0, **consumed(meter.units)},
            name=name,
            version=version,
            eventsProcessed=newer.events_processed,
        )
    return answer(meter, representation.written(name, version, processed, meter.units))


def delete_projection_state(projections: Projections, request: Request) -> Response:
    """Delete a state, if it is there."""
    nothing(request)
    name, version = representation.path_of(request)
    states, meter = measured(projections.states, request)
    states.delete(name, version)
    return answer(meter, {"name": name, "version": version})


def _state(root: Node, fields: Mapping[str, Node]) -> bytes:
    if "state" in fields and "state64" in fields:
        raise InvalidInput("state64", "may not be given together with state")
    if "state64" in fields:
        node = fields["state64"]
        state = node.base64()
    else:
        node = required(root, fields, "state")
        state = json_body(node)
    if len(state) > MAX_STATE_BYTES:
        plain = problem_of(TooLarge(node.name, len(state), MAX_STATE_BYTES))
        raise Problem(plain.kind, f"{plain.detail}; {LARGER}", **plain.members)
    return state


def _last(root: Node, fields: Mapping[str, Node], *, needed: bool) -> str:
    """The last event's sortable id; none where no event was processed."""
    if not needed and "lastSortableId" not in fields:
        return ""
    node = required(root, fields, "lastSortableId")
    return parse_sortable_id(node.text(64), node.name)
