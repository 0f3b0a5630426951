"""What each operation on tagged events asks for, parsed as `commands` does for streams: pure, and total but for
`InvalidInput`.

    {"events": [{"type": "Subscribed", "data": {"grade": 1.50}, "tags": ["course:1", "student:7"]}],
     "failIf": {"items": [{"types": ["Subscribed"], "tags": ["course:1"]}]}, "after": "…"}

`data` is any JSON, null included, its numbers exact; `data64` any bytes in its place; `meta` and `meta64` likewise. A
query's items are alternatives; an item asks for any of its types and all of its tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from epochal.errors import InvalidInput, TooLarge
from epochal.http import events as parse
from epochal.http.commands import DEFAULT_LIMIT, MAX_LIMIT
from epochal.http.document import document, no_document
from epochal.http.fields import Node
from epochal.http.message import Request
from epochal.http.query import Query as Parameters
from epochal.model.dcb import (
    MAX_TAG_BYTES,
    MAX_TYPE_BYTES,
    Position,
    Query,
    QueryItem,
    SortableId,
    TaggedBody,
    TaggedEvent,
    check_tag,
    check_type,
    parse_event_id,
    parse_sortable_id,
)
from epochal.model.positions import read_position
from epochal.model.tagged_results import Down, Rest, parse_down, parse_rest
from epochal.model.times import MAX_EXPIRES
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.store.tag_pages import MAX_LIMIT as MAX_TAGS
from epochal.store.tagged import heads_watched

MAX_EVENTS: Final = (TRANSACTION_ITEMS - 1) // 2
"""Events of an append: each has an entry at least, and they share a head at best. More tags leave room for fewer."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendTagged:
    """`POST /dcb/events`."""

    events: tuple[TaggedEvent, ...]
    fail_if: Query | None
    after: Position | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTagged:
    """`POST /dcb/query`."""

    query: Query
    after: Position | None
    rest: Rest | Down | None
    limit: int
    backward: bool = False
    positions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTagged:
    """`GET /dcb/events`: a tag's, or all, after a sortable id."""

    tag: str | None
    since: SortableId | None
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTags:
    """`GET /dcb/tags`: one tag, those of a group, or all."""

    tag: str | None
    group: str | None
    start: str | None
    limit: int


def append_tagged(request: Request, *, type_heads: bool) -> AppendTagged:
    """Parse an append."""
    Parameters(request)
    if request.header("Idempotency-Key") is not None:
        raise InvalidInput("Idempotency-Key", "is not known to tagged events: give the events ids instead")
    root = document(request)
    fields = root.members(("events", "failIf", "after"))
    events = tuple(map(event, parse.required(root, fields, "events").items(MAX_EVENTS)))
    if not events:
        raise InvalidInput("events", "must not be empty")
    return AppendTagged(
        events=events,
        fail_if=query(fields["failIf"], type_heads=type_heads) if "failIf" in fields else None,
        after=_position(fields),
    )


def query_tagged(request: Request, *, type_heads: bool) -> QueryTagged:
    """Parse a query."""
    Parameters(request)
    root = document(request)
    fields = root.members(("query", "after", "from", "limit", "direction", "positions"))
    backward = "direction" in fields and _is_backward(fields["direction"])
    return QueryTagged(
        query=query(parse.required(root, fields, "query"), type_heads=type_heads),
        after=_position(fields),
        rest=_rest(fields["from"].text(2 * MAX_POSITION_BYTES), backward=backward)
        if "from" in fields
        else None,
        limit=fields["limit"].whole(1, MAX_LIMIT) if "limit" in fields else DEFAULT_LIMIT,
        backward=backward,
        positions="positions" in fields and fields["positions"].flag(),
    )


def _is_backward(node: Node) -> bool:
    if node.value not in ("forward", "backward"):
        raise InvalidInput(node.name, "must be forward or backward")
    return bool(node.value == "backward")


def _rest(written: str, *, backward: bool) -> Rest | Down:
    return parse_down(written) if backward else parse_rest(written)


def list_tagged(request: Request) -> ListTagged:
    """Parse a listing of events."""
    no_document(request)
    given = Parameters(request, ("tag", "from", "limit"))
    tag, since = given.text("tag"), given.text("from")
    return ListTagged(
        tag=None if tag is None else check_tag(tag, "tag"),
        since=None if since is None else parse_sortable_id(since, "from"),
        limit=given.whole("limit", 1, MAX_TAGS) or MAX_TAGS,
    )


def count_tagged(request: Request) -> SortableId | None:
    """Parse a count of events: those after which sortable id."""
    no_document(request)
    since = Parameters(request, ("from",)).text("from")
    return None if since is None else parse_sortable_id(since, "from")


def read_tagged(request: Request) -> str:
    """Parse a read of one event: its id."""
    no_document(request)
    Parameters(request)
    return parse_event_id(request.path["id"])


def list_tags(request: Request) -> ListTags:
    """Parse a listing of tags."""
    no_document(request)
    given = Parameters(request, ("group", "tag", "from", "limit"))
    tag, group, start = given.text("tag"), given.text("group"), given.text("from")
    if tag is not None and (group is not None or start is not None):
        raise InvalidInput("tag", "asks for one tag: without group and from")
    return ListTags(
        tag=None if tag is None else check_tag(tag, "tag"),
        group=group,
        start=start,
        limit=given.whole("limit", 1, MAX_TAGS) or MAX_TAGS,
    )


def read_tag(request: Request) -> str:
    """Parse a read of a tag: which one."""
    no_document(request)
    Parameters(request)
    return check_tag(request.path["tag"], "tag")


def event(node: Node) -> TaggedEvent:
    """An event to append; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(EVENT_FIELDS)
    kind = parse.required(node, fields, "type")
    return TaggedEvent(
        type=check_type(kind.text(MAX_TYPE_BYTES), kind.name),
        data=_body(fields, "data", "data64"),
        meta=_body(fields, "meta", "meta64"),
        tags=tuple(map(_tag, fields["tags"].items(MAX_NAMED))) if "tags" in fields else (),
        id=_event_id(fields["id"]) if "id" in fields else None,
        causation_id=_text(fields, "causationId"),
        correlation_id=_text(fields, "correlationId"),
        executed_user=_text(fields, "executedUser"),
        expires=fields["expires"].whole(1, MAX_EXPIRES) if "expires" in fields else None,
    )


def query(node: Node, *, type_heads: bool) -> Query:
    """A query that a store can be held to; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(("items",))
    items = parse.required(node, fields, "items")
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


def _item(node: Node) -> QueryItem:
    fields = node.members(("types", "tags"))
    return QueryItem(
        types=frozenset(map(_type, fields["types"].items(MAX_NAMED))) if "types" in fields else frozenset(),
        tags=frozenset(map(_tag, fields["tags"].items(MAX_NAMED))) if "tags" in fields else frozenset(),
    )


def _type(node: Node) -> str:
    return check_type(node.text(MAX_TYPE_BYTES), node.name)


def _tag(node: Node) -> str:
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
    body = parse.json_body(given[0]) if plain in fields else given[0].base64()
    if len(body) > MAX_DATA_BYTES:
        raise TooLarge(given[0].name, len(body), MAX_DATA_BYTES)
    return body.decode() if plain in fields else body


def _text(fields: Mapping[str, Node], name: str) -> str | None:
    return fields[name].text(parse.MAX_ID_BYTES) if name in fields else None


def _position(fields: Mapping[str, Node]) -> Position | None:
    return read_position(fields["after"].text(MAX_POSITION_BYTES)) if "after" in fields else None
