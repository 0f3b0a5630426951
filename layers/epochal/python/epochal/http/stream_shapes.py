"""Streams as JSON: what is sent, read to values; what is answered, shown; and both as the OpenAPI document has them.

    {"type": "Moved", "data": {"to": "EWR"}, "meta": {"by": "ops"}, "timestamp": "2013-01-01T10:00:00Z",
     "correlationId": "c-1", "causationId": "e-7"}

The body is `data` (any JSON, null included; stored as compact UTF-8 with its numbers exact), or `data64` (any bytes, in
base64), or `claim` (already uploaded, see `POST /bodies`), or none. `meta` and `meta64` likewise.

A page ends where the next event has no room (`bodies`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from epochal.codec.bodies import PREFIX
from epochal.errors import InvalidInput
from epochal.http import bodies, problems
from epochal.http.bodies import CODINGS, MAX_CLAIM_BYTES, AnswerSize, Link, consumed
from epochal.http.fields import (
    EXPECTATIONS,
    MAX_ID_BYTES,
    MAX_TYPE_BYTES,
    Node,
    etag,
    expectation_of,
    json_body,
    moment,
    only_one,
    optional_id,
    required,
)
from epochal.http.problems import Problem, fault_of
from epochal.http.shapes import (
    CAPACITY,
    Component,
    Schema,
    Shown,
    array,
    base64,
    flag,
    name,
    record,
    ref,
    text,
    whole,
    words,
)
from epochal.http.shapes import moment as moment_schema
from epochal.http.shapes import only_one as only_one_schema
from epochal.model.events import Body, Event, Recorded, RecordedUnfold, Unfold
from epochal.model.names import MAX_TAG_BYTES, stream_name
from epochal.model.outcomes import Conflict
from epochal.model.several import StreamAppend
from epochal.model.versions import ANY, MAX_VERSION, ExpectedVersion, parse_token
from epochal.plan.ops import TRANSACTION_ITEMS
from epochal.plan.values import Units
from epochal.store.reading import Page, StreamState

if TYPE_CHECKING:
    from epochal.feed.results import FeedEvent, FeedItem

MAX_EVENTS: Final = 1_000
MAX_UNFOLDS: Final = 100
"""More of either than an item of 400 KB holds at a usual size; what does not fit is refused by its bytes."""

MAX_APPENDS: Final = TRANSACTION_ITEMS
"""Streams of one append; one less with a key, whose record is a write of the transaction too."""

MAX_NAMED: Final = TRANSACTION_ITEMS
"""Items of a query, types and tags of an item, heads that fence a query: what one transaction can be held to."""

MAX_POSITION_BYTES: Final = 1024 * 1024

STREAM: Final = name("A stream's name, `Category-id`.", "Aircraft-N14228")
TOKEN: Final = text(
    "The stream's exact state: its ETag, without the quotes.",
    pattern=r"(0|[1-9]\d{0,9})\.[0-9a-f]{32}(\.\d{1,7}){5}(\.\d{1,10}(\.[0-9a-f]{32})?)?",
)
TAG: Final = text(
    "Printable text that does not begin with `$`; what precedes the first `:` is its group.",
    most=MAX_TAG_BYTES,
    pattern=r"[^$:\x00-\x1f\x7f][^\x00-\x1f\x7f]*",
    examples=["course:1"],
)
POSITION: Final = text("What a read has seen: opaque, to be sent back as it is.", most=MAX_POSITION_BYTES)
CONDITION: Final = {
    "failIf": ref("EventQuery"),
    "after": {
        **POSITION,
        "description": "Only events beyond this position are in the way; left out, any that match.",
    },
}
INDEX: Final = whole("Index within the stream, counted from 0.", 0, MAX_VERSION)
VERSION: Final = whole("The stream's version: the index that its next event gets.", 0, MAX_VERSION)
_LOW_WATER: Final = whole("Events below this index have been pruned.", 0, MAX_VERSION)
_FIRST: Final = whole("Index of the first event of this append.", 0, MAX_VERSION)
_REPLAYED: Final = flag("An earlier request with the same Idempotency-Key had made this append.")
_SHA256: Final = text("SHA-256 of the content, in hex.", pattern="[0-9a-f]{64}")
_BYTES: Final = whole("Size of the content in bytes.", 1, MAX_CLAIM_BYTES)
OMITTED: Final = {
    "const": True,
    "description": "The answer had no room for the bodies: read the event alone.",
}


# Bodies in the bucket.

BODY: Final = Component("Body", record({"sha256": _SHA256, "bytes": _BYTES}))
CLAIM: Final = Shown(
    "Claim",
    {
        "key": (text("Where the content lies.", pattern=f"{PREFIX}[0-9a-f]{{64}}"), "key"),
        "sha256": (_SHA256, "sha256"),
        "bytes": (_BYTES, "size"),
    },
    description="Content that has been uploaded (see `POST /bodies`).",
)
LINK: Final = Component(
    "Link",
    record(
        {
            "url": text("Where to get the content, without further credentials.", format="uri"),
            "expiresIn": whole("Seconds for which the URL works."),
            "sha256": _SHA256,
            "bytes": _BYTES,
            "encoding": {"enum": list(CODINGS.values()), "description": "How the content encodes the body."},
        },
        description="A body too large for an answer.",
    ),
)
UPLOAD: Final = Shown(
    "Upload",
    {
        "url": text("Where to put the content, without further credentials.", format="uri"),
        "method": {"const": "PUT"},
        "headers": {
            "type": "object",
            "description": "To be sent with it, as they are.",
            "additionalProperties": {"type": "string"},
        },
        "expiresIn": whole("Seconds for which the URL works."),
        "claim": ref("Claim"),
    },
)


# Events and unfolds that are sent.


def _sent(more: dict[str, Schema]) -> Schema:
    return record(
        {
            "type": text("What kind of event or state it is.", most=MAX_TYPE_BYTES),
            "data": {"description": "The body: any JSON. Numbers are kept exactly as they are written."},
            "data64": base64("The body, where it is not JSON."),
            "claim": ref("Claim"),
            "meta": {"description": "Metadata: any JSON."},
            "meta64": base64("Metadata, where it is not JSON."),
            "timestamp": moment_schema(
                "When it happened: ISO 8601, kept to 100 ns; UTC where it names no offset."
            ),
            **more,
        },
        required=("type",),
        allOf=[only_one_schema("data", "data64", "claim"), only_one_schema("meta", "meta64")],
    )


_IDS: Final = {
    "correlationId": text("The conversation that it belongs to.", most=MAX_ID_BYTES),
    "causationId": text("What caused it.", most=MAX_ID_BYTES),
}
ID: Final = text(
    "The event's id, a UUID.",
    pattern="[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    examples=["1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"],
)
NEW_UNFOLD: Final = Component("NewUnfold", _sent({}))
_TAGGED: Final = {
    "tags": array(TAG, "What it concerns: queries find it. Refused where a layout keeps no tags.", MAX_NAMED),
    "id": {
        **ID,
        "description": "With tags, below `/events`: a UUID of the caller's makes repeats of the append harmless, and "
        "finds the event.",
    },
}
NEW_EVENT: Final = Component("NewEvent", _sent({**_IDS, **_TAGGED}))


def event_of(node: Node) -> Event:
    """An event to append; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(NEW_EVENT.names)
    return Event(
        **_contents(node, fields),
        correlation_id=optional_id(fields, "correlationId"),
        causation_id=optional_id(fields, "causationId"),
        tags=tuple(map(tag_of, fields["tags"].items(MAX_NAMED))) if "tags" in fields else (),
        id=fields["id"].text(64) if "id" in fields else None,
    )


