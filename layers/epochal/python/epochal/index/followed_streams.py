"""Follows streams through a chain in bounded memory: how far each gets, and where it first goes wrong.

As many streams as fit are followed at the same time. If there are more, half of them are dropped, by a hash of their
names, and are followed in another pass over the chain. So no count is needed beforehand, and a chain whose streams fit
is read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from zlib import crc32

from epochal.index.checkpoints import Checkpoint
from epochal.layout.changes import Removal, Span
from epochal.lazy_dataclasses import dataclass, field

HASHES: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class HashRange:
    """The streams whose names hash to a value from `low` to `high` - 1."""

    low: int = 0
    high: int = HASHES

    def holds(self, stream: str) -> bool:
        """Return whether a stream is in the range."""
        return self.low <= crc32(stream.encode()) < self.high

    def halves(self) -> tuple[HashRange, HashRange]:
        """Return the lower and the upper half of the range."""
        middle = (self.low + self.high) // 2
        return HashRange(self.low, middle), HashRange(middle, self.high)


@dataclass(frozen=True, slots=True)
class Break:
    """A span that does not begin where its stream ended: events are missing before it, or come again."""

    span: Span
    expected: int
    at: Checkpoint


@dataclass(slots=True)
class FollowedStream:
    """A stream as a chain of epochs shows it.

    Attributes:
        next: index after the last event in the chain.
        epoch: epoch of its latest events.
        partition: partition of its first events.
        passed: index below which everything was indexed or already removed.
        broken: the first break of the stream. It is kept, so that a stream that is dropped and followed again is
            reported once.
        end: end of the stream according to its heads, the furthest of several; None without any.
    """

    next: int
    epoch: int
    partition: int
    passed: int = 0
    broken: Break | None = None
    end: int | None = None


@dataclass(slots=True)
class FollowedStreams:
    """The streams of a hash range, as far as a chain has been walked.

    Attributes:
        most: number of streams that are followed at once.
        range: range that is followed; it shrinks when there are more streams.
        left: ranges that must be followed in another pass.
        streams: the streams that are followed, by name.
    """

    most: int
    range: HashRange = HashRange()
    left: list[HashRange] = field(default_factory=list)
    streams: dict[str, FollowedStream] = field(default_factory=dict)

    def add(self, partition: int, span: Span, checkpoint: Checkpoint) -> Break | None:
        """Note a stream's next span; return the break before it, or None if it fits or one was kept already."""
        followed = self.streams.get(span.stream)
        if followed is None:
            if not self.range.holds(span.stream):
                return None
            followed = FollowedStream(0, checkpoint.epoch, partition)
            self.streams[span.stream] = followed
        expected, followed.next, followed.epoch = (
            followed.next,
            max(followed.next, span.next),
            checkpoint.epoch,
        )
        if len(self.streams) > self.most:
            self._let_go()
        return None if span.index == expected or followed.broken else Break(span, expected, checkpoint)

    def remove(self, removal: Removal, checkpoint: Checkpoint) -> None:
        """Follow a stream by a removal of events, which counts like events of it."""
        if (followed := self.streams.get(removal.stream)) is not None:
            followed.passed, followed.epoch = max(followed.passed, removal.next), checkpoint.epoch

    def keep(self, broken: Break) -> None:
        """Remember where a stream breaks, if it is still followed."""
        if broken.span.stream in self.streams:
            self.streams[broken.span.stream].broken = broken

    def of(self, partition: int) -> Iterator[tuple[str, FollowedStream]]:
        """Iterate over the followed streams of a partition, with their names."""
        return (
            (name, followed) for name, followed in self.streams.items() if followed.partition == partition
        )

    def _let_go(self) -> None:
        """Halve the followed hash range until few enough streams remain; add its upper halves to `left`."""
        while len(self.streams) > self.most and self.range.high - self.range.low > 1:
            self.range, upper = self.range.halves()
            self.left.append(upper)
            self.streams = {
                name: followed for name, followed in self.streams.items() if self.range.holds(name)
            }
