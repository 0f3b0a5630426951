"""Events and unfolds as JSON: readers of requests, views for answers, and the schemas of both.

    {"type": "Moved", "data": {"to": "EWR"}, "meta": {"by": "ops"}, "timestamp": "2013-01-01T10:00:00Z",
     "correlationId": "c-1", "causationId": "e-7"}

A body is sent as `data` (any JSON, null included; stored as compact UTF-8 with its numbers exact), or `data64` (any
bytes, in base64), or `claim` (already uploaded, see `POST /bodies`), or none. An answer has it in the plainest form
that loses nothing:

"data": …          a JSON body, as it is stored, to the byte
"data64": "…"      any other body, in base64
"dataUrl": {…}     a body in the bucket: its download URL, the URL's lifetime, and the SHA-256 of the content
                   no member: an empty body

Metadata are sent and answered in the same way as `meta`, but without a claim.

An answer must fit what a Lambda function may return, 6 MB with every quote and backslash of its text escaped once more;
`RESPONSE_BYTES` of that are filled. A page ends before an event that would exceed them. One event alone may take up to
`LARGEST` bytes; a larger event is answered without its bodies and marked `omitted`, so that the events after it can be
read.
"""

from __future__ import annotations

import json as plain_json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from simplejson import RawJSON

from epochal.codec import json
from epochal.codec.bodies import BROTLI, DEFLATE, DIRECT, PREFIX
from epochal.codec.json import MARK
from epochal.errors import InvalidInput
from epochal.http import schemas
from epochal.http.answers import text_of
from epochal.http.components import Component, Read, Shown
from epochal.http.documents import nests_too_deep
from epochal.http.nodes import Node, json_body, time_of
from epochal.http.problems import fault_of
from epochal.model.bodies import Body, Claim
from epochal.model.events import (
    MAX_ID_BYTES,
    MAX_TAG_BYTES,
    MAX_TYPE_BYTES,
    Event,
    Recorded,
    RecordedUnfold,
    Unfold,
)
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.versions import MAX_VERSION
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.settings import RESPONSE_BYTES

if TYPE_CHECKING:
    from epochal.feed.history import FeedEvent, FeedItem

Link = Callable[[Claim, int], str]
"""Function that signs a download URL of a body, valid for the given seconds."""

LINK_SECONDS: Final = 15 * 60
"""Lifetime of a URL in seconds: long enough for a slow connection, short enough not to be stored."""

