"""Tagged events as JSON and back: events and queries of a request, and what is answered.

    {"type": "Subscribed", "data": {"grade": 1.50}, "tags": ["course:1", "student:7"]}
    {"items": [{"types": ["Subscribed"], "tags": ["course:1"]}]}

`data` is any JSON, null included, its numbers exact; `data64` any bytes in its place; `meta` and `meta64` likewise. A
query's items are alternatives; an item asks for any of its types and all of its tags. Every event has room in an answer
of its own: it is an item of at most 400 KB.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from simplejson import RawJSON

from epochal.errors import InvalidInput, TooLarge
from epochal.http import bodies
from epochal.http.answer_size import AnswerSize, capacity
from epochal.http.fields import MAX_ID_BYTES, Node, json_body, required
from epochal.model.dcb import (
    MAX_TAG_BYTES,
    MAX_TYPE_BYTES,
    Position,
    Query,
    QueryItem,
    RecordedTaggedEvent,
    TaggedBody,
    TaggedEvent,
    check_tag,
    check_type,
    group_of,
    parse_event_id,
)
from epochal.model.positions import read_position, write_position
from epochal.model.tagged_results import BackwardPage, TagCount, TagEntry, TaggedAppended, TaggedPage
from epochal.model.times import MAX_EXPIRES
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.units import Units
from epochal.store.dcb_events import heads_watched
from epochal.store.tag_pages import DatedPage, TagPage

MAX_NAMED: Final = TRANSACTION_ITEMS
"""Items of a query, types and tags of an item, heads that fence a query: what one transaction can be held to."""

MAX_DATA_BYTES: Final = 390_000
"""An item has room for 400 KB, its tags and the rest of its fields included."""

MAX_POSITION_BYTES: Final = 1024 * 1024

EVENT_FIELDS: Final = (
    "id",
    "type",
    "data",
    "data64",
    "meta",
    "meta64",
    "tags",
    "causationId",
    "correlationId",
    "executedUser",
    "expires",
)


def event_of(node: Node) -> TaggedEvent:
    """An event to append; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(EVENT_FIELDS)
    kind = required(node, fields, "type")
    return TaggedEvent(
        type=check_type(kind.text(MAX_TYPE_BYTES), kind.name),
        data=_body(fields, "data", "data64"),
        meta=_body(fields, "meta", "meta64"),
        tags=tuple(map(_tag_of, fields["tags"].items(MAX_NAMED))) if "tags" in fields else (),
        id=_event_id(fields["id"]) if "id" in fields else None,
        causation_id=_text(fields, "causationId"),
        correlation_id=_text(fields, "correlationId"),
        executed_user=_text(fields, "executedUser"),
        expires=fields["expires"].whole(1, MAX_EXPIRES) if "expires" in fields else None,
    )


