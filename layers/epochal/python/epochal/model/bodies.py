"""Bodies of events and unfolds: bytes, or a claim on an object in the bucket.

Bytes are usually UTF-8 JSON; only the user's codec knows what they mean.
"""

from __future__ import annotations

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim check of a body that is stored in the bucket instead of the item.

    Attributes:
        key: key of the object in the bucket.
        sha256: 64 hex digits over the object's content.
        size: bytes of the object.
        encoding: how the object's content encodes the body (0 direct, 1 deflate, 2 brotli).
        timer: name of the timer, if the body belongs to an event that sets one; it is needed even after the object is
            gone.
    """

    key: str
    sha256: str
    size: int
    encoding: int = 0
    timer: str = ""


Body = bytes | Claim
"""A body: its bytes, or a claim that says where they are in the bucket."""


def content_of(body: Body) -> bytes:
    """Return a body's bytes; raise `InvalidInput` if it was left in the bucket."""
    if isinstance(body, Claim):
        raise InvalidInput("fetch", f"must be true to read a body in the bucket, such as {body.key}")
    return body


def body_size(body: Body) -> int:
    """Return the size of a body in bytes, wherever it is stored."""
    return body.size if isinstance(body, Claim) else len(body)
