"""What was sent: for every stream its events' types and the digests of their bodies, in order.

A year is a million events, so an event is kept as 17 bytes: one for its type, 16 of a hash over its body.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from epochal.model.bodies import Body
from epochal.model.events import Event
from examples.flights.happenings import TYPES

DIGEST_BYTES = 16


def digest(body: bytes) -> bytes:
    """A body's fingerprint."""
    return hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()


@dataclass(slots=True)
class Sent:
    """The events of one stream."""

    types: bytearray = field(default_factory=bytearray)
    digests: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.types)

    def add(self, event: Event) -> None:
        """Take down the next event."""
        self.types.append(TYPES.index(event.type))
        self.digests += digest(_bytes(event.data))

    def type_at(self, index: int) -> str:
        """The type of an event."""
        return TYPES[self.types[index]]

    def digest_at(self, index: int) -> bytes:
        """The digest of an event's body."""
        return bytes(self.digests[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES])


@dataclass(slots=True)
class Ledger:
    """All streams. Writers may add to different streams at once, never to one."""

    streams: dict[str, Sent] = field(default_factory=dict)

    def add(self, stream: str, events: Iterable[Event]) -> None:
        """Take down what the store has acknowledged."""
        sent = self.streams.setdefault(stream, Sent())
        for event in events:
            sent.add(event)

    @property
    def events(self) -> int:
        """All events of all streams."""
        return sum(map(len, self.streams.values()))


def _bytes(body: Body) -> bytes:
    if not isinstance(body, bytes):
        raise TypeError("the demo's bodies are small: none is a claim check")
    return body
