"""States of projections as JSON. A state is written as

    {"eventsProcessed": 1204, "lastSortableId": "063934…", "state": {"subscribed": 17}}

in `state` (any JSON, null included, its numbers exact) or `state64` (any bytes, in base64). It is shown in the plainest
form that loses nothing and has room:

"state": …          it is JSON: shown as it is stored, to the byte
"state64": "…"      it is not: base64
"stateGzip64": "…"  it is too large for an answer, its compressed form is not: gzip, in base64
"stateUrl": {…}     it is too large for an answer and is in the bucket: where to fetch it, for how long, and how large
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from simplejson import RawJSON

from epochal.contrib.sekiban.events import TaggedEvent
from epochal.contrib.sekiban.projections import MAX_NAME_BYTES, check_names
from epochal.contrib.sekiban.states import StoredState
from epochal.contrib.sekiban.store import DcbEvents
from epochal.errors import InvalidInput, TooLarge
from epochal.http.events import LINK_SECONDS, NEW_EVENT, AnswerSize, json_text
from epochal.http.operation import Request
from epochal.http.shapes import (
    CAPACITY,
    MAX_ID_BYTES,
    Component,
    Members,
    Node,
    Shown,
    array,
    base64,
    only_one,
    optional_id,
    record,
    ref,
    text,
    whole,
    words,
)
from epochal.http.tagged import APPEND, event_of
from epochal.model.events import Claim, Event
from epochal.model.times import MAX_EXPIRES

Content = Callable[[], Iterator[bytes]]
"""Opens a state, which comes a chunk at a time."""

Link = Callable[[str, int], str]
"""Signs a URL that an object can be fetched from for so many seconds; raises `MissingBody` where there is none."""

SORTABLE_ID: Final = text("Sekiban's place of an event among all.", pattern=r"\d{30}")

MOST_SHOWN: Final = 3 * 1024 * 1024
"""Bytes of a state that an answer has room for in base64, which adds a third."""

MAX_PROCESSED: Final = 2**53 - 1
"""As far as every reader of JSON counts exactly."""

OF_PROBLEMS: Final = {
    "name": text("The projection concerned."),
    "eventsProcessed": whole("How many events the stored state has processed.", 0, MAX_PROCESSED),
}
"""What problems say of states."""

MAX_WINDOW_BYTES: Final = 512
VERSIONS: Final = 20
MAX_VERSIONS: Final = 100
"""Versions of a listing: a request to the store for every two or three, where their states are large."""

_PRINTABLE: Final = r"[^/\x00-\x1f\x7f]+"
NAME: Final = text(
    "The projection's name: printable text without `/`.",
    most=MAX_NAME_BYTES,
    pattern=_PRINTABLE,
    examples=["CourseCapacity"],
)
VERSION: Final = text(
    "A version of its code: printable text without `/`.",
    most=MAX_NAME_BYTES,
    pattern=_PRINTABLE,
    examples=["v3"],
)
PROCESSED: Final = whole("How many events the state has in it.", 0, MAX_PROCESSED)
_LAST: Final = {**SORTABLE_ID, "description": "Sortable id of the last of them."}
_WINDOW: Final = text("What the projector calls safe; kept as it is.", most=MAX_WINDOW_BYTES)


_LAST_WHERE_THERE_IS_ONE: Final[dict[str, Any]] = {
    "if": {"properties": {"eventsProcessed": {"minimum": 1}}},
    "then": {"required": ["lastSortableId"]},
}
WRITE: Final = Component(
    "WriteProjectionState",
    record(
        {
            "eventsProcessed": PROCESSED,
            "lastSortableId": {
                **_LAST,
                "description": "Sortable id of the last of them; needed where there is one.",
            },
            "safeWindow": _WINDOW,
            "state": {"description": "Any JSON. Numbers are kept exactly as they are written."},
            "state64": base64("Any bytes, instead of `state`."),
        },
        required=("eventsProcessed",),
        oneOf=[{"required": [name]} for name in ("state", "state64")],
        **_LAST_WHERE_THERE_IS_ONE,
    ),
)
WRITTEN: Final = Shown(
    "ProjectionWritten",
    {"name": NAME, "version": VERSION, "eventsProcessed": PROCESSED, "capacity": CAPACITY},
)
DELETED: Final = Shown("ProjectionDeleted", {"name": NAME, "version": VERSION})

_DESCRIBED: Final[Members] = {
    "name": (NAME, "projector"),
    "version": (VERSION, "version"),
    "eventsProcessed": (PROCESSED, "events_processed"),
    "lastSortableId": {"description": _LAST["description"], "anyOf": [SORTABLE_ID, {"type": "null"}]},
    "safeWindow": words(_WINDOW["description"]),
    "bytes": (whole("Size of the state."), "original_bytes"),
    "compressedBytes": (whole("Its size as it is stored, compressed."), "compressed_bytes"),
}
_STATES: Final[Members] = {
    "state": {"description": "The state, where it is JSON."},
    "state64": base64("The state, where it is not."),
    "stateGzip64": base64("The state in gzip, where it is too large for an answer and its item holds it."),
    "stateUrl": record(
        {
            "url": text("Where to get it, without further credentials.", format="uri"),
            "expiresIn": whole("Seconds for which the URL works."),
            "bytes": whole("Size of the content, compressed."),
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
        "versions": array(ref("ProjectionVersion"), "In the order of text, without their states."),
        "next": {
            "description": "`from` of the page that goes on; null where there is none.",
            "anyOf": [VERSION, {"type": "null"}],
        },
    },
)
STATE: Final = Shown(
    "ProjectionState",
    {**_DESCRIBED, **_STATES},
    optional=("safeWindow", *_STATES),
    **only_one(*_STATES),
)


def described(found: StoredState) -> dict[str, Any]:
    """What is known of a state, without it."""
    return VERSION_SHOWN(found, **_more(found))


def shown(found: StoredState, content: Content, link: Link) -> dict[str, Any]:
    """A state, or where it is. It is opened only where there may be room for it."""
    return STATE(found, **_more(found), **_members(found, content, link))


def in_full(found: StoredState, state: bytes) -> dict[str, Any]:
    """A state, however large it is."""
    text = json_text(state)
    plain = {"state64": b64encode(state).decode()} if text is None else {"state": RawJSON(text)}
    return STATE(found, **_more(found), **plain)


def _more(found: StoredState) -> dict[str, Any]:
    window = {} if found.safe_window is None else {"safeWindow": found.safe_window}
    return {"lastSortableId": found.last_sortable_id or None, **window}


def _members(found: StoredState, content: Content, link: Link) -> dict[str, Any]:
    if found.original_bytes <= MOST_SHOWN:
        state = _within(content())
        if state is not None:
            return _plain(state)
    if found.offload_key is None:
        return {"stateGzip64": found.inline}
    url = link(found.offload_key, LINK_SECONDS)
    return {
        "stateUrl": {
            "url": url,
            "expiresIn": LINK_SECONDS,
            "bytes": found.compressed_bytes,
            "encoding": "gzip",
        }
    }


def _within(content: Iterator[bytes]) -> bytes | None:
    """The whole state; None where there is no room for it, since it is larger than its item says."""
    read = bytearray()
    for chunk in content:
        read += chunk
        if len(read) > MOST_SHOWN:
            return None
    return bytes(read)


def _plain(state: bytes) -> dict[str, Any]:
    text = json_text(state)
    view = None if text is None else AnswerSize().fit(RawJSON(text))
    return {"state64": b64encode(state).decode()} if view is None else {"state": view}


def tag_of(found: StoredState) -> str:
    """What tells a state from all others of its version: the ETag, without quotes."""
    exact = f"{found.events_processed}|{found.last_sortable_id}|{found.inline or found.offload_key}"
    return hashlib.sha256(exact.encode()).hexdigest()[:32]


def path_of(request: Request) -> tuple[str, str]:
    """The path's projection and its version."""
    name, version = request.path["name"], request.path["version"]
    check_path(name, version, "version")
    return name, version


