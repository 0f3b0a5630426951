"""What of an event must be the same in the copy, and a digest of it. Pure, but for bodies that are in a bucket.

Layouts write times and bodies in forms of their own: times are compared to the 100 ns, bodies by what they say. An
event's append id is not copied: it tells writes apart, and the copy is another write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from epochal.codec.bodies import DIRECT, encode_claim
from epochal.model.events import Body, Claim, content_of
from epochal.model.times import Ticks, from_unix_nanoseconds, parse_time
from epochal.store.bodies import BodyCodec

Said = Callable[[Body], bytes]
"""The SHA-256 of what a body says."""

_NANOSECONDS: Final = 17
"""Digits from which on a number that another library stores for a time counts nanoseconds; below, milliseconds."""


class CopiedEvent(Protocol):
    """An event of any layout, as it is stored or as the feed shows it."""

    @property
    def index(self) -> int:
        """Its place in the stream."""

    @property
    def type(self) -> str:
        """Its type."""

    @property
    def data(self) -> Body:
        """The payload."""

    @property
    def meta(self) -> Body:
        """Metadata."""

    @property
    def timestamp(self) -> str:
        """As stored."""

    @property
    def correlation_id(self) -> str | None:
        """The conversation."""

    @property
    def causation_id(self) -> str | None:
        """The cause."""


def time_of(timestamp: str) -> Ticks:
    """When an event happened. A number is Unix time: libraries of event-store-adapter store one.

    Raises:
        InvalidInput: it is no time.
    """
    if not (timestamp.isascii() and timestamp.isdigit()):
        return parse_time(timestamp)
    return from_unix_nanoseconds(int(timestamp) * (1 if len(timestamp) >= _NANOSECONDS else 1_000_000))


def said_by(codec: BodyCodec) -> Said:
    """The digest of a body. It is fetched only where its claim does not tell: where it is compressed in the bucket."""

    def said(body: Body) -> bytes:
        if isinstance(body, Claim):
            if body.encoding == DIRECT:
                return bytes.fromhex(body.sha256)
            (body,) = codec.unpack([encode_claim(body)])
        return hashlib.sha256(content_of(body)).digest()

    return said


@dataclass(slots=True)
class Digest:
    """A digest of the events of a stream, in their order."""

    said: Said
    events: int = 0
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, event: CopiedEvent) -> bytes:
        """Take in the next event; what it adds, by which two events can be compared."""
        texts = (event.type, event.correlation_id, event.causation_id)
        parts = [
            f"{event.index} {time_of(event.timestamp)}".encode(),
            self.said(event.data),
            self.said(event.meta),
        ]
        parts += [b"-" if text is None else b"+" + text.encode() for text in texts]
        added = hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()
        self._hash.update(added)
        self.events += 1
        return added

    def hex(self) -> str:
        """64 hex digits."""
        return self._hash.hexdigest()
