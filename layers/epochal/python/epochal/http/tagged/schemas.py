"""Schemas of tagged events: what is sent and what is answered."""

from __future__ import annotations

from typing import Any, Final

from epochal.http.fields import MAX_ID_BYTES
from epochal.http.openapi.shapes import (
    CAPACITY,
    Schema,
    array,
    base64,
    flag,
    only_one,
    record,
    ref,
    text,
    whole,
)
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT
from epochal.http.streams.schemas import OMITTED
from epochal.http.tagged.representation import MAX_NAMED, MAX_POSITION_BYTES
from epochal.model.dcb import MAX_TAG_BYTES, MAX_TYPE_BYTES
from epochal.model.times import MAX_EXPIRES
from epochal.store.tagged_store import MAX_EVENTS

ID: Final = text(
    "The event's id, a UUID.",
    pattern="[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    examples=["1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"],
)
TAG: Final = text(
    "Printable text that does not begin with `$`; what precedes the first `:` is its group.",
    most=MAX_TAG_BYTES,
    pattern=r"[^$:\x00-\x1f\x7f][^\x00-\x1f\x7f]*",
    examples=["course:1"],
)
SORTABLE_ID: Final = text(
    "Orders events: within each of their tags always as they were appended.", pattern=r"\d{30}"
)
POSITION: Final = text("What a read has seen: opaque, to be sent back as it is.", most=MAX_POSITION_BYTES)
_TYPE: Final = text("What kind of event it is.", most=MAX_TYPE_BYTES, pattern=r"[^\x00-\x1f\x7f]+")
_NEXT: Final = text(
    "`next` of the page before; everything else must be as it was.", most=2 * MAX_POSITION_BYTES
)


def _or_null(schema: Schema, description: str) -> Schema:
    inner = {key: value for key, value in schema.items() if key != "description"}
    return {"description": description, "anyOf": [inner, {"type": "null"}]}


_MADE: Final[dict[str, Schema]] = {
    "causationId": text("What caused it.", most=MAX_ID_BYTES),
    "correlationId": text("What it belongs to.", most=MAX_ID_BYTES),
    "executedUser": text("Who did it.", most=MAX_ID_BYTES),
}
_TAKEN: Final[dict[str, Schema]] = {
    "causationId": {"type": "string", "description": "As it was sent."},
    "correlationId": {"type": "string", "description": "As it was sent."},
    "executedUser": {"type": "string", "description": "As it was sent."},
}
_STAMP: Final[dict[str, Any]] = {"type": "string", "description": "When it was appended."}

_ENTRY: Final[dict[str, Schema]] = {
    "id": {"type": "string", "description": "Its id."},
    "sortableId": SORTABLE_ID,
    "type": {"type": "string", "description": "What kind of event it is."},
    "timestamp": _STAMP,
}

_TAG_COUNT: Final[dict[str, Schema]] = {
    "tag": TAG,
    "events": whole("How many events have it, in Sekiban's tables also those that have expired."),
}