def tag_of(node: Node) -> str:
    """A tag; raises `InvalidInput` naming the field that breaks a rule."""
    from epochal.model.dcb import check_tag  # noqa: PLC0415  a function starts without it: 380 lines

    return check_tag(node.text(MAX_TAG_BYTES), node.name)


def unfold_of(node: Node) -> Unfold:
    """An unfold to store; raises `InvalidInput` naming the field that breaks a rule."""
    return Unfold(**_contents(node, node.members(NEW_UNFOLD.names)))


def _contents(node: Node, fields: Mapping[str, Node]) -> dict[str, Any]:
    return {
        "type": required(node, fields, "type").text(MAX_TYPE_BYTES),
        "data": _body(fields, "data", "data64", "claim"),
        "meta": _body(fields, "meta", "meta64"),
        "timestamp": moment(fields["timestamp"]) if "timestamp" in fields else None,
    }


def _body(fields: Mapping[str, Node], *names: str) -> Body:
    given = only_one(fields, *names)
    if given is None:
        return b""
    if names[0] in fields:
        return json_body(given)
    return given.base64() if names[1] in fields else bodies.uploaded(given)


# Appends.

_WITH_QUERY: Final = {"after": ["failIf"]}
_REACHED: Final = {
    **POSITION,
    "description": "To append after: that of `failIf`, moved past this append; without one, where it is in the tags of "
    "its events. Absent where neither is there; of a replayed append it may be before the events.",
}


