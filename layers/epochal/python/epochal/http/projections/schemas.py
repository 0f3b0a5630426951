"""Schemas of projection states: what is sent and what is answered."""

from __future__ import annotations

from typing import Any, Final

from epochal.http.openapi.shapes import CAPACITY, Schema, array, base64, only_one, record, ref, text, whole
from epochal.http.projections.operations import MAX_PROCESSED, MAX_WINDOW_BYTES
from epochal.http.tagged_shapes import SORTABLE_ID
from epochal.store.projections import MAX_NAME_BYTES

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

_DESCRIBED: Final[dict[str, Schema]] = {
    "name": NAME,
    "version": VERSION,
    "eventsProcessed": PROCESSED,
    "lastSortableId": {"description": _LAST["description"], "anyOf": [SORTABLE_ID, {"type": "null"}]},
    "safeWindow": {"type": "string", "description": _WINDOW["description"]},
    "bytes": whole("Size of the state."),
    "compressedBytes": whole("Its size as it is stored, compressed."),
}
_REQUIRED: Final = tuple(name for name in _DESCRIBED if name != "safeWindow")


_LAST_WHERE_THERE_IS_ONE: Final[dict[str, Any]] = {
    "if": {"properties": {"eventsProcessed": {"minimum": 1}}},
    "then": {"required": ["lastSortableId"]},
}

SCHEMAS: Final[dict[str, Schema]] = {
    "WriteProjectionState": record(
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
    "ProjectionWritten": record(
        {"name": NAME, "version": VERSION, "eventsProcessed": PROCESSED, "capacity": CAPACITY}
    ),
    "ProjectionDeleted": record({"name": NAME, "version": VERSION}),
    "ProjectionVersion": record(_DESCRIBED, required=_REQUIRED),
    "ProjectionVersions": record(
        {
            "name": NAME,
            "versions": array(ref("ProjectionVersion"), "In the order of text, without their states."),
            "next": {
                "description": "`from` of the page that goes on; null where there is none.",
                "anyOf": [VERSION, {"type": "null"}],
            },
        }
    ),
    "ProjectionState": record(
        {
            **_DESCRIBED,
            "state": {"description": "The state, where it is JSON."},
            "state64": base64("The state, where it is not."),
            "stateGzip64": base64(
                "The state in gzip, where it is too large for an answer and its item holds it."
            ),
            "stateUrl": record(
                {
                    "url": text("Where to get it, without further credentials.", format="uri"),
                    "expiresIn": whole("Seconds for which the URL works."),
                    "bytes": whole("Size of the content, compressed."),
                    "encoding": {"const": "gzip", "description": "How the content encodes the state."},
                },
                description="Where the state lies, too large for an answer.",
            ),
        },
        required=_REQUIRED,
        **only_one("state", "state64", "stateGzip64", "stateUrl"),
    ),
}
