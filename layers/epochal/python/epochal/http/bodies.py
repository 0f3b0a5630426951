"""Stored bodies as JSON members, each in the plainest form that loses nothing.

"data": …          the body is JSON: shown as it is stored, to the byte
"data64": "…"      it is not: base64
"dataUrl": {…}     it is in the bucket: where to fetch it, for how long, and what it must hash to
                   none of these: it is empty
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from simplejson import RawJSON

from epochal.codec import json
from epochal.codec.bodies import BROTLI, DEFLATE, DIRECT
from epochal.codec.json import MARK
from epochal.http.document import nests_too_deep
from epochal.model.events import Body, Claim

Link = Callable[[Claim, int], str]
"""Signs a URL that a body can be fetched from for so many seconds."""

LINK_SECONDS: Final = 15 * 60
"""Long enough for a slow connection, short enough not to be kept."""

CODINGS: Final = {DIRECT: "identity", DEFLATE: "deflate-raw", BROTLI: "br"}


def members(name: str, body: Body, link: Link) -> dict[str, Any]:
    """The member that shows a body called `name`; none for an empty one."""
    if isinstance(body, Claim):
        return {f"{name}Url": claimed(body, link)}
    if not body:
        return {}
    text = json_text(body)
    return {f"{name}64": b64encode(body).decode()} if text is None else {name: RawJSON(text)}


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