def _append(
    more: dict[str, Schema], *expectations: Schema, condition: Mapping[str, Schema] | None = None
) -> Schema:
    """An append to a stream, which `more` names where the path does not."""
    rest = {} if condition is None else {"dependentRequired": _WITH_QUERY}
    return record(
        {
            **more,
            "events": array(ref("NewEvent"), "Appended in this order, all or none.", MAX_EVENTS),
            "unfolds": array(
                ref("NewUnfold"),
                "State to store beside the events, in place of all that is stored; left out, what is stored stays.",
                MAX_UNFOLDS,
            ),
            "expected": {
                "description": "What the stream must be, else the answer is 409. Left out: anything.",
                "anyOf": [
                    whole("Its version.", 0, MAX_VERSION),
                    {"enum": list(EXPECTATIONS)},
                    *expectations,
                ],
            },
            **(condition or {}),
        },
        required=tuple(more),
        description="At least one event or unfold.",
        anyOf=[{"required": [name], "properties": {name: {"minItems": 1}}} for name in ("events", "unfolds")],
        **rest,
    )


APPEND: Final = Component("Append", _append({}, condition=CONDITION))
STREAM_APPEND: Final = Component("StreamAppend", _append({"stream": STREAM}, TOKEN))
APPEND_ALL: Final = Component(
    "AppendAll",
    record(
        {
            "appends": {**array(ref("StreamAppend"), "Each of another stream.", MAX_APPENDS), "minItems": 1},
            **CONDITION,
        },
        required=("appends",),
        dependentRequired=_WITH_QUERY,
    ),
)


def contents_of(node: Node, fields: dict[str, Node]) -> tuple[tuple[Event, ...], tuple[Unfold, ...] | None]:
    """The events and unfolds of an append, which has some; None where it leaves the unfolds as they are."""
    events = tuple(map(event_of, fields["events"].items(MAX_EVENTS))) if "events" in fields else ()
    unfolds = tuple(map(unfold_of, fields["unfolds"].items(MAX_UNFOLDS))) if "unfolds" in fields else None
    if not events and not unfolds:
        raise InvalidInput(node.below("events"), "at least one event, or one unfold, is required")
    return events, unfolds


