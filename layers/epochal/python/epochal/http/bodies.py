"""Bodies as JSON: how they are sent, and how answers show them.

A body is sent as `data` (any JSON, null included; stored as compact UTF-8 with its numbers exact), or `data64` (any
bytes, in base64), or `claim` (already uploaded, see `POST /bodies`), or none. An answer has it in the plainest form
that loses nothing:

    "data": …          a JSON body, as it is stored, to the byte
    "data64": "…"      any other body, in base64
    "dataUrl": {…}     a body in the bucket: its download URL, the URL's lifetime, and the SHA-256 of the content
    no member          an empty body

Metadata are sent and answered in the same way as `meta`, but without a claim.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from simplejson import RawJSON

from epochal.codec import json
from epochal.codec.bodies import BROTLI, DEFLATE, DIRECT
from epochal.codec.bucket_bodies import PREFIX
from epochal.codec.json import MARK
from epochal.errors import InvalidInput
from epochal.http import schemas
from epochal.http.components import Component, Shown
from epochal.http.documents import nests_too_deep
from epochal.http.event_fields import OMITTED
from epochal.http.nodes import Node
from epochal.model.bodies import Body, Claim
from epochal.model.events import Recorded, RecordedUnfold

if TYPE_CHECKING:
    from epochal.feed.events import FeedEvent


Link = Callable[[Claim, int], str]
"""Function that signs a download URL of a body, valid for the given seconds."""

LINK_SECONDS: Final = 15 * 60
"""Lifetime of a URL in seconds: long enough for a slow connection, short enough not to be stored."""

MAX_CLAIM_BYTES: Final = 5 * 1024**3
"""The largest object that S3 takes in one request."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)

CODINGS: Final = {DIRECT: "identity", DEFLATE: "deflate-raw", BROTLI: "br"}

SHA256: Final = schemas.text("SHA-256 of the content, in hex.", pattern="[0-9a-f]{64}")
BYTES: Final = schemas.whole("Size of the content in bytes.", 1, MAX_CLAIM_BYTES)

CLAIM: Final = Shown(
    "Claim",
    {
        "key": (schemas.text("Key of the content in the bucket.", pattern=f"{PREFIX}[0-9a-f]{{64}}"), "key"),
        "sha256": (SHA256, "sha256"),
        "bytes": (BYTES, "size"),
    },
    description="Content that has been uploaded (see `POST /bodies`).",
)
LINK: Final = Component(
    "Link",
    schemas.record(
        {
            "url": schemas.text("URL of the content, which needs no further credentials.", format="uri"),
            "expiresIn": schemas.whole("Number of seconds for which the URL is valid."),
            "sha256": SHA256,
            "bytes": BYTES,
            "encoding": {
                "enum": list(CODINGS.values()),
                "description": "Encoding of the body in the content.",
            },
        },
        description="A body too large for an answer.",
    ),
)


def build_body_member(name: str, body: Body, link: Link) -> dict[str, Any]:
    """Return, as a dict, the JSON member that shows a body; an empty dict for an empty body.

    The member is `<name>Url` for a body in the bucket, `<name>` for JSON, and else `<name>64`.

    Args:
        name: `data` or `meta`.
    """
    if isinstance(body, Claim):
        return {f"{name}Url": build_claim_view(body, link)}
    if not body:
        return {}
    text = json_text(body)
    return {f"{name}64": b64encode(body).decode()} if text is None else {name: RawJSON(text)}


def with_bodies(
    frame: Mapping[str, Any], recorded: Recorded | FeedEvent | RecordedUnfold, link: Link
) -> dict[str, Any]:
    """Return a copy of `frame` with the JSON members that show an event's or unfold's bodies.

    Args:
        frame: the event or unfold without its bodies.
    """
    return {
        **frame,
        **build_body_member("data", recorded.data, link),
        **build_body_member("meta", recorded.meta, link),
    }


def build_claim_view(claim: Claim, link: Link) -> dict[str, Any]:
    """Return the JSON object that shows a body in the bucket: URL, lifetime, SHA-256, size, encoding."""
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


def read_claim(node: Node) -> Claim:
    """Return the claim (key, hash, size) that a request's node holds; raise `InvalidInput` if malformed.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    members = CLAIM.read(node)
    key, claim = members["key"], claim_of(members)
    # The key follows from the hash: no claim can reach another object of the bucket.
    if key.value != claim.key:
        raise InvalidInput(key.name, f"must be {PREFIX} followed by sha256")
    return claim


def claim_of(members: Mapping[str, Any]) -> Claim:
    """Build the claim of a body from SHA-256 and size; raise `InvalidInput` for a malformed hash.

    Args:
        members: members `sha256` and `bytes`.

    Raises:
        InvalidInput: the hash is not 64 lower-case hex digits.
    """
    sha256: Node = members["sha256"]
    digest = sha256.text(64)
    if not _DIGEST.fullmatch(digest):
        raise InvalidInput(sha256.name, "must be 64 lower-case hex digits")
    return Claim(key=f"{PREFIX}{digest}", sha256=digest, size=members["bytes"])


def shown_bodies() -> dict[str, schemas.Schema]:
    """Return schemas of the members that show bodies, all optional: an empty body has none."""
    return {
        "data": {"description": "Body, if it is JSON, as it is stored."},
        "data64": schemas.base64("Body in base64, if it is not JSON."),
        "dataUrl": schemas.ref("Link"),
        "meta": {"description": "Metadata, if it is JSON."},
        "meta64": schemas.base64("Metadata in base64, if it is not JSON."),
        "metaUrl": schemas.ref("Link"),
        "omitted": OMITTED,
    }
