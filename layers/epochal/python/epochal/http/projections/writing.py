"""The operations that write states of projections.

    {"eventsProcessed": 1204, "lastSortableId": "063934…", "state": {"subscribed": 17}}

The state is `state` (any JSON, null included, its numbers exact) or `state64` (any bytes, in base64).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput, TooLarge
from epochal.http import problems
from epochal.http.answer_size import text_of
from epochal.http.document import document
from epochal.http.fields import Node, json_body, required
from epochal.http.operation import Request, Response
from epochal.http.performers import consumed, measured
from epochal.http.problems import Problem, problem_of
from epochal.http.projections import representation
from epochal.http.projections.representation import Which, parse_which, which_of
from epochal.http.query import Query
from epochal.model.dcb import parse_sortable_id
from epochal.store.projections import ProjectionStates

MAX_STATE_BYTES: Final = 4 * 1024 * 1024
"""What a request has room for in base64: a function is handed 6 MB at most."""

MAX_PROCESSED: Final = 2**53 - 1
"""As far as every reader of JSON counts exactly."""

MAX_WINDOW_BYTES: Final = 512
LARGER: Final = "larger states are written by the library, or by `epochal projections put`"


def opened(deployment: Deployment) -> ProjectionStates:
    """The states of a deployment."""
    return deployment.states


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteState:
    """`PUT /projections/{name}/{version}`."""

    which: Which
    state: bytes
    events_processed: int
    last_sortable_id: str
    safe_window: str | None


def _parse_write_projection_state(request: Request) -> WriteState:
    """Parse a write of a state."""
    Query(request)
    which = which_of(request)
    root = document(request)
    fields = root.members(("eventsProcessed", "lastSortableId", "safeWindow", "state", "state64"))
    processed = required(root, fields, "eventsProcessed").whole(0, MAX_PROCESSED)
    return WriteState(
        which=which,
        state=_state(root, fields),
        events_processed=processed,
        last_sortable_id=_last(root, fields, needed=processed > 0),
        safe_window=fields["safeWindow"].text(MAX_WINDOW_BYTES) if "safeWindow" in fields else None,
    )


def write_projection_state(states: ProjectionStates, request: Request) -> Response:
    """Store a state, unless one that has processed more events is there."""
    try:
        command = _parse_write_projection_state(request)
    except TooLarge as error:
        raise _too_large(error) from error
    which = command.which
    states, meter = measured(states, request)
    newer = states.try_save(
        which.name,
        which.version,
        [command.state],
        events_processed=command.events_processed,
        last_sortable_id=command.last_sortable_id,
        safe_window=command.safe_window,
    )
    if newer is not None:
        raise Problem(
            problems.PROJECTION_BEHIND,
            f"the stored state has processed {newer.events_processed:,} events",
            figures={"Conflicts": 1.0, **consumed(meter.units)},
            name=which.name,
            version=which.version,
            eventsProcessed=newer.events_processed,
        )
    body = representation.written(which.name, which.version, command.events_processed, meter.units)
    return Response(status=200, body=text_of(body), figures=consumed(meter.units))


def delete_projection_state(states: ProjectionStates, request: Request) -> Response:
    """Delete a state, if it is there."""
    which = parse_which(request)
    states, meter = measured(states, request)
    states.delete(which.name, which.version)
    body = {"name": which.name, "version": which.version}
    return Response(status=200, body=text_of(body), figures=consumed(meter.units))


def _too_large(error: TooLarge) -> Problem:
    """Says who can write what a request cannot carry."""
    plain = problem_of(error)
    return Problem(plain.kind, f"{plain.detail}; {LARGER}", **plain.members)


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
        raise TooLarge(node.name, len(state), MAX_STATE_BYTES)
    return state


def _last(root: Node, fields: Mapping[str, Node], *, needed: bool) -> str:
    """The last event's sortable id; none where no event was processed."""
    if not needed and "lastSortableId" not in fields:
        return ""
    node = required(root, fields, "lastSortableId")
    return parse_sortable_id(node.text(64), node.name)