def query_of(node: Node, *, type_heads: bool) -> Query:
    """A query that a store can be held to; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(("items",))
    items = required(node, fields, "items")
    found = tuple(map(_item, items.items(MAX_NAMED)))
    if not found:
        raise InvalidInput(items.name, "must have at least one item")
    asked = Query(items=found)
    try:
        heads = heads_watched(asked, type_heads=type_heads)
    except InvalidInput as error:
        raise InvalidInput(items.name, error.rule) from error
    if heads > MAX_NAMED:
        raise TooLarge(items.name, heads, MAX_NAMED, "different tags and types to watch")
    return asked


class Listed:
    """Events for an answer, up to a number and as many as it has room for. Called with each in turn."""

    def __init__(self, limit: int, *, positions: bool = False) -> None:
        self._limit = limit
        self._positions = positions
        self._answer = AnswerSize()
        self.views: list[Any] = []

    def __call__(self, found: RecordedTaggedEvent) -> bool:
        """Take an event, if there is room for it."""
        if len(self.views) >= self._limit:
            return False
        shown = event(found)
        if self._positions and found.position is not None:
            shown["position"] = write_position(found.position)
        view = self._answer.fit(shown)
        if view is not None:
            self.views.append(view)
        return view is not None


def appended(made: TaggedAppended, units: Units, *, conditional: bool) -> dict[str, Any]:
    """The answer to an append. Without a condition nothing was read, so there is no position to go on from."""
    return {
        "events": [
            {"id": each.id, "sortableId": each.sortable_id, "timestamp": each.timestamp}
            for each in made.events
        ],
        "position": write_position(made.position) if conditional else None,
        "replayed": made.replayed,
        "capacity": capacity(units),
    }


def page(found: TaggedPage | BackwardPage, listed: Listed) -> dict[str, Any]:
    """A page of a read; only the last page, or each that is read backward, has the position to append after."""
    return {
        "events": listed.views,
        "position": None if found.position is None else write_position(found.position),
        "next": None if found.rest is None else found.rest.text(),
    }


def listed(found: DatedPage[RecordedTaggedEvent]) -> dict[str, Any]:
    """A page of a listing of events."""
    return {"events": [event(each) for each in found.items], "next": found.next}


def tags(found: TagPage) -> dict[str, Any]:
    """A page of tags with their numbers of events."""
    return {"tags": [tag_count(each) for each in found.tags], "next": found.next}


def tag(found: TagCount, latest: TagEntry) -> dict[str, Any]:
    """A tag and its latest event."""
    return {
        **tag_count(found),
        "group": group_of(found.tag),
        "latest": {
            "id": latest.event_id,
            "sortableId": latest.sortable_id,
            "type": latest.event_type,
            "timestamp": latest.created_at,
        },
    }


def event(found: RecordedTaggedEvent) -> dict[str, Any]:
    """An event."""
    return {**fields(found), **_bodies(found)}


def fields(found: RecordedTaggedEvent) -> dict[str, Any]:
    """An event without its bodies."""
    ids = {
        "causationId": found.causation_id,
        "correlationId": found.correlation_id,
        "executedUser": found.executed_user,
    }
    return {
        "id": found.id,
        "sortableId": found.sortable_id,
        "type": found.type,
        "tags": list(found.tags),
        "timestamp": found.timestamp,
        **{name: value for name, value in ids.items() if value is not None},
    }


def tag_count(found: TagCount) -> dict[str, Any]:
    """A tag and its number of events."""
    return {"tag": found.tag, "events": found.events}


def _bodies(found: RecordedTaggedEvent) -> dict[str, Any]:
    """Data and metadata: text to the byte as it is stored, bytes in base64, nothing as nothing.

    Text that is no JSON, which another library stored, is shown as text.
    """
    shown: dict[str, Any] = {}
    for name, body, foreign in (("data", found.data, "payload"), ("meta", found.meta, "metaText")):
        if isinstance(body, bytes):
            shown |= {f"{name}64": b64encode(body).decode()} if body else {}
        else:
            text = bodies.json_text(body.encode())
            shown |= {foreign: body} if text is None else {name: RawJSON(text)}
    return shown


def _item(node: Node) -> QueryItem:
    fields = node.members(("types", "tags"))
    return QueryItem(
        types=frozenset(map(_type_of, fields["types"].items(MAX_NAMED)))
        if "types" in fields
        else frozenset(),
        tags=frozenset(map(_tag_of, fields["tags"].items(MAX_NAMED))) if "tags" in fields else frozenset(),
    )


def _type_of(node: Node) -> str:
    return check_type(node.text(MAX_TYPE_BYTES), node.name)


def _tag_of(node: Node) -> str:
    return check_tag(node.text(MAX_TAG_BYTES), node.name)


def _event_id(node: Node) -> str:
    return parse_event_id(node.text(64), node.name)


def _body(fields: Mapping[str, Node], plain: str, coded: str) -> TaggedBody:
    """JSON as text, base64 as bytes; nothing is no bytes."""
    given = [fields[name] for name in (plain, coded) if name in fields]
    if not given:
        return b""
    if len(given) > 1:
        raise InvalidInput(given[1].name, f"may not be given together with {given[0].name}")
    body = json_body(given[0]) if plain in fields else given[0].base64()
    if len(body) > MAX_DATA_BYTES:
        raise TooLarge(given[0].name, len(body), MAX_DATA_BYTES)
    return body.decode() if plain in fields else body


def _text(fields: Mapping[str, Node], name: str) -> str | None:
    return fields[name].text(MAX_ID_BYTES) if name in fields else None


def position_of(fields: Mapping[str, Node]) -> Position | None:
    """The position to append or to read after; None where there is none."""
    return read_position(fields["after"].text(MAX_POSITION_BYTES)) if "after" in fields else None