MAX_CLAIM_BYTES: Final = 5 * 1024**3
"""The largest object that S3 takes in one request."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)

CODINGS: Final = {DIRECT: "identity", DEFLATE: "deflate-raw", BROTLI: "br"}

MAX_EVENTS: Final = 1_000
MAX_UNFOLDS: Final = 100
"""Most events or unfolds of an append: more than an item of 400 KB holds at usual sizes. Larger appends are refused by
their bytes."""

MAX_NAMED: Final = TRANSACTION_ITEMS
"""Most items of a query, types and tags of an item, and heads that fence a query: the limit of one transaction."""

MAX_POSITION_BYTES: Final = 1024 * 1024

TAG: Final = schemas.text(
    "Printable text that does not begin with `$`; what precedes the first `:` is its group.",
    most=MAX_TAG_BYTES,
    pattern=r"[^$:\x00-\x1f\x7f][^\x00-\x1f\x7f]*",
    examples=["course:1"],
)
POSITION: Final = schemas.text(
    "What a read has seen: opaque, to be sent back as it is.", most=MAX_POSITION_BYTES
)
CONDITION: Final = {
    "failIf": schemas.ref("EventQuery"),
    "after": {
        **POSITION,
        "description": "Only events beyond this position are in the way; left out, any that match.",
    },
}
INDEX: Final = schemas.whole("Index within the stream, counted from 0.", 0, MAX_VERSION)
_SHA256: Final = schemas.text("SHA-256 of the content, in hex.", pattern="[0-9a-f]{64}")
_BYTES: Final = schemas.whole("Size of the content in bytes.", 1, MAX_CLAIM_BYTES)
OMITTED: Final = {
    "const": True,
    "description": "The answer had no room for the bodies: read the event alone.",
}


# Bodies.

CLAIM: Final = Shown(
    "Claim",
    {
        "key": (schemas.text("Where the content lies.", pattern=f"{PREFIX}[0-9a-f]{{64}}"), "key"),
        "sha256": (_SHA256, "sha256"),
        "bytes": (_BYTES, "size"),
    },
    description="Content that has been uploaded (see `POST /bodies`).",
)
LINK: Final = Component(
    "Link",
    schemas.record(
        {
            "url": schemas.text("Where to get the content, without further credentials.", format="uri"),
            "expiresIn": schemas.whole("Seconds for which the URL works."),
            "sha256": _SHA256,
            "bytes": _BYTES,
            "encoding": {"enum": list(CODINGS.values()), "description": "How the content encodes the body."},
        },
        description="A body too large for an answer.",
    ),
)


def members(name: str, body: Body, link: Link) -> dict[str, Any]:
    """Return the JSON member that shows a body; none for an empty body.

    The member is `<name>Url` for a body in the bucket, `<name>` for JSON, and else `<name>64`.

    Args:
        name: `data` or `meta`.
    """
    if isinstance(body, Claim):
        return {f"{name}Url": claimed(body, link)}
    if not body:
        return {}
    text = json_text(body)
    return {f"{name}64": b64encode(body).decode()} if text is None else {name: RawJSON(text)}


def with_bodies(
    frame: Mapping[str, Any], found: Recorded | FeedEvent | RecordedUnfold, link: Link
) -> dict[str, Any]:
    """Add the bodies of an event or unfold to the JSON object that shows the rest.

    Args:
        frame: the event or unfold without its bodies.
    """
    return {**frame, **members("data", found.data, link), **members("meta", found.meta, link)}


def claimed(claim: Claim, link: Link) -> dict[str, Any]:
    """Show a body in the bucket: its download URL, SHA-256, size and encoding."""
    return {
        "url": link(claim, LINK_SECONDS),
        "expiresIn": LINK_SECONDS,
        "sha256": claim.sha256,
        "bytes": claim.size,
        "encoding": CODINGS[claim.encoding],
    }


def json_text(body: bytes) -> str | None:
    """Return a body as JSON text, or None unless the body is JSON that every reader accepts.

    Bodies that a request could not have sent as JSON are shown in base64: those with a byte order mark, names that
    appear twice, halves of surrogate pairs, deep nesting, or numbers beyond what Python takes. An answer holds the
    bodies of many authors, and a strict reader could read none of it if one of them were malformed.
    """
    try:
        value = json.loads(body)
        if b"\\u" in body:
            json.dumps(value)
    except ValueError:
        return None
    return None if body.startswith(MARK) or nests_too_deep(body) else body.decode()


# Readers of events and unfolds.


_IDS: Final = {
    "correlationId": schemas.text("The conversation that it belongs to.", most=MAX_ID_BYTES),
    "causationId": schemas.text("What caused it.", most=MAX_ID_BYTES),
}
ID: Final = schemas.text(
    "The event's id, a UUID.",
    pattern="[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    examples=["1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"],
)
_TAGGED: Final = {
    "tags": schemas.array(TAG, "What it concerns: queries find it.", MAX_NAMED),
    "id": {
        **ID,
        "description": "A UUID of the caller's. With tags, below `/events`, it makes repeats of the append harmless, "
        "and finds the event. In a stream it goes without tags: a batch whose events all have ids is known by them if "
        "it is sent again.",
    },
}


def tag_of(node: Node) -> str:
    """Read a tag.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    from epochal.model.tags import check_tag  # noqa: PLC0415  a function starts without it: 380 lines

    return check_tag(node.text(MAX_TAG_BYTES), node.name)


def event_id_of(node: Node) -> str:
    """Read the id of an event.

    Raises:
        InvalidInput: the id is no UUID.
    """
    from epochal.model.tags import parse_event_id  # noqa: PLC0415  a function starts without it

    return parse_event_id(node.text(64), node.name)


