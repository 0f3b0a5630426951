"""Bodies of events and unfolds: bytes, or a claim on an object in the bucket.

Bytes are usually UTF-8 JSON; only the user's codec knows what they mean.
"""

from __future__ import annotations

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim check of a body: a reference to the object in the bucket where it is stored, instead of in the item.

    Attributes:
        key: key of the object in the bucket.
        sha256: SHA-256 of the object's content, as 64 hex digits.
        size: number of bytes of the object.
        encoding: how the object's content encodes the body (0 direct, 1 deflate, 2 brotli).
        timer: name of the timer that the event sets, if the body is of such an event, so that it is known even after
            the object is gone; else empty.
    """

    key: str
    sha256: str
    size: int
    encoding: int = 0
    timer: str = ""


Body = bytes | Claim
"""A body: its bytes, or a `Claim` that names the object in the bucket that has them."""


def content_of(body: Body) -> bytes:
    """Return a body's bytes; raise `InvalidInput` if it was left in the bucket."""
    if isinstance(body, Claim):
        raise InvalidInput("fetch", f"must be true to read a body in the bucket, such as {body.key}")
    return body


def body_size(body: Body) -> int:
    """Return the size of a body in bytes, wherever it is stored."""
    return body.size if isinstance(body, Claim) else len(body)
