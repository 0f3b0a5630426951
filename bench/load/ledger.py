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
    """An event to be sent: contents that no other event has."""

    type: str
    body: bytes

    @property
    def digest(self) -> Digest:
        """What it is known by."""
        return digest(self.type, self.body)


def digest(kind: str, body: bytes) -> Digest:
    """Of an event's type and body, to the byte."""
    return hashlib.blake2b(kind.encode() + b"\0" + body, digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What an answer says of an event: who sent it, and its index; None where the answer does not tell that."""

    writer: str
    index: int | None


@dataclass(slots=True)
class Sent:
    """The events that were sent to one stream. `acknowledged` is in the order of the answers."""

    acknowledged: dict[Digest, Place] = field(default_factory=dict)
    refused: set[Digest] = field(default_factory=set)
    unanswered: set[Digest] = field(default_factory=set)


@dataclass(slots=True)
class Ledger:
    """All streams: named streams, aggregates and tags by their names in the feed. Safe under threads.

    Attributes:
        wrong: answers that cannot be true, in words.
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
        """An append was answered: its events begin at `first`, and were to begin at `expected`."""
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
        """An append was refused: someone else was first."""
        with self._lock:
            self.streams.setdefault(stream, Sent()).refused.update(event.digest for event in events)

    def unanswered(self, stream: str, events: Iterable[Sample]) -> None:
        """What became of an append is not known."""
        with self._lock:
            self.streams.setdefault(stream, Sent()).unanswered.update(event.digest for event in events)

    def conflicted(self) -> None:
        """Count a refusal; an append to several tags is one."""
        with self._lock:
            self.conflicts += 1

    def note(self, trouble: str) -> None:
        """An answer that there must not be."""
        with self._lock:
            self.wrong.append(trouble)

    def least(self, stream: str) -> int:
        """How many events of a stream were acknowledged at least: whoever reads from now on must find them."""
        with self._lock:
            return self._least.get(stream, 0)

    @property
    def events(self) -> int:
        """Acknowledged ones, of all streams; a tagged event counts for each of its tags."""
        with self._lock:
            return sum(len(sent.acknowledged) for sent in self.streams.values())
