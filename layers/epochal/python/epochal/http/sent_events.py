"""Events and unfolds as requests send them: schemas and readers.

{"type": "Moved", "data": {"to": "EWR"}, "meta": {"by": "ops"}, "timestamp": "2013-01-01T10:00:00Z",
 "correlationId": "c-1", "causationId": "e-7"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.http import schemas
from epochal.http.bodies import read_claim
from epochal.http.components import Component, Read
from epochal.http.event_fields import MAX_NAMED, TAG
from epochal.http.nodes import Node, json_body, time_of
from epochal.model.events import (
    MAX_ID_BYTES,
    MAX_TAG_BYTES,
    MAX_TYPE_BYTES,
    Event,
    Unfold,
)
from epochal.model.stream_names import no_step

IDS: Final = {
    "correlationId": schemas.text("Id of the conversation that the event belongs to.", most=MAX_ID_BYTES),
    "causationId": schemas.text("Id of the message that caused the event.", most=MAX_ID_BYTES),
}
ID: Final = schemas.text(
    "The event's id, a UUID.",
    pattern="[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    examples=["1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"],
)
_TAGGED: Final = {
    "tags": schemas.array(
        TAG, "Tags: the things that the event concerns, by which queries find it.", MAX_NAMED
    ),
    "id": {
        **ID,
        "description": "A UUID that the caller chooses. With tags, below `/events`, the append can be repeated "
        "safely, and the event can be read by the id. In a stream, an event with an id cannot have "
        "tags; if all events of an append have ids, the append can be repeated safely.",
    },
}


def tag_of(node: Node) -> str:
    """Return the tag in a node of a request; raise `InvalidInput` if it breaks a rule.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    from epochal.model.tags import check_tag  # noqa: PLC0415  a function starts without it: 380 lines

    return check_tag(node.text(MAX_TAG_BYTES), node.name)


def new_tag_of(node: Node) -> str:
    """Return the tag of a new event in a node; raise `InvalidInput` if malformed, also for `.` and `..`.

    Raises:
        InvalidInput: naming the field that breaks a rule; also for `.` and `..`, which only reads take.
    """
    return no_step(tag_of(node), node.name)


def event_id_of(node: Node) -> str:
    """Return the event id in a node of a request; raise `InvalidInput` unless it is a UUID.

    Raises:
        InvalidInput: the id is no UUID.
    """
    from epochal.model.tags import parse_event_id  # noqa: PLC0415  a function starts without it

    return parse_event_id(node.text(64), node.name)


def _sent(name: str, more: dict[str, schemas.Schema]) -> Component:
    """Build the schema and reader of an event or unfold that is sent.

    Args:
        name: name of the schema in the OpenAPI document.
        more: schemas of further members.
    """
    schema = schemas.record(
        {
            "type": schemas.text("Type of the event or of the unfold.", most=MAX_TYPE_BYTES),
            "data": {
                "description": "Body: any JSON. If the deployment has a schema for the type of an event, the body "
                "must conform to it. Numbers are stored exactly as they are written."
            },
            "data64": schemas.base64("Body in base64, if it is not JSON."),
            "claim": schemas.ref("Claim"),
            "meta": {"description": "Metadata: any JSON."},
            "meta64": schemas.base64("Metadata in base64, if it is not JSON."),
            "timestamp": schemas.moment(
                "Time at which it happened, in ISO 8601, with a precision of 100 ns. It has an offset, or Z for UTC."
            ),
            **more,
        },
        required=("type",),
    )
    reads: dict[str, Read] = {
        "data": json_body,
        "claim": read_claim,
        "meta": json_body,
        "timestamp": time_of,
        "tags": new_tag_of,
        "id": event_id_of,
    }
    return Component(name, schema, reads=reads, one_of=(("data", "data64", "claim"), ("meta", "meta64")))


NEW_UNFOLD: Final = _sent("NewUnfold", {})
NEW_EVENT: Final = _sent("NewEvent", {**IDS, **_TAGGED})
NEW_UNTAGGED_EVENT: Final = _sent("NewUntaggedEvent", IDS)
_BOTH: Final = {"properties": {"tags": {"minItems": 1}}, "required": ["id", "tags"]}
IN_STREAM: Final = {"allOf": [schemas.ref("NewEvent"), {"not": _BOTH}]}
"""Schema of an event of a stream, which may have an id or tags, but not both."""


def event_of(node: Node) -> Event:
    """Return the event to append that a request's node describes; raise `InvalidInput` if malformed.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    members = NEW_EVENT.read(node)
    return Event(
        **_contents(members),
        correlation_id=members.get("correlationId"),
        causation_id=members.get("causationId"),
        tags=members.get("tags", ()),
        id=members.get("id"),
    )


def unfold_of(node: Node) -> Unfold:
    """Return the unfold that a node of a request describes; raise `InvalidInput` if it breaks a rule.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    return Unfold(**_contents(NEW_UNFOLD.read(node)))


def _contents(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return type, data, metadata and timestamp of an event or unfold that was sent."""
    return {
        "type": members["type"],
        "data": members.get("data", members.get("data64", members.get("claim", b""))),
        "meta": members.get("meta", members.get("meta64", b"")),
        "timestamp": members.get("timestamp"),
    }