def append_of(node: Node) -> StreamAppend:
    """What one stream gets; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(STREAM_APPEND.names)
    stream = required(node, fields, "stream")
    name = stream_name(stream.value, stream.name)
    events, unfolds = contents_of(node, fields)
    expected = _expected(fields["expected"]) if "expected" in fields else ANY
    return StreamAppend(stream=name, events=events, unfolds=unfolds, expected=expected)


def _expected(node: Node) -> ExpectedVersion:
    """A version, a word, or a token, which has points."""
    if isinstance(node.value, str) and "." in node.value:
        return parse_token(node.value, node.name)
    return expectation_of(node)


APPENDED: Final = Shown(
    "Appended",
    {
        "stream": STREAM,
        "first": (_FIRST, "first"),
        "version": (VERSION, "version"),
        "replayed": (_REPLAYED, "replayed"),
        "position": _REACHED,
        "capacity": CAPACITY,
    },
    optional=("position",),
)
EACH_APPENDED: Final = Shown(
    "", {"stream": STREAM, "first": (_FIRST, "first"), "version": (VERSION, "version"), "token": TOKEN}
)
ALL_APPENDED: Final = Shown(
    "AllAppended",
    {
        "streams": array(EACH_APPENDED.schema, "What each stream got, in the order of the request."),
        "replayed": _REPLAYED,
        "position": _REACHED,
        "capacity": CAPACITY,
    },
    optional=("position",),
)
IN_THE_WAY: Final = record(
    {
        "stream": STREAM,
        "version": VERSION,
        "token": TOKEN,
        "deleted": flag("Whether it takes no more events."),
        "index": {
            **INDEX,
            "description": "Of the first event, where nobody can tell whether it was appended.",
        },
    },
    required=("stream",),
)


# Events and unfolds that are answered.


def shown_bodies() -> dict[str, Schema]:
    """How bodies are shown; none of these where they are empty."""
    return {
        "data": {"description": "The body, as it is stored, where it is JSON."},
        "data64": base64("The body, where it is not JSON."),
        "dataUrl": ref("Link"),
        "meta": {"description": "Metadata, where it is JSON."},
        "meta64": base64("Metadata, where it is not JSON."),
        "metaUrl": ref("Link"),
        "omitted": OMITTED,
    }


# Other libraries write to the same tables, and bind themselves to less.
IDS_SHOWN: Final = {name: words() for name in _IDS}

SHOWN_EVENT: Final = {
    "stream": words("The stream's name."),
    "index": INDEX,
    "type": words("What kind of event it is."),
}
TAGS_SHOWN: Final = {
    "id": text("Of an event with tags: the same in the streams of all of them."),
    "tags": array(text("A tag."), "What it concerns, in order."),
}
EVENT: Final = Component(
    "Event",
    record(
        {**SHOWN_EVENT, "timestamp": words(), **IDS_SHOWN, **TAGS_SHOWN, **shown_bodies()},
        required=("stream", "index", "type", "timestamp"),
    ),
)
UNFOLD: Final = Component(
    "Unfold",
    record(
        {
            "version": whole("The stream's version that it was made from.", 0, MAX_VERSION),
            "type": words("What kind of state it is."),
            "timestamp": words(),
            **shown_bodies(),
        },
        required=("version", "type", "timestamp"),
    ),
)


def event(found: Recorded | FeedEvent, link: Link) -> dict[str, Any]:
    """An event, its bodies in the bucket as links. Written out, since a page has thousands."""
    return {
        **event_frame(found),
        **bodies.members("data", found.data, link),
        **bodies.members("meta", found.meta, link),
    }


def event_frame(found: Recorded | FeedEvent) -> dict[str, Any]:
    """An event without its bodies."""
    frame: dict[str, Any] = {
        "stream": found.stream,
        "index": found.index,
        "type": found.type,
        "timestamp": found.timestamp,
    }
    if found.id:
        frame |= {"id": found.id, "tags": list(found.tags)}
        if not isinstance(found, Recorded) and found.home:
            frame["home"] = found.home
    if found.correlation_id is not None:
        frame["correlationId"] = found.correlation_id
    if found.causation_id is not None:
        frame["causationId"] = found.causation_id
    return frame


def unfold(found: RecordedUnfold, link: Link) -> dict[str, Any]:
    """An unfold, its bodies in the bucket as links."""
    return {
        **_unfold_frame(found),
        **bodies.members("data", found.data, link),
        **bodies.members("meta", found.meta, link),
    }


def _unfold_frame(found: RecordedUnfold) -> dict[str, Any]:
    return {"version": found.version, "type": found.type, "timestamp": found.timestamp}


# Items of the feed.

FEED_ITEM: Final = Component(
    "FeedItem",
    record(
        {
            **SHOWN_EVENT,
            "timestamp": words(),
            **IDS_SHOWN,
            **shown_bodies(),
            "id": text("A tagged event's id, the same in the streams of all its tags."),
            "tags": array(text("A tag."), "A tagged event's tags; through the first it comes exactly once."),
            "home": words(
                "The stream that an event with tags was appended to: through it that comes exactly once."
            ),
            "pruned": {"const": True, "description": "The event has been pruned since it was indexed."},
            "expired": {"const": True, "description": "The event's time was over; its place stays."},
            "fault": record(
                {
                    "type": text(
                        "The problem that reading the event alone would be: `corrupt-data` or `missing-body`."
                    ),
                    "detail": text("What is wrong with what is stored."),
                },
                description="The event is there and cannot be read. Those around it can.",
            ),
        },
        required=tuple(SHOWN_EVENT),
    ),
)


def bare(item: FeedItem) -> dict[str, Any]:
    """An item without an event, and why it has none if one was asked for."""
    frame = {"stream": item.stream, "index": item.index, "type": item.type}
    if item.omitted:
        return {**frame, "omitted": True}
    if item.fault is not None:
        return {**frame, "fault": fault_of(item.fault)}
    return frame if item.gone is None else {**frame, item.gone: True}


# Streams that are answered.

STATE: Final = Shown(
    "State",
    {
        "stream": (STREAM, "stream"),
        "version": (VERSION, "version"),
        "lowWater": (_LOW_WATER, "low_water"),
        "headEvents": whole("How many of the last events its head carries."),
        "unfolds": array(ref("Unfold"), "State derived from the events."),
        "events": array(ref("Event"), "Those that the head carries, where `events=true` asked for them."),
    },
    optional=("events",),
)
EVENT_PAGE: Final = Shown(
    "EventPage",
    {
        "stream": STREAM,
        "version": (VERSION, "version"),
        "lowWater": (_LOW_WATER, "low_water"),
        "events": array(ref("Event"), "In the order asked for."),
        "next": {
            "description": "`from` of the next page; null where there is none.",
            "anyOf": [INDEX, {"type": "null"}],
        },
        "hole": record(
            {
                "first": whole("The first index that was asked for.", 0, MAX_VERSION),
                "end": whole("The index after the last of them.", 0, MAX_VERSION),
            },
            description="Events that were asked for before these and have been pruned; absent where none have.",
        ),
    },
    optional=("hole",),
)
PRUNE: Final = Component("Prune", record({"before": whole("The first index to keep.", 0, MAX_VERSION)}))
PRUNED: Final = Shown(
    "Pruned",
    {
        "stream": STREAM,
        "lowWater": (_LOW_WATER, "low_water"),
        "deletedItems": (whole("Items deleted by this request."), "deleted"),
        "done": (
            flag("False: readers see none of it any more, but items are left. Send the request again."),
            "done",
        ),
    },
)


def state(found: StreamState, link: Link, *, events: bool) -> dict[str, Any]:
    """A stream's head, with the events that it carries if wanted."""
    shown = found.events if events else ()
    # A head has hundreds of events, all of which are shown; names that JSON has to escape can be most of an answer.
    answer = AnswerSize([*map(_unfold_frame, found.unfolds), *map(event_frame, shown)])
    unfolds = [answer.put(unfold(each, link), _unfold_frame(each)) for each in found.unfolds]
    carried = (
        {"events": [answer.put(event(each, link), event_frame(each)) for each in shown]} if events else {}
    )
    return STATE(found, headEvents=len(found.events), unfolds=unfolds, **carried)


