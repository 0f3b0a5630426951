"""Tagged events as JSON: what is sent, read to values; what is answered, shown; and both as the OpenAPI document has
them.

    {"type": "Subscribed", "data": {"grade": 1.50}, "tags": ["course:1", "student:7"]}
    {"items": [{"types": ["Subscribed"], "tags": ["course:1"]}]}

Events are those of streams, with tags (`stream_shapes`). A query's items are alternatives; an item asks for any of its
types and all of its tags.

A page ends where the next event has no room (`bodies`). What is in the bucket is shown as a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from epochal.errors import InvalidInput, TooLarge
from epochal.http import bodies, problems, stream_shapes
from epochal.http.bodies import AnswerSize, Link, capacity, consumed
from epochal.http.fields import DEFAULT_LIMIT, MAX_LIMIT, Node, required
from epochal.http.problems import Problem
from epochal.http.shapes import (
    CAPACITY,
    Component,
    Members,
    Shown,
    array,
    flag,
    or_null,
    record,
    ref,
    text,
    whole,
    words,
)
from epochal.http.stream_shapes import (
    CONDITION,
    ID,
    IDS_SHOWN,
    INDEX,
    MAX_NAMED,
    MAX_POSITION_BYTES,
    POSITION,
    TAG,
    shown_bodies,
    tag_of,
)
from epochal.model.dcb import (
    MAX_TYPE_BYTES,
    Query,
    QueryItem,
    check_type,
    group_of,
    parse_event_id,
)
from epochal.model.events import Event, Recorded
from epochal.model.outcomes import Appended, Conflict
from epochal.model.positions import read_position, write_position
from epochal.model.several import Conflicts
from epochal.model.tagged_results import BackwardPage, TagCount, TagEntry, TaggedPage
from epochal.model.versions import Position
from epochal.plan.values import Units
from epochal.store.tag_pages import DatedPage
from epochal.store.tagged_store import MAX_EVENTS, TaggedStore

PLACE: Final = text(
    "Orders events: within each of their tags always as they were appended.", pattern=r"\d{30}"
)
_TYPE: Final = text("What kind of event it is.", most=MAX_TYPE_BYTES, pattern=r"[^\x00-\x1f\x7f]+")
_NEXT: Final = text(
    "`next` of the page before; everything else must be as it was.", most=2 * MAX_POSITION_BYTES
)
_STAMP: Final = words("When it was appended.")
_GOES_ON: Final = "`from` of the page that goes on; null where there is none."


# What is sent.

EVENT_QUERY: Final = Component(
    "EventQuery",
    record(
        {
            "items": {
                **array(ref("EventQueryItem"), "Alternatives: an event matches one of them.", MAX_NAMED),
                "minItems": 1,
            }
        }
    ),
)
EVENT_QUERY_ITEM: Final = Component(
    "EventQueryItem",
    record(
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
)
APPEND: Final = Component(
    "AppendTagged",
    record(
        {
            "events": {
                **array(ref("NewEvent"), "Appended in this order, all or none.", MAX_EVENTS),
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
    record(
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
)


def event_of(node: Node) -> Event:
    """An event to append; raises `InvalidInput` naming the field that breaks a rule."""
    event = stream_shapes.event_of(node)
    check_type(event.type, node.below("type"))
    return event if event.id is None else replace(event, id=parse_event_id(event.id, node.below("id")))


def query_of(node: Node, store: TaggedStore) -> Query:
    """A query that the store can be held to; raises `InvalidInput` naming the field that breaks a rule."""
    items = required(node, node.members(EVENT_QUERY.names), "items")
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


def position_of(fields: Mapping[str, Node]) -> Position | None:
    """The position to append or to read after; None where there is none."""
    return read_position(fields["after"].text(MAX_POSITION_BYTES)) if "after" in fields else None


def _item(node: Node) -> QueryItem:
    fields = node.members(EVENT_QUERY_ITEM.names)
    types = map(_type_of, fields["types"].items(MAX_NAMED)) if "types" in fields else ()
    return QueryItem(
        types=frozenset(types),
        tags=frozenset(map(tag_of, fields["tags"].items(MAX_NAMED)) if "tags" in fields else ()),
    )


def _type_of(node: Node) -> str:
    return check_type(node.text(MAX_TYPE_BYTES), node.name)


# Events that are answered.

EVENT: Final = Component(
    "TaggedEvent",
    record(
        {
            "id": words("Its id."),
            "place": PLACE,
            "type": words("What kind of event it is."),
            "tags": array(words(), "What it concerns, in order."),
            "stream": words("The stream that it was appended to, if it was to one, and"),
            "index": {**INDEX, "description": "its index there."},
            "timestamp": _STAMP,
            **IDS_SHOWN,
            "executedUser": words("As it was sent, below `/dcb`."),
            **shown_bodies(),
            "position": {
                **POSITION,
                "description": "What had been seen with it, to append after; where `positions` were asked for; "
                "of one event by its id its place in its first tag.",
            },
        },
        required=("id", "place", "type", "tags", "timestamp"),
    ),
)


class Listed:
    """Events for an answer, up to a number and as many as it has room for. Called with each in turn."""

    def __init__(self, limit: int, link: Link, *, positions: bool = False) -> None:
        self._limit = limit
        self._link = link
        self._positions = positions
        self._answer = AnswerSize()
        self.views: list[Any] = []

    def __call__(self, found: Recorded) -> bool:
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

    def refused(self, rejected: Conflict | Conflicts, units: Units) -> Problem:
        """These events in the way of an append, with which a writer decides anew without another read."""
        return Problem(
            problems.CONDITION_FAILED,
            "events that match failIf have been appended: decide again with them, and append after this position",
            figures={"Conflicts": 1.0, **consumed(units)},
            events=self.views,
            position=write_position(rejected.position),
            more=rejected.more,
        )


def event(found: Recorded, link: Link) -> dict[str, Any]:
    """An event; what is left in the bucket is a link."""
    return {**fields(found), **_bodies(found, link)}


def single(found: Recorded, link: Link) -> Any:
    """An event as an answer of its own, with its place in the tag that it was found in."""
    frame = fields(found)
    if found.position is not None:
        frame["position"] = write_position(found.position)
    return AnswerSize().put({**frame, **_bodies(found, link)}, frame)


def fields(found: Recorded) -> dict[str, Any]:
    """An event without its bodies."""
    ids = {"causationId": found.causation_id, "correlationId": found.correlation_id, **found.besides}
    return {
        "id": found.id,
        "place": found.place,
        "type": found.type,
        "tags": list(found.tags),
        "timestamp": found.timestamp,
        **({"stream": found.stream, "index": found.index} if found.stream else {}),
        **{name: value for name, value in ids.items() if value is not None},
    }


def _bodies(found: Recorded, link: Link) -> dict[str, Any]:
    return {**bodies.members("data", found.data, link), **bodies.members("meta", found.meta, link)}


# Answers.

_MADE: Final = Shown("", {"id": (ID, "id"), "place": (PLACE, "place"), "timestamp": (_STAMP, "timestamp")})
APPENDED: Final = Shown(
    "AppendedTagged",
    {
        "events": array(_MADE.schema, "In the order sent."),
        "position": or_null(
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
        "replayed": (flag("Whether an earlier call had appended them."), "replayed"),
        "capacity": CAPACITY,
    },
)
EVENT_PAGE: Final = Shown(
    "TaggedEventPage",
    {
        "events": array(ref("TaggedEvent"), "In order of their places; backward, newest first."),
        "position": or_null(POSITION, "To append after; null until the last page, where it is not backward."),
        "next": or_null(_NEXT, _GOES_ON),
    },
)
LISTED: Final = Shown(
    "ListedEvents",
    {
        "events": array(ref("TaggedEvent"), "In order of their places."),
        "next": or_null(PLACE, _GOES_ON),
    },
)
COUNT: Final = Shown("EventCount", {"events": whole("How many there are.")})


def appended(made: Appended, units: Units) -> dict[str, Any]:
    """The answer to an append. One that was repeated without a condition has looked at no tag: it has no position."""
    return APPENDED(
        made,
        events=[_MADE(each) for each in made.events],
        position=write_position(made.position) if made.position.seen else None,
        versions=dict(made.versions),
        capacity=capacity(units),
    )


def page(found: TaggedPage | BackwardPage, listed: Listed) -> dict[str, Any]:
    """A page of a read; only the last page, or each that is read backward, has the position to append after."""
    return EVENT_PAGE(
        events=listed.views,
        position=None if found.position is None else write_position(found.position),
        next=None if found.rest is None else found.rest.text(),
    )


def listed(found: DatedPage[Recorded], link: Link) -> dict[str, Any]:
    """A page of a listing of events; it ends earlier than `found` where the answer is full."""
    answer, shown, last = AnswerSize(), list[Any](), ""
    for each in found.items:
        # A page never ends between events of one id: it could not be gone on from.
        ends = bool(shown) and each.place > last
        view = answer.fit(event(each, link)) if ends else answer.put(event(each, link), fields(each))
        if view is None:
            return LISTED(events=shown, next=last)
        shown.append(view)
        last = each.place
    return LISTED(events=shown, next=found.next)


# Tags.

_COUNTED: Final[Members] = {
    "tag": (TAG, "tag"),
    "events": (whole("How many events have it, in Sekiban's tables also those that have expired."), "events"),
}
_ENTRY: Final[Members] = {
    "id": (words("Its id."), "event_id"),
    "place": (PLACE, "place"),
    "type": (words("What kind of event it is."), "event_type"),
    "timestamp": (_STAMP, "created_at"),
}
_INDEX: Final = {
    "type": ["integer", "null"],
    "description": "Its place among the tag's events, from 0; null where another library wrote it.",
}

TAG_COUNT: Final = Shown("", _COUNTED)
_LATEST: Final = Shown("", _ENTRY, description="Its latest event.")
ENTRY: Final = Shown("", {**_ENTRY, "index": (_INDEX, "index")})

TAG_PAGE: Final = Shown(
    "TagPage",
    {
        "tags": array(TAG_COUNT.schema, "Below `/dcb` those of a group are in order; all others in none."),
        "next": (or_null(text(""), _GOES_ON), "next"),
    },
)
TAG_SHOWN: Final = Shown(
    "Tag", {**_COUNTED, "group": words("What precedes its first `:`."), "latest": _LATEST.schema}
)
ENTRIES: Final = Shown(
    "TagEntries",
    {
        "entries": array(ENTRY.schema, "In order of their places."),
        "next": (or_null(PLACE, _GOES_ON), "next"),
    },
)


def tag(found: TagCount, latest: TagEntry) -> dict[str, Any]:
    """A tag and its latest event."""
    return TAG_SHOWN(found, group=group_of(found.tag), latest=_LATEST(latest))