def _uploaded(node: Node) -> Claim:
    """Read a claim, which names a body that has been uploaded.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    sent = CLAIM.read(node)
    key, claim = sent["key"], claim_of(sent)
    # The key follows from the hash: no claim can reach another object of the bucket.
    if key.value != claim.key:
        raise InvalidInput(key.name, f"must be {PREFIX} followed by sha256")
    return claim


def claim_of(sent: Mapping[str, Any]) -> Claim:
    """Build the claim of a body from its SHA-256 and its size.

    Args:
        sent: members `sha256` and `bytes`.

    Raises:
        InvalidInput: the hash is not 64 lower-case hex digits.
    """
    sha256: Node = sent["sha256"]
    digest = sha256.text(64)
    if not _DIGEST.fullmatch(digest):
        raise InvalidInput(sha256.name, "must be 64 lower-case hex digits")
    return Claim(key=f"{PREFIX}{digest}", sha256=digest, size=sent["bytes"])


def _sent(name: str, more: dict[str, schemas.Schema]) -> Component:
    """Build the schema and reader of an event or unfold that is sent.

    Args:
        name: name of the schema in the OpenAPI document.
        more: schemas of further members.
    """
    schema = schemas.record(
        {
            "type": schemas.text("What kind of event or state it is.", most=MAX_TYPE_BYTES),
            "data": {
                "description": "The body: any JSON; of an event, what fits the schema of its type where the deployment "
                "has one. Numbers are kept exactly as they are written."
            },
            "data64": schemas.base64("The body, where it is not JSON."),
            "claim": schemas.ref("Claim"),
            "meta": {"description": "Metadata: any JSON."},
            "meta64": schemas.base64("Metadata, where it is not JSON."),
            "timestamp": schemas.moment(
                "When it happened: ISO 8601, kept to 100 ns; UTC where it names no offset."
            ),
            **more,
        },
        required=("type",),
    )
    reads: dict[str, Read] = {
        "data": json_body,
        "claim": _uploaded,
        "meta": json_body,
        "timestamp": time_of,
        "tags": tag_of,
        "id": event_id_of,
    }
    return Component(name, schema, reads=reads, one_of=(("data", "data64", "claim"), ("meta", "meta64")))


NEW_UNFOLD: Final = _sent("NewUnfold", {})
NEW_EVENT: Final = _sent("NewEvent", {**_IDS, **_TAGGED})
NEW_UNTAGGED_EVENT: Final = _sent("NewUntaggedEvent", _IDS)
_BOTH: Final = {"properties": {"tags": {"minItems": 1}}, "required": ["id", "tags"]}
IN_STREAM: Final = {"allOf": [schemas.ref("NewEvent"), {"not": _BOTH}]}
"""Schema of an event of a stream, which may have an id or tags, but not both."""


def event_of(node: Node) -> Event:
    """Read an event to append.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    sent = NEW_EVENT.read(node)
    return Event(
        **_contents(sent),
        correlation_id=sent.get("correlationId"),
        causation_id=sent.get("causationId"),
        tags=sent.get("tags", ()),
        id=sent.get("id"),
    )


def unfold_of(node: Node) -> Unfold:
    """Read an unfold to store.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    return Unfold(**_contents(NEW_UNFOLD.read(node)))


def _contents(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return type, data, metadata and timestamp of an event or unfold that was sent."""
    return {
        "type": sent["type"],
        "data": sent.get("data", sent.get("data64", sent.get("claim", b""))),
        "meta": sent.get("meta", sent.get("meta64", b"")),
        "timestamp": sent.get("timestamp"),
    }


# Views of events and unfolds.


def shown_bodies() -> dict[str, schemas.Schema]:
    """Return schemas of the members that show bodies, all optional: an empty body has none."""
    return {
        "data": {"description": "The body, as it is stored, where it is JSON."},
        "data64": schemas.base64("The body, where it is not JSON."),
        "dataUrl": schemas.ref("Link"),
        "meta": {"description": "Metadata, where it is JSON."},
        "meta64": schemas.base64("Metadata, where it is not JSON."),
        "metaUrl": schemas.ref("Link"),
        "omitted": OMITTED,
    }


