"""Walks a partition's whole chain of epochs, however broken: it reports what cannot be read, and goes on.

A reader of the feed stops where something is wrong (`index.feed_walk`); a check of the index must see what comes
behind that. Epochs are the truth; the series only tells which of them there should be.

    no Tip              the end of the chain; lost, where the series or the next epoch tells that there was more
    not closed          the end of the chain; left open, where the next epoch has begun
    unreadable          told once for the epoch, or for each entry that cannot be read
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final, Literal
from zlib import crc32

from epochal.errors import CorruptData
from epochal.index.checkpoints import Checkpoint
from epochal.index.entries import CLOSED, Entry, epoch_tip, read_own_metadata, read_spans, stored_entries
from epochal.index.tip import StoredSpan, Tip, TipCursor, advance, cursor_at, read_event
from epochal.layout.port import Removal, Span
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.plan.ops import Steps
from epochal.plan.values import Key

Remedy = Literal["repair", "rebuild", "look"]

FindingKind = Literal[
    "unregistered",
    "missing",
    "mark low",
    "mark high",
    "gap",
    "backwards",
    "misplaced",
    "entry unreadable",
    "epoch unreadable",
    "epoch lost",
    "epoch left open",
    "epoch continued",
    "too far",
    "orphan",
    "head unreadable",
    "checkpoint beyond",
    "stray stream",
]

REMEDIES: Final = MappingProxyType[FindingKind, Remedy](
    {
        "unregistered": "repair",
        "missing": "repair",
        "mark low": "repair",
        "mark high": "rebuild",
        "gap": "rebuild",
        "backwards": "rebuild",
        "misplaced": "rebuild",
        "entry unreadable": "rebuild",
        "epoch unreadable": "rebuild",
        "epoch lost": "rebuild",
        "epoch left open": "rebuild",
        "epoch continued": "rebuild",
        "too far": "look",
        "orphan": "look",
        "head unreadable": "look",
        "checkpoint beyond": "look",
        "stray stream": "look",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is wrong.

    Attributes:
        source: of the feed; `index` for what is of none.
        partition: of the feed, where it is one's.
        stream: whose events these are; of a head that cannot be read its key, of a checkpoint its group.
        index: of the first event that is concerned.
        end: the index after the last.
        at: the place in the chain.
        cause: what else is known.
        key: of the head that tells of what is missing.
    """

    kind: FindingKind
    source: str
    partition: int | None = None
    stream: str | None = None
    index: int | None = None
    end: int | None = None
    at: Checkpoint | None = None
    cause: str = ""
    key: Key | None = None

    @property
    def remedy(self) -> Remedy:
        """What mends it."""
        return REMEDIES[self.kind]


# Follows streams through a chain, in bounded memory: how far each gets, and where it first goes wrong.
#
# As many streams as fit are followed at once. When there are more, half of them are let go, by a hash of their names,
# and are left for another pass over the chain: so no count is needed beforehand, and what fits is walked once.

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
class FollowedStream:
    """A stream as the chain has it.

    Attributes:
        next: the index after the last event that it holds.
        epoch: where it was met last.
        partition: where it was met first.
        passed: everything below was indexed, or gone by then.
        broken: where it first breaks; kept here, so that a stream that is let go and followed later is told of once.
        end: where it ends by the heads that were met, the furthest of several; None without any.
    """

    next: int
    epoch: int
    partition: int
    passed: int = 0
    broken: Break | None = None
    end: int | None = None


