"""Follows streams through a chain, in bounded memory: how far each gets, and where it first goes wrong.

As many streams as fit are followed at once. When there are more, half of them are let go, by a hash of their names, and
are left for another pass over the chain: so no count is needed beforehand, and what fits is walked once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

from epochal.index.checkpoints import Checkpoint
from epochal.model.spans import Span

HASHES: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class HashRange:
    """Streams by the hash of their names: from `low` to `high` - 1."""

    low: int = 0
    high: int = HASHES

    def holds(self, stream: str) -> bool:
        """Whether the stream is one of these."""
        return self.low <= crc32(stream.encode()) < self.high

    def halves(self) -> tuple[HashRange, HashRange]:
        """The lower and the upper half."""
        middle = (self.low + self.high) // 2
        return HashRange(self.low, middle), HashRange(middle, self.high)


@dataclass(frozen=True, slots=True)
class Break:
    """A span that does not begin where its stream ended: events up to its index are missing, or come again."""

    span: Span
    expected: int
    at: Checkpoint


@dataclass(slots=True)
class Followed:
    """A stream as the chain has it.

    Attributes:
        next: the index after the last event that it holds.
        epoch: where it was met last.
        partition: where it was met first.
        broken: where it first breaks; kept here, so that a stream that is let go and followed later is told of once.
        end: where it ends by the heads that were met, the furthest of several; None without any.
    """

    next: int
    epoch: int
    partition: int
    broken: Break | None = None
    end: int | None = None


@dataclass(slots=True)
class Following:
    """The streams of a range, as far as a chain has been walked.

    Attributes:
        most: streams that are followed at once.
        range: what is followed; it shrinks when there are more.
        left: what must be followed another time.
    """

    most: int
    range: HashRange = HashRange()
    left: list[HashRange] = field(default_factory=list)
    streams: dict[str, Followed] = field(default_factory=dict)

    def add(self, partition: int, span: Span, at: Checkpoint) -> Break | None:
        """Take in a span from `at`; how it breaks its stream, if nothing has before."""
        known = self.streams.get(span.stream)
        if known is None:
            if not self.range.holds(span.stream):
                return None
            known = Followed(0, at.epoch, partition)
            self.streams[span.stream] = known
        expected, known.next, known.epoch = known.next, max(known.next, span.next), at.epoch
        if len(self.streams) > self.most:
            self._let_go()
        return None if span.index == expected or known.broken else Break(span, expected, at)

    def keep(self, broken: Break) -> None:
        """Keep where a stream breaks, if it is still followed."""
        if broken.span.stream in self.streams:
            self.streams[broken.span.stream].broken = broken

    def of(self, partition: int) -> Iterator[tuple[str, Followed]]:
        """The streams of a partition."""
        return ((name, each) for name, each in self.streams.items() if each.partition == partition)

    def _let_go(self) -> None:
        while len(self.streams) > self.most and self.range.high - self.range.low > 1:
            self.range, upper = self.range.halves()
            self.left.append(upper)
            self.streams = {name: each for name, each in self.streams.items() if self.range.holds(name)}
