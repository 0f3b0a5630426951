"""Whether an index is right: its chains against themselves, its marks against its chains, its heads against both.

    chains     each stream goes on where it ended, from its first event, but for what was pruned before it was indexed
    marks      of a stream that the two newest epochs have forgotten: where the chain leaves it, nowhere else
    heads      a head's stream ends where the chain's does; a stream of the chain has a head
    groups     no checkpoint is beyond the end of its chain

Memory: `streams` are followed at once; an index of more is walked again for the others, and the heads are scanned again
(`index.continuity`).

Safe beside running indexers: each part is read after what it is compared with, or what seems wrong is looked at again.
A missing event may only be late: it counts when it is still missing after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from epochal.care.heads import ScannedHead, UnreadableHead, heads, heads_by_partition, read_heads
from epochal.care.mender import Mender
from epochal.care.status import strayed
from epochal.errors import CorruptData
from epochal.index.chain_check import ChainPosition, Finding, FindingKind, step
from epochal.index.checkpoints import Checkpoint
from epochal.index.entries import Entry
from epochal.index.followed_streams import Break, FollowedStreams, HashRange
from epochal.index.marks import Leaves, read_marks
from epochal.index.series import Series, read_series
from epochal.layout.healing import Gap
from epochal.layout.source import End, Source
from epochal.lazy_dataclasses import dataclass
from epochal.plan.values import Key
from epochal.store.driver import Driver

STREAMS: Final = 500_000
"""Streams followed at once: some 150 MB."""

AT_ONCE: Final = 1_000
"""Marks read, and heads looked at again, together."""

SUSPECTS: Final = 10_000
"""Streams that are waited for together."""

T = TypeVar("T")

Tell = Callable[[str], object]
"""Called with what is being done, in words."""


def has_heads(driver: Driver, source: Source) -> bool:
    """Whether a source's table has any head; a source without one need not be on record."""
    return any(read_heads(source, page) for page in heads(driver, source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Compares an index with itself, and with the heads of its sources.

    Attributes:
        mender: compares heads with the index, and reads heads again.
        sources: the sources that the index covers.
        streams: number of streams followed at once, which bounds memory.
        segments: number of segments of a table that are scanned at once.
        settle: seconds to wait before an event that seems missing is looked for again.
        tell: called with a line of progress.
    """

    mender: Mender
    sources: tuple[Source, ...]
    streams: int = STREAMS
    segments: int = 1
    settle: float = 5.0
    tell: Tell = str

    def findings(self) -> Iterator[Finding]:
        """Yield everything that is wrong with the index, source by source; nothing where all is well."""
        series = self.mender.driver.run(read_series(self.mender.index_table))
        for source in self.sources:
            if source.name not in series.partitions and has_heads(self.mender.driver, source):
                yield Finding(kind="unregistered", source=source.name)
            ranges, first = [HashRange()], True
            while ranges:
                following = FollowedStreams(most=self.streams, range=ranges.pop())
                yield from _Pass(self, source, series, following, first).findings()
                ranges += following.left
                first = False
        yield from strayed(self.mender.driver, self.mender.index_table)


@dataclass(frozen=True, slots=True)
class _Pass:
    """One walk over the chains of a source, for as many of its streams as memory allows.

    Attributes:
        of: the verifier whose source is walked.
        source: the source.
        series: the newest epochs of all partitions.
        following: the streams that are followed in this pass.
        first: whether this pass also reports what is wrong with the epochs themselves.
    """

    of: Verifier
    source: Source
    series: Series
    following: FollowedStreams
    first: bool

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong with the chains, the marks and the heads of the followed streams."""
        base = self.source.base
        for number in range(base, base + self.source.partitions):
            last = yield from self._chain(number)
            yield from self._breaks(number)
            yield from self._marks(number, last)
        yield from self._heads()
        for stream, followed in self.following.streams.items():
            if followed.end is None:
                yield self._finding("orphan", followed.partition, stream, (0, followed.next))
            elif followed.end < followed.next:
                yield self._finding("too far", followed.partition, stream, (followed.end, followed.next))

    # ------------------------------------------------------------------------------------------------------ the chain

    def _chain(self, number: int) -> Generator[Finding, None, int]:
        """Follow a partition's chain; yield what is wrong with its epochs; return the last epoch's number."""
        place: ChainPosition | None = ChainPosition(
            partition=number, reached=self.series.active.get(number, 0)
        )
        last = 0
        while place is not None:
            last = place.epoch
            page = self.of.mender.driver.run(step(self.of.mender.index_table, place))
            for fault in page.faults if self.first else ():
                yield Finding(
                    kind=fault.kind, source=self.source.name, partition=number, at=fault.at, cause=fault.cause
                )
            for entry, checkpoint in page.entries:
                yield from self._entry(number, entry, checkpoint)
            self.of.tell(f"{self.source.name}: partition {number}, epoch {last:,}")
            place = page.place
        return last

    def _entry(self, number: int, entry: Entry, checkpoint: Checkpoint) -> Iterator[Finding]:
        """Follow the streams of an entry of the chain, and yield those that belong to another partition."""
        for span in entry.spans:
            if self.source.partition_of(span.stream) != number:
                if self.first:
                    yield self._finding(
                        "misplaced", number, span.stream, (span.index, span.next), at=checkpoint
                    )
                continue
            broken = self.following.add(number, span, checkpoint)
            if broken is not None and (span.index < broken.expected or self._is_there(broken)):
                self.following.keep(broken)
        for removal in entry.removals:
            self.following.remove(removal, checkpoint)

    def _breaks(self, number: int) -> Iterator[Finding]:
        """Yield the streams of a partition whose chain has a gap, or goes back."""
        for stream, followed in self.following.of(number):
            broken = followed.broken
            if broken is None:
                continue
            index, expected = broken.span.index, broken.expected
            kind: FindingKind = "gap" if index > expected else "backwards"
            yield self._finding(
                kind, number, stream, (min(index, expected), max(index, expected)), at=broken.at
            )

    def _is_there(self, broken: Break) -> bool:
        """Whether any event of a gap can still be read, or should: if not, it was pruned before it was indexed."""
        gap = Gap(stream=broken.span.stream, index=broken.expected, end=broken.span.index)
        try:
            return self.of.mender.driver.run(self.source.heal(gap)).events > 0
        except CorruptData:
            return True

    # ------------------------------------------------------------------------------------------------------ the marks

    def _marks(self, number: int, last: int) -> Iterator[Finding]:
        """Yield the marks of a partition that do not fit its chain, which ended in epoch `last`."""
        high: dict[str, int] = {}
        leaves = Leaves(lenient=True)
        for some in _in_parts(self.following.of(number), AT_ONCE):
            marks = self._read_marks(number, leaves, [stream for stream, _ in some])
            for stream, followed in some:
                mark = marks.get(stream, 0)
                if mark < followed.next and followed.epoch < last - 1:
                    yield self._finding("mark low", number, stream, (mark, followed.next))
                elif mark > max(followed.next, followed.passed):
                    high[stream] = mark
        if high:
            grown = self._grown(number, last, high.keys())
            for stream, mark in high.items():
                followed = self.following.streams[stream]
                following = max(followed.next, followed.passed, grown.get(stream, 0))
                if mark > following:
                    yield self._finding("mark high", number, stream, (following, mark))

    def _read_marks(self, number: int, leaves: Leaves, streams: list[str]) -> dict[str, int]:
        return self.of.mender.driver.run(read_marks(self.of.mender.index_table, number, leaves, streams))

    def _grown(self, number: int, epoch: int, streams: Collection[str]) -> dict[str, int]:
        """Return the next index of each of some streams, from walking the chain again from `epoch`."""
        indexes: dict[str, int] = {}
        place: ChainPosition | None = ChainPosition(partition=number, epoch=epoch)
        while place is not None:
            page = self.of.mender.driver.run(step(self.of.mender.index_table, place))
            for span in (part for entry, _ in page.entries for part in entry.parts):
                if span.stream in streams:
                    indexes[span.stream] = max(span.next, indexes.get(span.stream, 0))
            place = page.place
        return indexes

    # ------------------------------------------------------------------------------------------------------ the heads

    def _heads(self) -> Iterator[Finding]:
        """Compare all heads of the source with the chains, and yield what the index lacks."""
        late: list[ScannedHead] = []
        count = 0
        for page in heads(self.of.mender.driver, self.source, self.of.segments):
            unreadable: list[UnreadableHead] = []
            for head in read_heads(self.source, page, unreadable.append):
                if self.following.range.holds(head.end.stream):
                    self._head(head, late)
            for bad in unreadable if self.first else ():
                yield self._finding("head unreadable", None, str(bad.key), cause=bad.cause)
            count += len(page)
            self.of.tell(f"{self.source.name}: {count:,} heads")
            if len(late) >= SUSPECTS:
                yield from self._late(late)
                late = []
        yield from self._late(late)

    def _head(self, head: ScannedHead, late: list[ScannedHead]) -> None:
        """Compare a head with the chain; where the index lacks something, add the head to `late`."""
        stream, mender = head.end.stream, self.of.mender
        followed = self.following.streams.get(stream)
        reached = 0 if followed is None else followed.next
        end = mender.end_of(self.source, head.end, reached)
        if followed is not None:
            followed.end = max(end, followed.end or 0)
        if end > max(reached, head.end.pruned):
            # Its key is enough to find it again.
            late.append(
                ScannedHead(source=self.source.name, image=head.key, end=End(stream, end, head.end.pruned))
            )

    def _late(self, heads: list[ScannedHead]) -> Iterator[Finding]:
        """Wait, then yield what the index still lacks of the streams of these heads."""
        if heads:
            self.of.mender.driver.sleep(self.of.settle)
        for some in _in_parts(heads, AT_ONCE):
            for number, mine in heads_by_partition(self.source, some).items():
                yield from self._missing(number, mine)

    def _missing(self, number: int, heads: list[ScannedHead]) -> Iterator[Finding]:
        """Yield the events of some streams that the index lacks, after reading index and heads again."""
        mender, cause = self.of.mender, ""
        try:
            late = {behind.head.end.stream: behind for behind in mender.behind(self.source, number, heads)}
        except CorruptData as error:
            # Then the chain alone tells how far it has got.
            late, cause = {}, str(error)
        for head in heads:
            stream, end = head.end.stream, head.end.next or 0
            if not cause and stream not in late:
                continue
            fresh, followed = mender.again(self.source, head.key), self.following.streams.get(stream)
            index = max(
                late[stream].index if stream in late else 0,
                0 if fresh is None else fresh.end.pruned,
                0 if followed is None else followed.next,
            )
            if fresh is not None and index < end:
                events = (index, end)
                yield self._finding("missing", number, stream, events, cause=cause, key=head.key)

    def _finding(
        self,
        kind: FindingKind,
        partition: int | None,
        stream: str,
        events: tuple[int | None, int | None] = (None, None),
        *,
        at: Checkpoint | None = None,
        cause: str = "",
        key: Key | None = None,
    ) -> Finding:
        """Make a finding about a stream of this source."""
        return Finding(
            kind=kind,
            source=self.source.name,
            partition=partition,
            stream=stream,
            index=events[0],
            end=events[1],
            at=at,
            cause=cause,
            key=key,
        )


def _in_parts(things: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(things)
    while part := list(islice(iterator, size)):
        yield part
