"""What each operation on projection states asks for, parsed as `commands` does for streams: pure, and total but for
`InvalidInput`.

    {"eventsProcessed": 1204, "lastSortableId": "063934…", "state": {"subscribed": 17}}

The state is `state` (any JSON, null included, its numbers exact) or `state64` (any bytes, in base64).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from epochal.errors import InvalidInput, TooLarge
from epochal.http import events as parse
from epochal.http.document import document, no_document
from epochal.http.fields import Node
from epochal.http.message import Request
from epochal.http.query import Query
from epochal.model.dcb import parse_sortable_id
from epochal.store.projections import check_names

MAX_STATE_BYTES: Final = 4 * 1024 * 1024
"""What a request has room for in base64: a function is handed 6 MB at most."""

MAX_PROCESSED: Final = 2**53 - 1
"""As far as every reader of JSON counts exactly."""

MAX_WINDOW_BYTES: Final = 512

VERSIONS: Final = 20
MAX_VERSIONS: Final = 100
"""Versions of a listing: a request to the store for every two or three, where their states are large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """One version of a projection."""

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteState:
    """`PUT /projections/{name}/{version}`."""

    which: Which
    state: bytes
    events_processed: int
    last_sortable_id: str
    safe_window: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListStates:
    """`GET /projections/{name}`."""

    name: str
    beyond: str | None
    limit: int


def write_state(request: Request) -> WriteState:
    """Parse a write of a state."""
    Query(request)
    which = _which(request)
    root = document(request)
    fields = root.members(("eventsProcessed", "lastSortableId", "safeWindow", "state", "state64"))
    processed = parse.required(root, fields, "eventsProcessed").whole(0, MAX_PROCESSED)
    return WriteState(
        which=which,
        state=_state(root, fields),
        events_processed=processed,
        last_sortable_id=_last(root, fields, required=processed > 0),
        safe_window=fields["safeWindow"].text(MAX_WINDOW_BYTES) if "safeWindow" in fields else None,
    )


def one_state(request: Request) -> Which:
    """Parse a read or a deletion of a state: which one."""
    no_document(request)
    Query(request)
    return _which(request)


def list_states(request: Request) -> ListStates:
    """Parse a listing of a projection's versions."""
    no_document(request)
    query = Query(request, ("from", "limit"))
    name, beyond = request.path["name"], query.text("from")
    _check(name, "-" if beyond is None else beyond, "from")
    return ListStates(name=name, beyond=beyond, limit=query.whole("limit", 1, MAX_VERSIONS) or VERSIONS)


def _which(request: Request) -> Which:
    name, version = request.path["name"], request.path["version"]
    _check(name, version, "version")
    return Which(name=name, version=version)


def _check(name: str, version: str, version_field: str) -> None:
    """The store's own rules, said of the path's parameters."""
    try:
        check_names(name, version)
    except InvalidInput as error:
        raise InvalidInput("name" if error.field == "projector" else version_field, error.rule) from error


def _state(root: Node, fields: Mapping[str, Node]) -> bytes:
    if "state" in fields and "state64" in fields:
        raise InvalidInput("state64", "may not be given together with state")
    if "state64" in fields:
        node = fields["state64"]
        state = node.base64()
    else:
        node = parse.required(root, fields, "state")
        state = parse.json_body(node)
    if len(state) > MAX_STATE_BYTES:
        raise TooLarge(node.name, len(state), MAX_STATE_BYTES)
    return state


def _last(root: Node, fields: Mapping[str, Node], *, required: bool) -> str:
    """The last event's sortable id; none where no event was processed."""
    if not required and "lastSortableId" not in fields:
        return ""
    node = parse.required(root, fields, "lastSortableId")
    return parse_sortable_id(node.text(64), node.name)