def check_path(name: str, version: str, version_field: str) -> None:
    """Refuse by the store's own rules, in the names of the path's parameters."""
    try:
        check_names(name, version)
    except InvalidInput as error:
        raise InvalidInput("name" if error.field == "projector" else version_field, error.rule) from error


# Tagged events that are sent.

_BESIDES: Final = {
    "executedUser": text("Who did it.", most=MAX_ID_BYTES),
    "expires": whole("Seconds since 1970 after which it may be deleted.", 1, MAX_EXPIRES),
}
_SENT: Final = NEW_EVENT.schema["properties"]
NEW_TAGGED_EVENT: Final = Component(
    "NewTaggedEvent",
    {
        **NEW_EVENT.schema,
        "properties": {**{name: each for name, each in _SENT.items() if name != "claim"}, **_BESIDES},
    },
)
APPEND_HERE: Final = Component(
    "AppendTaggedHere",
    {
        **APPEND.schema,
        "properties": {
            **APPEND.schema["properties"],
            "events": {**APPEND.schema["properties"]["events"], "items": ref("NewTaggedEvent")},
        },
    },
)


def sent_event(node: Node) -> Event:
    """An event to append; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(NEW_TAGGED_EVENT.names)
    plain = {name: value for name, value in node.value.items() if name not in _BESIDES}
    event = TaggedEvent.of(event_of(Node(plain, node.at)))
    for name, body in (("data", event.data), ("meta", event.meta)):
        if isinstance(body, Claim):
            raise InvalidInput(node.below("claim"), "must not be given: these tables refer to no bucket")
        if len(body) > DcbEvents.most_bytes:
            given = name if name in fields else f"{name}64"
            raise TooLarge(node.below(given), len(body), DcbEvents.most_bytes)
    return replace(
        event,
        executed_user=optional_id(fields, "executedUser"),
        expires=fields["expires"].whole(1, MAX_EXPIRES) if "expires" in fields else None,
    )