# No limits, since other libraries that write to the same tables have looser ones.
IDS_SHOWN: Final = {name: schemas.words() for name in _IDS}

SHOWN_EVENT: Final = {
    "stream": schemas.words("The stream's name."),
    "index": INDEX,
    "type": schemas.words("What kind of event it is."),
}
TAGS_SHOWN: Final = {
    "id": schemas.text("Of an event with tags: the same in the streams of all of them. Else its caller's."),
    "tags": schemas.array(schemas.text("A tag."), "What it concerns, in order."),
}
EVENT: Final = Component(
    "Event",
    schemas.record(
        {**SHOWN_EVENT, "timestamp": schemas.words(), **IDS_SHOWN, **TAGS_SHOWN, **shown_bodies()},
        required=("stream", "index", "type", "timestamp"),
    ),
)
UNFOLD: Final = Component(
    "Unfold",
    schemas.record(
        {
            "version": schemas.whole("The stream's version that it was made from.", 0, MAX_VERSION),
            "type": schemas.words("What kind of state it is."),
            "timestamp": schemas.words(),
            **shown_bodies(),
        },
        required=("version", "type", "timestamp"),
    ),
)


def event(found: Recorded | FeedEvent, link: Link) -> dict[str, Any]:
    """Show an event, with its bodies in the bucket as links.

    The object is built without a schema for speed, since a page has thousands of events.
    """
    return with_bodies(event_frame(found), found, link)


def event_frame(found: Recorded | FeedEvent) -> dict[str, Any]:
    """Show an event without its bodies."""
    frame: dict[str, Any] = {
        "stream": found.stream,
        "index": found.index,
        "type": found.type,
        "timestamp": found.timestamp,
    }
    if found.id:
        frame["id"] = found.id
        if found.tags or found.stream.startswith(TAG_STREAMS):
            frame["tags"] = list(found.tags)
        if not isinstance(found, Recorded) and found.home:
            frame["home"] = found.home
    if found.correlation_id is not None:
        frame["correlationId"] = found.correlation_id
    if found.causation_id is not None:
        frame["causationId"] = found.causation_id
    return frame


def unfold(found: RecordedUnfold, link: Link) -> dict[str, Any]:
    """Show an unfold, with its bodies in the bucket as links."""
    return with_bodies(unfold_frame(found.version, found.type, found.timestamp), found, link)


def unfold_frame(version: int, type_: str, timestamp: str) -> dict[str, Any]:
    """Show an unfold without its bodies."""
    return {"version": version, "type": type_, "timestamp": timestamp}


# Items of the feed.

FEED_ITEM: Final = Component(
    "FeedItem",
    schemas.record(
        {
            **SHOWN_EVENT,
            "timestamp": schemas.words(),
            **IDS_SHOWN,
            **shown_bodies(),
            "id": schemas.text(
                "A tagged event's id, the same in the streams of all its tags; or its caller's."
            ),
            "tags": schemas.array(
                schemas.text("A tag."), "A tagged event's tags; through the first it comes exactly once."
            ),
            "home": schemas.words(
                "The stream that an event with tags was appended to: through it that comes exactly once."
            ),
            "pruned": {"const": True, "description": "The event has been pruned since it was indexed."},
            "expired": {"const": True, "description": "The event's time was over; its place stays."},
            "removed": schemas.record(
                {
                    "from": schemas.whole("Those before were gone by then."),
                    "to": schemas.whole("All events before this index are gone."),
                    "next": schemas.whole(
                        "The stream's next index then: what is before comes before in the feed."
                    ),
                },
                description="This is no event, and says that events are gone. `index` is as `to`.",
            ),
            "fault": schemas.record(
                {
                    "type": schemas.text(
                        "The problem that reading the event alone would be: `corrupt-data` or `missing-body`."
                    ),
                    "detail": schemas.text("What is wrong with what is stored."),
                },
                description="The event is there and cannot be read. Those around it can.",
            ),
        },
        required=tuple(SHOWN_EVENT),
    ),
)


