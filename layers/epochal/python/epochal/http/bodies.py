"""Stored bodies as JSON members, each in the plainest form that loses nothing.

"data": …          the body is JSON: shown as it is stored, to the byte
"data64": "…"      it is not: base64
"dataUrl": {…}     it is in the bucket: where to fetch it, for how long, and what it must hash to
                   none of these: it is empty

What is sent has `"claim": {…}` in its place for a body that has been uploaded.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from simplejson import RawJSON

from epochal.codec import json
from epochal.codec.bodies import BROTLI, DEFLATE, DIRECT
from epochal.codec.claims import PREFIX
from epochal.codec.json import MARK
from epochal.errors import InvalidInput
from epochal.http.document import nests_too_deep
from epochal.http.fields import Node, required
from epochal.model.events import Body, Claim

Link = Callable[[Claim, int], str]
"""Signs a URL that a body can be fetched from for so many seconds."""

LINK_SECONDS: Final = 15 * 60
"""Long enough for a slow connection, short enough not to be kept."""

MAX_CLAIM_BYTES: Final = 5 * 1024**3
"""The largest object that S3 takes in one request."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)

CODINGS: Final = {DIRECT: "identity", DEFLATE: "deflate-raw", BROTLI: "br"}


def members(name: str, body: Body, link: Link) -> dict[str, Any]:
    """The member that shows a body called `name`; none for an empty one."""
    if isinstance(body, Claim):
        return {f"{name}Url": claimed(body, link)}
    if not body:
        return {}
    text = json_text(body)
    return {f"{name}64": b64encode(body).decode()} if text is None else {name: RawJSON(text)}


def uploaded(node: Node) -> Claim:
    """The body that a claim of a request names; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(("key", "sha256", "bytes"))
    key, sha256, size = (required(node, fields, name) for name in ("key", "sha256", "bytes"))
    claim = claim_of(sha256, size)
    # The key follows from the hash: no claim can reach another object of the bucket.
    if key.value != claim.key:
        raise InvalidInput(key.name, f"must be {PREFIX} followed by sha256")
    return claim


def claim_of(sha256: Node, size: Node) -> Claim:
    """The claim check of a body with this hash and size, wherever it is kept."""
    digest = sha256.text(64)
    if not _SHA256.fullmatch(digest):
        raise InvalidInput(sha256.name, "must be 64 lower-case hex digits")
    return Claim(key=f"{PREFIX}{digest}", sha256=digest, size=size.whole(1, MAX_CLAIM_BYTES))


def claimed(claim: Claim, link: Link) -> dict[str, Any]:
    """Where a body in the bucket is, and what it must be."""
    return {
        "url": link(claim, LINK_SECONDS),
        "expiresIn": LINK_SECONDS,
        "sha256": claim.sha256,
        "bytes": claim.size,
        "encoding": CODINGS[claim.encoding],
    }


def json_text(body: bytes) -> str | None:
    """The body as JSON text, if that is what it is, and every reader can be expected to read it.

    What a request could not have brought as JSON either is left to those who ask for bytes: a byte order mark, names
    that appear twice, halves of surrogate pairs, deep nesting, numbers beyond what Python takes. An answer holds the
    bodies of many authors, and a strict reader could read none of it if one of them were malformed.
    """
    try:
        value = json.loads(body)
        if b"\\u" in body:
            json.dumps(value)
    except ValueError:
        return None
    return None if body.startswith(MARK) or nests_too_deep(body, value) else body.decode()