SCHEMAS: Final[dict[str, Schema]] = {
    "NewTaggedEvent": record(
        {
            "type": _TYPE,
            "data": {"description": "Any JSON. Numbers are kept exactly as they are written."},
            "data64": base64("Any bytes, in place of `data`; without either there are none."),
            "claim": {
                **ref("Claim"),
                "description": "What has been uploaded, in place of `data`: not below `/dcb`.",
            },
            "meta": {"description": "Metadata: any JSON."},
            "meta64": base64("Metadata, any bytes."),
            "tags": array(TAG, "What it concerns; order and repetition do not matter.", MAX_NAMED),
            "id": {
                **ID,
                "description": "A UUID of the caller's makes repeats of the append harmless, and finds the event.",
            },
            **_MADE,
            "expires": whole(
                "Seconds since 1970 after which it may be deleted: below `/dcb` alone.", 1, MAX_EXPIRES
            ),
        },
        required=("type",),
        allOf=[only_one("data", "data64", "claim"), only_one("meta", "meta64")],
    ),
    "EventQuery": record(
        {
            "items": {
                **array(ref("EventQueryItem"), "Alternatives: an event matches one of them.", MAX_NAMED),
                "minItems": 1,
            }
        }
    ),
    "EventQueryItem": record(
        {
            "types": array(_TYPE, "Any of these; none named: any type.", MAX_NAMED),
            "tags": array(
                TAG,
                "All of these. At least one, unless the deployment lets the types be asked for alone.",
                MAX_NAMED,
            ),
        },
        required=(),
    ),
    "AppendTagged": record(
        {
            "events": {
                **array(ref("NewTaggedEvent"), "Appended in this order, all or none.", MAX_EVENTS),
                "minItems": 1,
            },
            "failIf": ref("EventQuery"),
            "after": {
                **POSITION,
                "description": "Only events beyond this position are in the way; left out, any that match.",
            },
        },
        required=("events",),
        dependentRequired={"after": ["failIf"]},
    ),
    "AppendedTagged": record(
        {
            "events": array(
                record({"id": ID, "sortableId": SORTABLE_ID, "timestamp": _STAMP}), "In the order sent."
            ),
            "position": _or_null(
                POSITION,
                "To append after, under the same query; without `failIf` where the append is in the tags of its events."
                " Of a replayed append it may be before the events, or null.",
            ),
            "versions": {
                "type": "object",
                "description": "How many events each tag of these events has with them; that of events without a tag "
                'is "". Of a replayed append there may be later ones among them.',
                "additionalProperties": {"type": "integer", "minimum": 1},
            },
            "replayed": flag("Whether an earlier call had appended them."),
            "capacity": CAPACITY,
        }
    ),
    "QueryTagged": record(
        {
            "query": ref("EventQuery"),
            "after": {**POSITION, "description": "Only what is new since this position."},
            "from": _NEXT,
            "limit": whole("Events at most.", 1, MAX_LIMIT, default=DEFAULT_LIMIT),
            "direction": {
                "enum": ["forward", "backward"],
                "default": "forward",
                "description": "Backward: newest first. The first page then has the last events.",
            },
            "positions": {**flag("Whether each event tells its position."), "default": False},
        },
        required=("query",),
    ),
    "TaggedEvent": record(
        {
            "id": {"type": "string", "description": "Its id."},
            "sortableId": SORTABLE_ID,
            "type": {"type": "string", "description": "What kind of event it is."},
            "tags": array({"type": "string"}, "What it concerns, in order."),
            "timestamp": _STAMP,
            **_TAKEN,
            "data": {"description": "As it was sent."},
            "data64": base64("As it was sent; neither of them where there are no bytes."),
            "payload": {
                "type": "string",
                "description": "In its place, what another library stored that is no JSON.",
            },
            "meta": {"description": "As it was sent."},
            "meta64": base64("As it was sent."),
            "dataUrl": ref("Link"),
            "metaUrl": ref("Link"),
            "omitted": OMITTED,
            "metaText": {"type": "string", "description": "In its place, what is no JSON."},
            "position": {
                **POSITION,
                "description": "What had been seen with it, to append after; where `positions` were asked for; "
                "of one event by its id its place in its first tag.",
            },
        },
        required=("id", "sortableId", "type", "tags", "timestamp"),
    ),
    "TagPage": record(
        {
            "tags": array(
                record(_TAG_COUNT), "Below `/dcb` those of a group are in order; all others in none."
            ),
            "next": _or_null(text(""), "`from` of the page that goes on; null where there is none."),
        }
    ),
    "Tag": record(
        {
            **_TAG_COUNT,
            "group": {"type": "string", "description": "What precedes its first `:`."},
            "latest": record(_ENTRY, description="Its latest event."),
        }
    ),
    "TagEntries": record(
        {
            "entries": array(
                record(
                    {
                        **_ENTRY,
                        "index": {
                            "type": ["integer", "null"],
                            "description": "Its place among the tag's events, from 0; null where another library "
                            "wrote it.",
                        },
                    }
                ),
                "In order of their sortable ids.",
            ),
            "next": _or_null(SORTABLE_ID, "`from` of the page that goes on; null where there is none."),
        }
    ),
    "ListedEvents": record(
        {
            "events": array(ref("TaggedEvent"), "In order of their sortable ids."),
            "next": _or_null(SORTABLE_ID, "`from` of the page that goes on; null where there is none."),
        }
    ),
    "EventCount": record({"events": whole("How many there are.")}),
    "TaggedEventPage": record(
        {
            "events": array(ref("TaggedEvent"), "In order of their sortable ids; backward, newest first."),
            "position": _or_null(
                POSITION, "To append after; null until the last page, where it is not backward."
            ),
            "next": _or_null(_NEXT, "`from` of the page that goes on; null where there is none."),
        }
    ),
}