def page(stream: str, found: Page, link: Link) -> dict[str, Any]:
    """A page of events; it ends earlier than `found` where the answer is full."""
    answer, shown, following = AnswerSize(), list[Any](), found.next
    for each in found.events:
        view = answer.fit(event(each, link)) if shown else answer.put(event(each, link), event_frame(each))
        if view is None:
            following = each.index
            break
        shown.append(view)
    hole = {} if found.hole is None else {"hole": {"first": found.hole.first, "end": found.hole.end}}
    return EVENT_PAGE(found, stream=stream, events=shown, next=following, **hole)


# What stands in the way.


def refused(stream: str, conflict: Conflict, units: Units, *, in_header: bool) -> Problem:
    """A write that did not find the stream as expected: 412 for a header's expectation, 409 for the body's."""
    figures = {"Conflicts": 1.0, **consumed(units)}
    if conflict.deleted:
        return deleted(stream, conflict.version, figures)
    return Problem(
        problems.PRECONDITION_FAILED if in_header else problems.VERSION_CONFLICT,
        f"{stream} is at version {conflict.version}",
        headers={} if conflict.token is None else {"ETag": etag(conflict.token)},
        figures=figures,
        stream=stream,
        version=conflict.version,
    )


def deleted(stream: str, version: int, figures: Mapping[str, float]) -> Problem:
    """The stream carries a tombstone, at the version that it was deleted at."""
    return Problem(
        problems.STREAM_DELETED,
        f"{stream} was deleted at version {version} and takes no more events",
        figures=figures,
        stream=stream,
        version=version,
    )


def not_found(stream: str) -> Problem:
    """There is no such stream."""
    return Problem(problems.STREAM_NOT_FOUND, f"{stream} has no events", stream=stream)
