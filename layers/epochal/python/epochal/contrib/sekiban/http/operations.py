"""The operations on states of projections. Like tagged events, they are not part of a cold start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from epochal.contrib.sekiban.http import shapes
from epochal.contrib.sekiban.http.shapes import (
    DELETED,
    MAX_PROCESSED,
    MAX_VERSIONS,
    MAX_WINDOW_BYTES,
    NAME,
    STATE,
    VERSION,
    VERSIONS,
    VERSIONS_SHOWN,
    WRITE,
    WRITTEN,
    Link,
    check_path,
    path_of,
)
from epochal.contrib.sekiban.projections import ProjectionStates, states_of
from epochal.deployment import Deployment
from epochal.errors import InvalidInput, TooLarge
from epochal.http import problems
from epochal.http.operation import Request, Response
from epochal.http.problems import Kind, Problem, problem_of
from epochal.http.shapes import (
    KNOWN_STATES,
    NO_CACHE,
    Node,
    QueryString,
    answer,
    capacity,
    consumed,
    document,
    is_named,
    json_body,
    measured,
    operation,
    path,
    query,
    required,
    text,
    whole,
)
from epochal.model.tags import parse_place

NOT_FOUND: Final = Kind("projection-not-found", "There is no such state", 404)
BEHIND: Final = Kind("projection-behind", "The stored state has processed more events", 409)

MAX_STATE_BYTES: Final = 4 * 1024 * 1024
"""What a request has room for in base64: a function is handed 6 MB at most."""

LARGER: Final = "larger states are written by the library, or by `epochal projections put`"

_NAME: Final = path("name", NAME)
_WHICH: Final = (_NAME, path("version", VERSION))


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections:
    """What the operations run on."""

    states: ProjectionStates
    link: Link


def opened(deployment: Deployment) -> Projections:
    """The states of a deployment, and URLs of those in its bucket."""
    return Projections(states=states_of(deployment), link=deployment.bucket.links.object)


@operation(
    "Read the state of a version of a projection",
    "The state itself up to 3 MB; beyond that in gzip, or a URL to get it from, as it is stored.",
    parameters=(*_WHICH, KNOWN_STATES),
    gives=STATE,
    headers={"ETag": text("The exact state, for `If-None-Match`."), **NO_CACHE},
    not_modified=True,
    fails=(NOT_FOUND, problems.MISSING_BODY),
)
def read_projection_state(projections: Projections, request: Request, _: QueryString) -> Response:
    """A state, or where it is."""
    name, version = path_of(request)
    states, meter = measured(projections.states, request)
    found = states.find(name, version)
    if found is None:
        rule = f"there is no state of {name} {version}"
        raise Problem(NOT_FOUND, rule, name=name, version=version)
    tag = shapes.tag_of(found)
    headers = {"ETag": f'"{tag}"', "Cache-Control": "no-cache"}
    if is_named(request, tag):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    view = shapes.shown(found, partial(states.open, found), projections.link)
    return answer(meter, view, headers=headers)


@operation(
    "List the versions of a projection that have a state",
    "Without the states. A projection that has none is an empty page.",
    parameters=(
        _NAME,
        query("from", text("`next` of the page before.")),
        query("limit", whole("Versions at most.", 1, MAX_VERSIONS, default=VERSIONS)),
    ),
    gives=VERSIONS_SHOWN,
)
def list_projection_states(projections: Projections, request: Request, asked: QueryString) -> Response:
    """A page of a projection's versions, without their states."""
    name, beyond = request.path["name"], asked.text("from")
    check_path(name, "-" if beyond is None else beyond, "from")
    limit = asked.limit()
    states, meter = measured(projections.states, request)
    found, following = states.page(name, beyond=beyond, limit=limit)
    versions = [shapes.described(each) for each in found]
    return answer(meter, VERSIONS_SHOWN(name=name, versions=versions, next=following))


@operation(
    "Store the state of a version of a projection",
    "Unless the stored one has processed more events. At most 4 MB: the library, and the command line, "
    "write larger ones.",
    parameters=_WHICH,
    takes=WRITE,
    gives=WRITTEN,
    fails=(BEHIND,),
)
def write_projection_state(projections: Projections, request: Request, _: QueryString) -> Response:
    """Store a state, unless one that has processed more events is there."""
    name, version = path_of(request)
    root = document(request)
    fields = root.members(WRITE.names)
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
            BEHIND,
            f"the stored state has processed {newer.events_processed:,} events",
            figures={"Conflicts": 1.0, **consumed(meter.units)},
            name=name,
            version=version,
            eventsProcessed=newer.events_processed,
        )
    view = WRITTEN(name=name, version=version, eventsProcessed=processed, capacity=capacity(meter.units))
    return answer(meter, view)


@operation(
    "Delete the state of a version of a projection",
    "If it is there. What it left in the bucket `epochal projections orphans` removes.",
    parameters=_WHICH,
    gives=DELETED,
)
def delete_projection_state(projections: Projections, request: Request, _: QueryString) -> Response:
    """Delete a state, if it is there."""
    name, version = path_of(request)
    states, meter = measured(projections.states, request)
    states.delete(name, version)
    return answer(meter, DELETED(name=name, version=version))


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
    return parse_place(node.text(64), node.name)
