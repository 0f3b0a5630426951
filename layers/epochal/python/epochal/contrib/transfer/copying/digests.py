"""Digest of everything in an event that must be the same in the copy. Pure, except for bodies in a bucket.

Layouts have their own formats for times and bodies: times are compared to 100 ns, bodies by their decoded content. An
append id is not copied, since it identifies a write, and the copy is another write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from epochal.codec.bodies import DIRECT, encode_claim
from epochal.contrib.transfer.rows import time_of
from epochal.feed.events import FeedEvent
from epochal.lazy_dataclasses import dataclass, field
from epochal.model import events as model
from epochal.model import stream_names
from epochal.model.bodies import Body, Claim, content_of
from epochal.store.encoding import BodyCodec
from epochal.store.tagged_importer import unmarked

Said = Callable[..., bytes]
"""Function from a body and an event type to the SHA-256 of the body's content, the same in any encoding.

For a set timer it is the same with and without the mark of imported timers."""

CopiedEvent = model.Recorded | FeedEvent
"""An event of any layout, as it is stored or as the feed shows it."""


def said_by(codec: BodyCodec) -> Said:
    """Make a function that computes the SHA-256 of a body's content, in an item or in the codec's bucket.

    A body in a bucket is fetched only where its claim does not tell the digest: where it is compressed, or a timer's.
    """

    def said(body: Body, type_: str = "") -> bytes:
        """Return the SHA-256 of a body's content, for a set timer without the mark of imported timers."""
        sets = type_ == stream_names.TIMER_SET
        if isinstance(body, Claim):
            if body.encoding == DIRECT and not sets:
                return bytes.fromhex(body.sha256)
            (body,) = codec.unpack([encode_claim(body)])
        content = content_of(body)
        return hashlib.sha256(unmarked(content) if sets else content).digest()

    return said


def chosen_id(event: CopiedEvent) -> str | None:
    """Return the event id that the caller chose; None for an event with tags, whose id is the store's."""
    return None if event.tags else event.id or None


@dataclass(slots=True)
class Digest:
    """Running digest of a stream's events, in order.

    Attributes:
        said: function that computes the digest of a body
        events: number of events added
    """

    said: Said
    events: int = 0
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, event: CopiedEvent) -> bytes:
        """Add the next event, and return the SHA-256 of this event alone, for comparison with its copy.

        Raises:
            InvalidInput: the event's timestamp is no time.
        """
        texts = (event.type, event.correlation_id, event.causation_id, *event.tags)
        texts += ("id", chosen) if (chosen := chosen_id(event)) else ()
        parts = [
            f"{event.index} {time_of(event.timestamp)}".encode(),
            self.said(event.data, event.type),
            self.said(event.meta),
        ]
        parts += [b"-" if text is None else b"+" + text.encode() for text in texts]
        added = hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()
        self._hash.update(added)
        self.events += 1
        return added

    def hex(self) -> str:
        """Return the digest of all events so far, as 64 hex digits."""
        return self._hash.hexdigest()
