"""The operations on states of projections, and these as JSON. Like tagged events, they are not part of a cold start.

A state is written as

    {"eventsProcessed": 1204, "lastSortableId": "063934…", "state": {"subscribed": 17}}

in `state` (any JSON, null included, its numbers exact) or `state64` (any bytes, in base64). It is shown in the plainest
form that loses nothing and has room:

    "state": …          it is JSON: shown as it is stored, to the byte
    "state64": "…"      it is not: base64
    "stateGzip64": "…"  it is too large for an answer, its compressed form is not: gzip, in base64
    "stateUrl": {…}     it is too large for an answer and is in the bucket: where to fetch it, for how long, how large
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from simplejson import RawJSON

from epochal.contrib.sekiban.projections import MAX_NAME_BYTES, ProjectionStates, check_names, states_of
from epochal.contrib.sekiban.states import StoredState
from epochal.deployment import Deployment
from epochal.errors import InvalidInput, TooLarge
from epochal.http import parameters, problems, schemas
from epochal.http.answer_size import AnswerSize
from epochal.http.answers import answer, capacity, consumed
from epochal.http.bodies import LINK_SECONDS, json_text
from epochal.http.components import Component, Members, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.metering import measured
from epochal.http.nodes import Node, json_body, required
from epochal.http.operation import Request, Response
from epochal.http.preconditions import is_named
from epochal.http.problems import Kind, Problem, problem_of
from epochal.http.query_strings import QueryString
from epochal.lazy_dataclasses import dataclass
from epochal.model.tags import parse_place
from epochal.model.tokens import MAX_VERSION

Content = Callable[[], Iterator[bytes]]
"""Opens a state and yields its content in chunks."""

Link = Callable[[str, int], str]
"""Signs a URL from which an object can be fetched for a number of seconds; raises `MissingBody` without an object."""

SORTABLE_ID: Final = schemas.text("Sekiban's place of an event among all.", pattern=r"\d{30}")

MOST_SHOWN: Final = 3 * 1024 * 1024
"""Largest state in bytes that an answer can hold in base64, which adds a third."""

MAX_PROCESSED: Final = 2**53 - 1
"""Largest integer that every reader of JSON counts exactly."""

OF_PROBLEMS: Final = {
    "name": schemas.text("The projection concerned."),
    "eventsProcessed": schemas.whole("How many events the stored state has processed.", 0, MAX_PROCESSED),
    "version": {
        "description": "Where what is concerned stands; of a state, the projection's version.",
        "anyOf": [
            schemas.whole("A version.", 0, MAX_VERSION),
            schemas.text("A projection's version."),
        ],
    },
}
"""Schemas of the members that problems about states have."""

MAX_WINDOW_BYTES: Final = 512
VERSIONS: Final = 20
MAX_VERSIONS: Final = 100
"""Most versions in a page of a listing: large states take a request to the store for every two or three."""

_PRINTABLE: Final = r"[^/\x00-\x1f\x7f]+"
NAME: Final = schemas.text(
    "The projection's name: printable text without `/`.",
    most=MAX_NAME_BYTES,
    pattern=_PRINTABLE,
    examples=["CourseCapacity"],
)
VERSION: Final = schemas.text(
    "A version of its code: printable text without `/`.",
    most=MAX_NAME_BYTES,
    pattern=_PRINTABLE,
    examples=["v3"],
)
PROCESSED: Final = schemas.whole("Number of events that the state includes.", 0, MAX_PROCESSED)
_LAST: Final = {**SORTABLE_ID, "description": "Sortable id of the last of them."}
_WINDOW: Final = schemas.text("What the projector calls safe; kept as it is.", most=MAX_WINDOW_BYTES)


_LAST_WHERE_THERE_IS_ONE: Final[dict[str, Any]] = {
    "if": {"properties": {"eventsProcessed": {"minimum": 1}}},
    "then": {"required": ["lastSortableId"]},
}
WRITE: Final = Component(
    "WriteProjectionState",
    schemas.record(
        {
            "eventsProcessed": PROCESSED,
            "lastSortableId": {
                **_LAST,
                "description": "Sortable id of the last of them; needed where there is one.",
            },
            "safeWindow": _WINDOW,
            "state": {"description": "Any JSON. Numbers are kept exactly as they are written."},
            "state64": schemas.base64("Any bytes, instead of `state`."),
        },
        required=("eventsProcessed",),
        oneOf=[{"required": [name]} for name in ("state", "state64")],
        **_LAST_WHERE_THERE_IS_ONE,
    ),
)
WRITTEN: Final = Shown(
    "ProjectionWritten",
    {"name": NAME, "version": VERSION, "eventsProcessed": PROCESSED, "capacity": schemas.CAPACITY},
)
DELETED: Final = Shown("ProjectionDeleted", {"name": NAME, "version": VERSION})

_DESCRIBED: Final[Members] = {
    "name": (NAME, "projector"),
    "version": (VERSION, "version"),
    "eventsProcessed": (PROCESSED, "events_processed"),
    "lastSortableId": schemas.or_null(SORTABLE_ID, _LAST["description"]),
    "safeWindow": schemas.words(_WINDOW["description"]),
    "bytes": (schemas.whole("Size of the state."), "original_bytes"),
    "compressedBytes": (schemas.whole("Its size as it is stored, compressed."), "compressed_bytes"),
}
_STATES: Final[Members] = {
    "state": {"description": "The state, where it is JSON."},
    "state64": schemas.base64("The state, where it is not."),
    "stateGzip64": schemas.base64(
        "The state in gzip, where it is too large for an answer and its item holds it."
    ),
    "stateUrl": schemas.record(
        {
            "url": schemas.text("Where to get it, without further credentials.", format="uri"),
            "expiresIn": schemas.whole("Number of seconds for which the URL is valid."),
            "bytes": schemas.whole("Size of the content, compressed."),
            "encoding": {"const": "gzip", "description": "How the content encodes the state."},
        },
        description="Where the state lies, too large for an answer.",
    ),
}
VERSION_SHOWN: Final = Shown("ProjectionVersion", _DESCRIBED, optional=("safeWindow",))
VERSIONS_SHOWN: Final = Shown(
    "ProjectionVersions",
    {
        "name": NAME,
        "versions": schemas.array(
            schemas.ref("ProjectionVersion"), "In the order of text, without their states."
        ),
        "next": schemas.or_null(VERSION, "`from` of the next page; null if there is none."),
    },
)
STATE: Final = Shown(
    "ProjectionState",
    {**_DESCRIBED, **_STATES},
    optional=("safeWindow", *_STATES),
    **schemas.only_one(*_STATES),
)


def described(state: StoredState) -> dict[str, Any]:
    """Return the JSON members that describe a state, without its content."""
    return VERSION_SHOWN(state, **_more(state))


def shown(state: StoredState, content: Content, link: Link) -> dict[str, Any]:
    """Return the JSON members of a state with its content, or with a link to it if it is too large.

    The content is opened only if an answer may have room for it.
    """
    return STATE(state, **_more(state), **_members(state, content, link))


def in_full(stored: StoredState, state: bytes) -> dict[str, Any]:
    """Return the JSON members of a state with its whole content, however large."""
    text = json_text(state)
    plain = {"state64": b64encode(state).decode()} if text is None else {"state": RawJSON(text)}
    return STATE(stored, **_more(stored), **plain)


def _more(state: StoredState) -> dict[str, Any]:
    """Return the JSON members of a state that are no plain attributes: last sortable id and safe window."""
    window = {} if state.safe_window is None else {"safeWindow": state.safe_window}
    return {"lastSortableId": state.last_sortable_id or None, **window}


def _members(stored: StoredState, content: Content, link: Link) -> dict[str, Any]:
    """Return the JSON member with a state's content: plain, compressed, or as a signed URL."""
    if stored.original_bytes <= MOST_SHOWN:
        state = _within(content())
        if state is not None:
            return _plain(state)
    if stored.offload_key is None:
        return {"stateGzip64": stored.inline}
    url = link(stored.offload_key, LINK_SECONDS)
    return {
        "stateUrl": {
            "url": url,
            "expiresIn": LINK_SECONDS,
            "bytes": stored.compressed_bytes,
            "encoding": "gzip",
        }
    }


