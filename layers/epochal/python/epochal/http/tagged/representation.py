"""Tagged events as JSON and back: events and queries of a request, and what is answered.

    {"type": "Subscribed", "data": {"grade": 1.50}, "tags": ["course:1", "student:7"]}
    {"items": [{"types": ["Subscribed"], "tags": ["course:1"]}]}

`data` is any JSON, null included, its numbers exact; in its place `data64` is any bytes, and `claim` what has been
uploaded (`POST /bodies`). `meta` and `meta64` likewise. A query's items are alternatives; an item asks for any of its
types and all of its tags.

A page ends where the next event has no room (`answer_size`). What is in the bucket is shown as a link.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from simplejson import RawJSON

from epochal.errors import InvalidInput, TooLarge
from epochal.http import bodies
from epochal.http.answer_size import AnswerSize, capacity
from epochal.http.bodies import Link
from epochal.http.fields import Node, json_body, only_one, optional_id, required
from epochal.model.dcb import (
    MAX_TAG_BYTES,
    MAX_TYPE_BYTES,
    Position,
    Query,
    QueryItem,
    RecordedTaggedEvent,
    TaggedBody,
    TaggedEvent,
    Unfetched,
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
from epochal.store.tag_pages import DatedPage, TagPage
from epochal.store.tagged_store import TaggedStore

MAX_NAMED: Final = TRANSACTION_ITEMS
"""Items of a query, types and tags of an item, heads that fence a query: what one transaction can be held to."""

MAX_POSITION_BYTES: Final = 1024 * 1024

EVENT_FIELDS: Final = (
    "id",
    "type",
    "data",
    "data64",
    "claim",
    "meta",
    "meta64",
    "tags",
    "causationId",
    "correlationId",
    "executedUser",
    "expires",
)


def event_of(node: Node, most: int | None = None) -> TaggedEvent:
    """An event to append; raises `InvalidInput` naming the field that breaks a rule.

    Args:
        most: bytes of a body at most, where the store has such a limit, and with it no bucket.
    """
    fields = node.members(EVENT_FIELDS)
    kind = required(node, fields, "type")
    return TaggedEvent(
        type=check_type(kind.text(MAX_TYPE_BYTES), kind.name),
        data=_data(fields, most),
        meta=_body(fields, "meta", "meta64", most),
        tags=tuple(map(_tag_of, fields["tags"].items(MAX_NAMED))) if "tags" in fields else (),
        id=parse_event_id(fields["id"].text(64), fields["id"].name) if "id" in fields else None,
        causation_id=optional_id(fields, "causationId"),
        correlation_id=optional_id(fields, "correlationId"),
        executed_user=optional_id(fields, "executedUser"),
        expires=fields["expires"].whole(1, MAX_EXPIRES) if "expires" in fields else None,
    )


def query_of(node: Node, store: TaggedStore) -> Query:
    """A query that the store can be held to; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(("items",))
    items = required(node, fields, "items")
    found = tuple(map(_item, items.items(MAX_NAMED)))
    if not found:
        raise InvalidInput(items.name, "must have at least one item")
    asked = Query(items=found)
    try:
        heads = store.heads_watched(asked)
    except InvalidInput as error:
        raise InvalidInput(items.name, error.rule) from error
    if heads > MAX_NAMED:
        raise TooLarge(items.name, heads, MAX_NAMED, "different tags and types to watch")
    return asked


class Listed:
    """Events for an answer, up to a number and as many as it has room for. Called with each in turn."""

    def __init__(self, limit: int, link: Link, *, positions: bool = False) -> None:
        self._limit = limit
        self._link = link
        self._positions = positions
        self._answer = AnswerSize()
        self.views: list[Any] = []

    def __call__(self, found: RecordedTaggedEvent) -> bool:
        """Take an event, if there is room for it."""
        if len(self.views) >= self._limit:
            return False
        frame = fields(found)
        if self._positions and found.position is not None:
            frame["position"] = write_position(found.position)
        shown = {**frame, **_bodies(found, self._link)}
        view = self._answer.fit(shown) if self.views else self._answer.put(shown, frame)
        if view is not None:
            self.views.append(view)
        return view is not None


