"""Requests on tagged events: schemas and readers.

    {"type": "Subscribed", "data": {"grade": 1.50}, "tags": ["course:1", "student:7"]}
    {"items": [{"types": ["Subscribed"], "tags": ["course:1"]}]}

The events have the form of stream events, with tags (`sent_events`). A query's items are alternatives; an event matches
an item if it has one of the item's types and all of its tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.errors import InvalidInput, TooLarge
from epochal.http import schemas
from epochal.http.components import Component
from epochal.http.event_fields import CONDITION, MAX_NAMED, MAX_POSITION_BYTES, POSITION, TAG
from epochal.http.nodes import Node
from epochal.http.sent_events import event_of as plain_event
from epochal.http.sent_events import tag_of
from epochal.lazy_dataclasses import replace
from epochal.model.events import MAX_TYPE_BYTES, Event
from epochal.model.position_text import read_position
from epochal.model.positions import Position
from epochal.model.tags import Query, QueryItem, check_type, parse_event_id
from epochal.store.tagged import MAX_EVENTS, TaggedStore

PLACE: Final = schemas.text(
    "Place of the event in the order of all events. Within each tag it always follows the order of appends.",
    pattern=r"\d{30}",
)
_TYPE: Final = schemas.text("Type of the event.", most=MAX_TYPE_BYTES, pattern=r"[^\x00-\x1f\x7f]+")
NEXT: Final = schemas.text(
    "`next` of the previous page. All other fields must be the same as before.", most=2 * MAX_POSITION_BYTES
)

GOES_ON: Final = "`from` of the next page; null if there is none."


def _type_of(node: Node) -> str:
    """Read an event type of a query.

    Raises:
        InvalidInput: the value cannot be an event type.
    """
    return check_type(node.text(MAX_TYPE_BYTES), node.name)


EVENT_QUERY_ITEM: Final = Component(
    "EventQueryItem",
    schemas.record(
        {
            "types": schemas.array(
                _TYPE, "Types, of which the event must have one. If left out, any type matches.", MAX_NAMED
            ),
            "tags": schemas.array(
                TAG,
                "Tags, all of which the event must have. At least one, unless the deployment allows queries by "
                "these types alone.",
                MAX_NAMED,
            ),
        },
        required=(),
    ),
    reads={"types": _type_of, "tags": tag_of},
)


def _item(node: Node) -> QueryItem:
    """Read one item of a query: its event types and tags."""
    return QueryItem(**{name: frozenset(values) for name, values in EVENT_QUERY_ITEM.read(node).items()})


EVENT_QUERY: Final = Component(
    "EventQuery",
    schemas.record(
        {
            "items": {
                **schemas.array(
                    schemas.ref("EventQueryItem"),
                    "Alternatives. An event matches the query if it matches one of them.",
                    MAX_NAMED,
                ),
                "minItems": 1,
            }
        }
    ),
    reads={"items": _item},
)
APPEND: Final = Component(
    "AppendTagged",
    schemas.record(
        {
            "events": {
                **schemas.array(
                    schemas.ref("NewEvent"), "Events to append, in this order, all or none.", MAX_EVENTS
                ),
                "minItems": 1,
            },
            **CONDITION,
        },
        required=("events",),
        dependentRequired={"after": ["failIf"]},
    ),
)
QUERY: Final = Component(
    "QueryTagged",
    schemas.record(
        {
            "query": schemas.ref("EventQuery"),
            "after": {**POSITION, "description": "Only events after this position."},
            "from": NEXT,
            "limit": schemas.whole(
                "Largest number of events.", 1, schemas.MAX_LIMIT, default=schemas.DEFAULT_LIMIT
            ),
            "direction": schemas.direction(
                "`backward` returns the newest events first, so that the first page has the last events."
            ),
            "positions": {**schemas.flag("Whether each event includes its position."), "default": False},
        },
        required=("query",),
    ),
)


def event_of(node: Node) -> Event:
    """Return the tagged event that a node of a request describes; raise `InvalidInput` if malformed.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    event = plain_event(node)
    check_type(event.type, node.below("type"))
    return event if event.id is None else replace(event, id=parse_event_id(event.id, node.below("id")))


def query_of(node: Node, store: TaggedStore) -> Query:
    """Read a query and check that the store can watch its tags and types within one transaction.

    Raises:
        InvalidInput: naming the field that breaks a rule.
        TooLarge: the query has too many different tags and types.
    """
    query, place = Query(items=EVENT_QUERY.read(node)["items"]), node.below("items")
    try:
        heads = store.heads_watched(query)
    except InvalidInput as error:
        raise InvalidInput(place, error.rule) from error
    if heads > MAX_NAMED:
        raise TooLarge(place, heads, MAX_NAMED, "different tags and types to watch")
    return query


def position_of(members: Mapping[str, Any]) -> Position | None:
    """Return the position to append or read after; None where the request has none."""
    return read_position(members["after"]) if "after" in members else None