def bare(item: FeedItem) -> dict[str, Any]:
    """Show an item of the feed without its event, and the reason where an event was asked for."""
    frame = {"stream": item.stream, "index": item.index, "type": item.type}
    if item.omitted:
        return {**frame, "omitted": True}
    if (gone := item.removal) is not None:
        return {**frame, "removed": {"from": gone.first, "to": gone.end, "next": gone.next}}
    if item.fault is not None:
        return {**frame, "fault": fault_of(item.fault)}
    return frame if item.gone is None else {**frame, item.gone: True}


# The size of an answer.

LARGEST: Final = 5_500_000
"""Most bytes of one event in an answer. The answer of a Lambda function may have 6,291,556 bytes."""


OPENED: Final = 2 * RESPONSE_BYTES
"""Bytes of possibly large bodies that one answer opens, whether they are used or not: compression stores megabytes of
spaces in a few bytes."""


def body_bytes(found: Recorded | FeedEvent) -> int:
    """Return the bytes of an event's bodies that are not in the bucket.

    An answer that shows these bodies has at least as many bytes.
    """
    return sum(len(body) for body in (found.data, found.meta) if isinstance(body, bytes))


class AnswerSize:
    """Tracks how much room is left in an answer.

    Args:
        frames: frames of the objects that will be `put`: each may be reduced to its frame, so that room is reserved
            for all frames.
    """

    def __init__(self, frames: Iterable[dict[str, Any]] = ()) -> None:
        self._used = 0
        self._opened = 0
        self._kept = sum(map(_size_of, frames))

    def fit(self, view: Any) -> Any | None:
        """Add a value if the answer has room for it; return its JSON, or None where it does not fit."""
        text = text_of(view)
        size = sent_size(text)
        if self._used + size > RESPONSE_BYTES:
            return None
        self._used += size
        return RawJSON(text)

    def put(self, view: dict[str, Any], frame: dict[str, Any]) -> Any:
        """Add an object, or its frame marked `omitted` where no answer has room for its bodies.

        Args:
            view: the object with its bodies.
            frame: the object without its bodies.
        """
        self._kept = max(0, self._kept - _size_of(frame))
        text = text_of(view)
        size = sent_size(text)
        if size > self._left:
            return self._omitted(frame)
        self._used += size
        return RawJSON(text)

    def put_opened(
        self, open_view: Callable[[int], dict[str, Any] | None], frame: dict[str, Any], *, large: bool
    ) -> Any:
        """Open an object with at most as many bytes as the answer has room for, and add it.

        The frame marked `omitted` is added instead where the bodies are larger.

        Args:
            open_view: opener of the object, given the most bytes of its bodies; returns None where they are larger.
            frame: the object without its bodies.
            large: whether the bodies may be large.
        """
        left = self._left + _size_of(frame)
        room = min(left, OPENED - self._opened) if large else left
        view = open_view(room) if room > 0 else None
        if large:
            self._opened += room if view is None else _size_of(view)
        if view is None:
            self._kept = max(0, self._kept - _size_of(frame))
            return self._omitted(frame)
        return self.put(view, frame)

    def omit(self, frame: dict[str, Any]) -> Any:
        """Add an object's frame, marked `omitted`."""
        self._kept = max(0, self._kept - _size_of(frame))
        return self._omitted(frame)

    @property
    def _left(self) -> int:
        """Bytes that are left in the answer."""
        return min(RESPONSE_BYTES if self._used else LARGEST, LARGEST - self._kept) - self._used

    def _omitted(self, frame: dict[str, Any]) -> Any:
        """Add a frame marked `omitted`, whose reserved room is already released."""
        omitted = {**frame, "omitted": True}
        self._used += _size_of(omitted)
        return omitted


def sent_size(text: str) -> int:
    """Return the bytes of a text inside a function's answer, where it is a JSON string."""
    return len(plain_json.dumps(text, ensure_ascii=False).encode())


def _size_of(view: Any) -> int:
    """Return the bytes of a JSON value inside a function's answer."""
    return sent_size(text_of(view))
