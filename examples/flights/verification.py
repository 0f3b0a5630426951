"""The feed against the ledger: nothing missing, nothing doubled, nothing out of order, every body the one sent.

Pure: it is shown the feed's items one by one, and says what differs. Per stream the indices must be 0, 1, 2 and so
on without a gap; across streams the feed may interleave as it likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from examples.flights.ledger import Ledger, Sent, digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something the feed says otherwise than the ledger: the event `index` of `stream`, and what is wrong with it."""

    stream: str
    index: int
    problem: str

    def __str__(self) -> str:
        return f"{self.stream} #{self.index}: {self.problem}"


@dataclass(slots=True, kw_only=True)
class Verification:
    """One walk of the whole feed.

    Attributes:
        ledger: what was sent.
        bodies: whether the items come with their bodies, so that these are compared as well.
        seen: items so far.
    """

    ledger: Ledger
    bodies: bool = True
    seen: int = 0
    _reached: dict[str, int] = field(default_factory=dict)

    def check(self, stream: str, index: int, kind: str, body: bytes | None) -> Iterator[Difference]:
        """The next item of the feed; what is wrong with it."""
        self.seen += 1
        sent = self.ledger.streams.get(stream)
        if sent is None or index >= len(sent):
            yield Difference(stream=stream, index=index, problem="was never sent")
            return
        reached = self._reached.get(stream, 0)
        if index < reached:
            yield Difference(
                stream=stream, index=index, problem=f"comes again, or late: the feed was at #{reached}"
            )
            return
        for missed in range(reached, index):
            yield Difference(stream=stream, index=missed, problem=f"is missing: #{index} came instead")
        self._reached[stream] = index + 1
        yield from self._compare(stream, index, kind, body, sent)

    def finish(self) -> Iterator[Difference]:
        """What the feed ended without."""
        for stream, sent in self.ledger.streams.items():
            for index in range(self._reached.get(stream, 0), len(sent)):
                yield Difference(stream=stream, index=index, problem="is missing: the feed ended before it")

    def _compare(
        self, stream: str, index: int, kind: str, body: bytes | None, sent: Sent
    ) -> Iterator[Difference]:
        if kind != sent.type_at(index):
            yield Difference(
                stream=stream, index=index, problem=f"is a {kind}, sent was a {sent.type_at(index)}"
            )
        if not self.bodies:
            return
        if body is None:
            yield Difference(stream=stream, index=index, problem="comes without its body")
        elif digest(body) != sent.digest_at(index):
            yield Difference(stream=stream, index=index, problem="has another body than was sent")
