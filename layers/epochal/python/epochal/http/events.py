"""Events and unfolds from a request's JSON.

    {"type": "Moved", "data": {"to": "EWR"}, "meta": {"by": "ops"}, "timestamp": "2013-01-01T10:00:00Z",
     "correlationId": "c-1", "causationId": "e-7"}

The body is `data` (any JSON, null included; stored as compact UTF-8 with its numbers exact), or `data64` (any bytes, in
base64), or `claim` (already uploaded, see `POST /bodies`), or none. `meta` and `meta64` likewise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from epochal.codec import json
from epochal.codec.claims import PREFIX
from epochal.errors import InvalidInput
from epochal.http.fields import Node
from epochal.model.events import Body, Claim, Event, Unfold
from epochal.model.times import parse_time

MAX_EVENTS: Final = 1_000
MAX_UNFOLDS: Final = 100
"""More of either than an item of 400 KB holds at a usual size; what does not fit is refused by its bytes."""

MAX_TYPE_BYTES: Final = 512
MAX_ID_BYTES: Final = 512
MAX_CLAIM_BYTES: Final = 5 * 1024**3
"""The largest object that S3 takes in one request."""

UNFOLD_FIELDS: Final = ("type", "data", "data64", "claim", "meta", "meta64", "timestamp")
EVENT_FIELDS: Final = (*UNFOLD_FIELDS, "correlationId", "causationId")

_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


def event(node: Node) -> Event:
    """An event to append; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(EVENT_FIELDS)
    return Event(
        type=_type(node, fields),
        data=_body(fields, "data", "data64", "claim"),
        meta=_body(fields, "meta", "meta64"),
        timestamp=_timestamp(fields),
        correlation_id=_id(fields, "correlationId"),
        causation_id=_id(fields, "causationId"),
    )


def unfold(node: Node) -> Unfold:
    """An unfold to store; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(UNFOLD_FIELDS)
    return Unfold(
        type=_type(node, fields),
        data=_body(fields, "data", "data64", "claim"),
        meta=_body(fields, "meta", "meta64"),
        timestamp=_timestamp(fields),
    )


def claim_of(sha256: Node, size: Node) -> Claim:
    """The claim check of a body with this hash and size, wherever it is kept."""
    digest = sha256.text(64)
    if not _SHA256.fullmatch(digest):
        raise InvalidInput(sha256.name, "must be 64 lower-case hex digits")
    return Claim(key=f"{PREFIX}{digest}", sha256=digest, size=size.whole(1, MAX_CLAIM_BYTES))


def required(node: Node, fields: Mapping[str, Node], name: str) -> Node:
    """A field that must be there."""
    if name not in fields:
        raise InvalidInput(f"{node.at}.{name}" if node.at else name, "is required")
    return fields[name]


def json_body(node: Node) -> bytes:
    """A value as it is stored: compact UTF-8, its numbers exact."""
    try:
        return json.dumps(node.value)
    except UnicodeEncodeError as error:
        raise InvalidInput(node.name, "must hold Unicode text without lone surrogates") from error


def moment(node: Node) -> str:
    """A time in ISO 8601, as it was written."""
    text = node.text(64)
    parse_time(text, node.name)
    return text


def _type(node: Node, fields: Mapping[str, Node]) -> str:
    return required(node, fields, "type").text(MAX_TYPE_BYTES)


def _body(fields: Mapping[str, Node], *names: str) -> Body:
    given = [fields[name] for name in names if name in fields]
    if not given:
        return b""
    if len(given) > 1:
        raise InvalidInput(given[1].name, f"may not be given together with {given[0].name}")
    if given[0] is fields.get(names[0]):
        return json_body(given[0])
    return given[0].base64() if given[0] is fields.get(names[1]) else _claim(given[0])


def _claim(node: Node) -> Claim:
    fields = node.members(("key", "sha256", "bytes"))
    key, sha256, size = (required(node, fields, name) for name in ("key", "sha256", "bytes"))
    claim = claim_of(sha256, size)
    # The key follows from the hash: no claim can reach another object of the bucket.
    if key.value != claim.key:
        raise InvalidInput(key.name, f"must be {PREFIX} followed by sha256")
    return claim


def _timestamp(fields: Mapping[str, Node]) -> str | None:
    return moment(fields["timestamp"]) if "timestamp" in fields else None


def _id(fields: Mapping[str, Node], name: str) -> str | None:
    return fields[name].text(MAX_ID_BYTES) if name in fields else None