def appended(made: TaggedAppended, units: Units) -> dict[str, Any]:
    """The answer to an append. One that was repeated without a condition has looked at no tag: it has no position."""
    return {
        "events": [
            {"id": each.id, "sortableId": each.sortable_id, "timestamp": each.timestamp}
            for each in made.events
        ],
        "position": write_position(made.position) if made.position.seen else None,
        "versions": dict(made.versions),
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


def listed(found: DatedPage[RecordedTaggedEvent], link: Link) -> dict[str, Any]:
    """A page of a listing of events; it ends earlier than `found` where the answer is full."""
    answer, shown, last = AnswerSize(), list[Any](), ""
    for each in found.items:
        # A page never ends between events of one id: it could not be gone on from.
        ends = bool(shown) and each.sortable_id > last
        view = answer.fit(event(each, link)) if ends else answer.put(event(each, link), fields(each))
        if view is None:
            return {"events": shown, "next": last}
        shown.append(view)
        last = each.sortable_id
    return {"events": shown, "next": found.next}


def single(found: RecordedTaggedEvent, link: Link) -> Any:
    """An event as an answer of its own, with its place in the tag that it was found in."""
    frame = fields(found)
    if found.position is not None:
        frame["position"] = write_position(found.position)
    return AnswerSize().put({**frame, **_bodies(found, link)}, frame)


def tags(found: TagPage) -> dict[str, Any]:
    """A page of tags with their numbers of events."""
    return {"tags": [tag_count(each) for each in found.tags], "next": found.next}


def tag(found: TagCount, latest: TagEntry) -> dict[str, Any]:
    """A tag and its latest event."""
    return {
        **tag_count(found),
        "group": group_of(found.tag),
        "latest": _entry(latest),
    }


def entries(found: DatedPage[TagEntry]) -> dict[str, Any]:
    """A page of a tag's entries."""
    shown = [{**_entry(each), "index": each.index} for each in found.items]
    return {"entries": shown, "next": found.next}


def _entry(found: TagEntry) -> dict[str, Any]:
    return {
        "id": found.event_id,
        "sortableId": found.sortable_id,
        "type": found.event_type,
        "timestamp": found.created_at,
    }


def event(found: RecordedTaggedEvent, link: Link | None = None) -> dict[str, Any]:
    """An event; a link is needed where bodies have been left in the bucket."""
    return {**fields(found), **_bodies(found, link)}


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


def _bodies(found: RecordedTaggedEvent, link: Link | None) -> dict[str, Any]:
    """Data and metadata: text to the byte as it is stored, bytes in base64, nothing as nothing, a link to the bucket.

    Text that is no JSON, which another library stored, is shown as text.
    """
    shown: dict[str, Any] = {}
    for name, body, foreign in (("data", found.data, "payload"), ("meta", found.meta, "metaText")):
        if isinstance(body, Unfetched) and link is not None:
            shown[f"{name}Url"] = bodies.claimed(body.claim, link)
        elif isinstance(body, bytes):
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


def _data(fields: Mapping[str, Node], most: int | None) -> TaggedBody:
    claim = fields.get("claim")
    if claim is None:
        return _body(fields, "data", "data64", most)
    if most is not None:
        raise InvalidInput(claim.name, "must not be given: these tables refer to no bucket")
    for name in ("data", "data64"):
        if name in fields:
            raise InvalidInput(claim.name, f"may not be given together with {fields[name].name}")
    # Whether it is text, nobody has seen.
    return Unfetched.of(bodies.uploaded(claim), text=False)


def _body(fields: Mapping[str, Node], plain: str, coded: str, most: int | None) -> TaggedBody:
    """JSON as text, base64 as bytes; nothing is no bytes."""
    given = only_one(fields, plain, coded)
    if given is None:
        return b""
    body = json_body(given) if plain in fields else given.base64()
    if most is not None and len(body) > most:
        raise TooLarge(given.name, len(body), most)
    return body.decode() if plain in fields else body


def position_of(fields: Mapping[str, Node]) -> Position | None:
    """The position to append or to read after; None where there is none."""
    return read_position(fields["after"].text(MAX_POSITION_BYTES)) if "after" in fields else None