@dataclass(slots=True)
class FollowedStreams:
    """The streams of a range, as far as a chain has been walked.

    Attributes:
        most: streams that are followed at once.
        range: what is followed; it shrinks when there are more.
        left: what must be followed another time.
    """

    most: int
    range: HashRange = HashRange()
    left: list[HashRange] = field(default_factory=list)
    streams: dict[str, FollowedStream] = field(default_factory=dict)

    def add(self, partition: int, span: Span, at: Checkpoint) -> Break | None:
        """Take in a span from `at`; how it breaks its stream, if nothing has before."""
        followed = self.streams.get(span.stream)
        if followed is None:
            if not self.range.holds(span.stream):
                return None
            followed = FollowedStream(0, at.epoch, partition)
            self.streams[span.stream] = followed
        expected, followed.next, followed.epoch = followed.next, max(followed.next, span.next), at.epoch
        if len(self.streams) > self.most:
            self._let_go()
        return None if span.index == expected or followed.broken else Break(span, expected, at)

    def remove(self, removal: Removal, at: Checkpoint) -> None:
        """Take in a removal, by which the epoch knows the stream as by events of it."""
        if (followed := self.streams.get(removal.stream)) is not None:
            followed.passed, followed.epoch = max(followed.passed, removal.next), at.epoch

    def keep(self, broken: Break) -> None:
        """Keep where a stream breaks, if it is still followed."""
        if broken.span.stream in self.streams:
            self.streams[broken.span.stream].broken = broken

    def of(self, partition: int) -> Iterator[tuple[str, FollowedStream]]:
        """The streams of a partition."""
        return (
            (name, followed) for name, followed in self.streams.items() if followed.partition == partition
        )

    def _let_go(self) -> None:
        while len(self.streams) > self.most and self.range.high - self.range.low > 1:
            self.range, upper = self.range.halves()
            self.left.append(upper)
            self.streams = {
                name: followed for name, followed in self.streams.items() if self.range.holds(name)
            }


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPosition:
    """Where a walk stands.

    Attributes:
        reached: the epoch that the series says the partition is in.
        cursor: within the epoch; None before its Tip has been read.
        closed: its `Closed` has been seen.
    """

    partition: int
    epoch: int = 0
    reached: int = 0
    cursor: TipCursor | None = None
    closed: bool = False

    @property
    def following(self) -> ChainPosition:
        """The beginning of the next epoch."""
        return ChainPosition(partition=self.partition, epoch=self.epoch + 1, reached=self.reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFault:
    """Something that is wrong at a place of the chain."""

    kind: FindingKind
    at: Checkpoint
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPage:
    """Entries with the checkpoints before them, what was wrong, and where to go on; nowhere at the end."""

    entries: tuple[tuple[Entry, Checkpoint], ...] = ()
    faults: tuple[ChainFault, ...] = ()
    place: ChainPosition | None


def step(table: str, place: ChainPosition) -> Steps[ChainPage]:
    """Read on by a page, or into the next epoch."""
    try:
        return (yield from _step(table, place))
    except CorruptData as cause:
        at = 0 if place.cursor is None else place.cursor.at
        fault = _fault_at("epoch unreadable", place, at, f"{type(cause).__name__}: {cause}")
        has_next = place.epoch < place.reached or (yield from _has_begun(table, place.following))
        return ChainPage(faults=(fault,), place=place.following if has_next else None)


def _step(table: str, place: ChainPosition) -> Steps[ChainPage]:
    cursor = place.cursor
    if cursor is None:
        tip = yield from _read_tip(table, place)
        if tip is None:
            return (yield from _without_tip(table, place))
        cursor = cursor_at(tip, 0)
    if cursor.at_end:
        return (yield from _at_end(table, replace(place, cursor=cursor), cursor))
    pages = yield from advance(table, cursor)
    return _decode_page(place, pages.spans, pages.cursor)


def _without_tip(table: str, place: ChainPosition) -> Steps[ChainPage]:
    """Nothing has come to this epoch yet; or it has been lost."""
    if place.epoch >= place.reached and not (yield from _has_begun(table, place.following)):
        return ChainPage(place=None)
    # The next epoch has begun, so this one was there before: if it is not there now, it is gone.
    if (yield from _read_tip(table, place)) is not None:
        return ChainPage(place=place)
    return ChainPage(faults=(_fault_at("epoch lost", place, 0),), place=place.following)


def _at_end(table: str, place: ChainPosition, cursor: TipCursor) -> Steps[ChainPage]:
    """The next epoch; or the end of the chain."""
    if place.closed:
        return ChainPage(place=place.following)
    has_next = place.epoch < place.reached or (yield from _has_begun(table, place.following))
    fresh = yield from _read_tip(table, place)
    if fresh is not None and fresh.version > cursor.at:
        return ChainPage(place=replace(place, cursor=cursor_at(fresh, cursor.at)))
    if not has_next:
        return ChainPage(place=None)
    return ChainPage(faults=(_fault_at("epoch left open", place, cursor.at),), place=place.following)


def _decode_page(place: ChainPosition, spans: tuple[StoredSpan, ...], cursor: TipCursor) -> ChainPage:
    entries: list[tuple[Entry, Checkpoint]] = []
    faults: list[ChainFault] = []
    closed = place.closed
    for offset, kind, event in stored_entries(spans):
        if closed:
            faults.append(_fault_at("epoch continued", place, offset))
        if kind == CLOSED:
            closed = True
            continue
        try:
            decoded = read_event(kind, event)
            entry = Entry(read_spans(kind, decoded.data), *read_own_metadata(decoded.meta))
        except CorruptData as cause:
            faults.append(_fault_at("entry unreadable", place, offset, str(cause)))
        else:
            entries.append((entry, Checkpoint.of(place.epoch, offset)))
    following = replace(place, cursor=cursor, closed=closed)
    return ChainPage(entries=tuple(entries), faults=tuple(faults), place=following)


def _read_tip(table: str, place: ChainPosition) -> Steps[Tip | None]:
    return epoch_tip(table, place.partition, place.epoch)


def _has_begun(table: str, place: ChainPosition) -> Steps[bool]:
    try:
        return (yield from _read_tip(table, place)) is not None
    except CorruptData:
        return True


def _fault_at(kind: FindingKind, place: ChainPosition, offset: int, cause: str = "") -> ChainFault:
    return ChainFault(kind=kind, at=Checkpoint.of(place.epoch, offset), cause=cause)