def _within(content: Iterator[bytes]) -> bytes | None:
    """Read a whole state, or return None if it is larger than an answer can hold.

    This happens if a state is larger than its item says.
    """
    read = bytearray()
    for chunk in content:
        read += chunk
        if len(read) > MOST_SHOWN:
            return None
    return bytes(read)


def _plain(state: bytes) -> dict[str, Any]:
    """Return the JSON member with a state's content: `state` if it fits as JSON, else `state64`."""
    text = json_text(state)
    view = None if text is None else AnswerSize().fit(RawJSON(text))
    return {"state64": b64encode(state).decode()} if view is None else {"state": view}


def tag_of(tag: StoredState) -> str:
    """Return the ETag, without quotes, that distinguishes a state from all others of its version."""
    exact = f"{tag.events_processed}|{tag.last_sortable_id}|{tag.inline or tag.offload_key}"
    return hashlib.sha256(exact.encode()).hexdigest()[:32]


def path_of(request: Request) -> tuple[str, str]:
    """Return the projection's name and version from the request's path; raise if one is not valid.

    Raises:
        InvalidInput: one of them is invalid.
    """
    name, version = request.path["name"], request.path["version"]
    check_path(name, version, "version")
    return name, version


def check_path(name: str, version: str, version_field: str) -> None:
    """Raise `InvalidInput` with the request's parameter unless a projection's name and version are valid.

    Raises:
        InvalidInput: the name or the version is invalid.
    """
    try:
        check_names(name, version)
    except InvalidInput as error:
        raise InvalidInput("name" if error.field == "projector" else version_field, error.rule) from error


