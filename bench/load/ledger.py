"""What was sent, and what was answered to it: the truth that everything stored is held against.

Every event sent is told from every other by its contents, so an event is known by a digest of its type and body. An
append that was refused must not be there; one without any answer may be there, once.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Digest = bytes
DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An event to be sent, whose content no other event has."""

    type: str
    body: bytes

    @property
    def digest(self) -> Digest:
        """Digest that identifies the event."""
        return digest(self.type, self.body)


def digest(kind: str, body: bytes) -> Digest:
    """Return the digest of an event's exact type and body."""
    return hashlib.blake2b(kind.encode() + b"\0" + body, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Sender and index of an event as a response shows them; the index is None if it does not show that."""

    writer: str
    index: int | None


@dataclass(slots=True)
class Sent:
    """The events that were sent to one stream; `acknowledged` is in the order of the responses."""

    acknowledged: dict[Digest, Place] = field(default_factory=dict)
    refused: set[Digest] = field(default_factory=set)
    unanswered: set[Digest] = field(default_factory=set)


@dataclass(slots=True)
class Ledger:
    """The sent events of all streams, aggregates and tags, by their names in the feed; safe for use by several threads.

    Attributes:
        wrong: descriptions of responses that cannot be true.
    """

    streams: dict[str, Sent] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    conflicts: int = 0
    _least: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledged(
        self,
        stream: str,
        writer: str,
        events: Sequence[Sample],
        first: int | None,
        expected: int | None = None,
    ) -> None:
        """Record that an append was applied: its events begin at `first`, and were expected to begin at `expected`."""
        with self._lock:
            sent = self.streams.setdefault(stream, Sent())
            for number, event in enumerate(events):
                index = None if first is None else first + number
                sent.acknowledged[event.digest] = Place(writer=writer, index=index)
            if first is not None:
                self._least[stream] = max(first + len(events), self._least.get(stream, 0))
                if expected not in (None, first):
                    self.wrong.append(f"{stream}: appended at #{first}, where {writer} expected #{expected}")

    def refused(self, stream: str, events: Iterable[Sample]) -> None:
        """Record that an append was refused because another was first."""
        with self._lock:
            self.streams.setdefault(stream, Sent()).refused.update(event.digest for event in events)

    def unanswered(self, stream: str, events: Iterable[Sample]) -> None:
        """Record that the outcome of an append is unknown."""
        with self._lock:
            self.streams.setdefault(stream, Sent()).unanswered.update(event.digest for event in events)

    def conflicted(self) -> None:
        """Count a refusal; an append to several tags counts once."""
        with self._lock:
            self.conflicts += 1

    def note(self, trouble: str) -> None:
        """Record a response that must not occur."""
        with self._lock:
            self.wrong.append(trouble)

    def least(self, stream: str) -> int:
        """Return how many events of a stream were acknowledged so far, which every later read must return."""
        with self._lock:
            return self._least.get(stream, 0)

    @property
    def events(self) -> int:
        """Number of acknowledged events in all streams; a tagged event counts for each of its tags."""
        with self._lock:
            return sum(len(sent.acknowledged) for sent in self.streams.values())