NOT_FOUND: Final = Kind("projection-not-found", "There is no such state", 404)
BEHIND: Final = Kind("projection-behind", "The stored state has processed more events", 409)

MAX_STATE_BYTES: Final = 4 * 1024 * 1024
"""Largest state that a request can hold in base64: a function's payload is at most 6 MB."""

LARGER: Final = "write larger states with the library or `epochal projections put`"

_NAME: Final = parameters.path("name", NAME)
_WHICH: Final = (_NAME, parameters.path("version", VERSION))


@dataclass(frozen=True, slots=True, kw_only=True)
class Projections:
    """The store of projection states and the signer of URLs that the operations use."""

    states: ProjectionStates
    link: Link


def opened(deployment: Deployment) -> Projections:
    """Open a deployment's projection states, with a signer of URLs for those in its bucket."""
    return Projections(states=states_of(deployment), link=deployment.bucket.links.object)


@operation(
    parameters=(*_WHICH, parameters.KNOWN_STATES),
    gives=STATE,
    headers={"ETag": schemas.text("The exact state, for `If-None-Match`."), **parameters.NO_CACHE},
    not_modified=True,
    fails=(NOT_FOUND, problems.MISSING_BODY),
)
def read_projection_state(projections: Projections, request: Request, _: QueryString) -> Response:
    """Read the state of a version of a projection.

    The state itself up to 3 MB; beyond that in gzip, or a URL to get it from, as it is stored.
    """
    name, version = path_of(request)
    states, meter = measured(projections.states, request)
    state = states.find(name, version)
    if state is None:
        rule = f"there is no state of {name} {version}"
        raise Problem(NOT_FOUND, rule, name=name, version=version)
    tag = tag_of(state)
    headers = {"ETag": f'"{tag}"', "Cache-Control": "no-cache"}
    if is_named(request, tag):
        return Response(status=304, headers=headers, figures=consumed(meter.units))
    view = shown(state, partial(states.open, state), projections.link)
    return answer(meter, view, headers=headers)


@operation(
    parameters=(
        _NAME,
        parameters.query("from", schemas.text("`next` of the previous page.")),
        parameters.query("limit", schemas.whole("Versions at most.", 1, MAX_VERSIONS, default=VERSIONS)),
    ),
    gives=VERSIONS_SHOWN,
)
def list_projection_states(projections: Projections, request: Request, query: QueryString) -> Response:
    """List the versions of a projection that have a state.

    Without the states. A projection that has none is an empty page.
    """
    name, beyond = request.path["name"], query.text("from")
    check_path(name, "-" if beyond is None else beyond, "from")
    limit = query.limit()
    states, meter = measured(projections.states, request)
    states_found, following = states.page(name, beyond=beyond, limit=limit)
    versions = [described(state) for state in states_found]
    return answer(meter, VERSIONS_SHOWN(name=name, versions=versions, next=following))


@operation(parameters=_WHICH, takes=WRITE, gives=WRITTEN, fails=(BEHIND,))
def write_projection_state(projections: Projections, request: Request, _: QueryString) -> Response:
    """Store the state of a version of a projection, unless a later one is stored.

    A state is later if it has processed more events. At most 4 MB: the library, and the command line, write larger
    ones.
    """
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


@operation(parameters=_WHICH, gives=DELETED)
def delete_projection_state(projections: Projections, request: Request, _: QueryString) -> Response:
    """Delete the state of a version of a projection; its object in the bucket stays, as an orphan.

    Nothing happens if it is not there. `epochal projections orphans --remove` deletes what it left in the bucket.
    """
    name, version = path_of(request)
    states, meter = measured(projections.states, request)
    states.delete(name, version)
    return answer(meter, DELETED(name=name, version=version))


def _state(root: Node, fields: Mapping[str, Node]) -> bytes:
    """Return the state in the request's body as bytes; raise if there is none, two, or it is too large.

    Raises:
        InvalidInput: the body has no state, or both `state` and `state64`.
        Problem: the state is larger than a request can hold.
    """
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
    """Return the body's `lastSortableId`, checked; empty text where it is left out and not `needed`."""
    if not needed and "lastSortableId" not in fields:
        return ""
    node = required(root, fields, "lastSortableId")
    return parse_place(node.text(64), node.name)
