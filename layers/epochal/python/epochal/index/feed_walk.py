"""Walks a chain of epochs from a checkpoint on, one request at a time.

A checkpoint from outside may be of an index that has been rebuilt since: a walk from there would wait for ever, or skip
what comes. Two signs of it are refused: an offset beyond its epoch's entries, and an epoch that has not begun.
The predecessor tells whether an epoch without entries has begun.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from epochal.errors import BeyondTheEnd, CorruptData, InvalidInput
from epochal.index.checkpoints import Checkpoint
from epochal.index.entries import CLOSED, Entry, read_spans
from epochal.index.epochs import epoch_tip, is_closed, stored_entries
from epochal.index.series import read_series
from epochal.index.tip import Cursor, StoredSpan, Tip, advance, holding, read_data, read_timestamp, stand
from epochal.model.times import PER_SECOND, Ticks, parse_time, unix_seconds
from epochal.plan.ops import Steps
from epochal.plan.values import AttributeValue


@dataclass(frozen=True, slots=True)
class PlacedEntry:
    """An entry as stored, and the checkpoint after it. Decoding waits until someone wants it: a request brings
    whole items, of which a page may need the beginning.
    """

    kind: str
    event: AttributeValue
    after: Checkpoint

    def entry(self) -> Entry:
        """Decode it; raises `CorruptData`."""
        return Entry(read_spans(self.kind, read_data(self.event)))

    @property
    def seconds(self) -> int:
        """When it was written, in seconds since 1970; raises `InvalidInput` where that is no time."""
        return unix_seconds(parse_time(read_timestamp(self.event)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Where a reader stands: at `at`, with the epoch's read under way.

    Attributes:
        known: it has come here by itself, so that the place exists.
    """

    partition: int
    at: Checkpoint
    cursor: Cursor | None = None
    known: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkPage:
    """Entries in their places; `at_tail`: nothing lay beyond when the epoch's Tip was read."""

    placed: tuple[PlacedEntry, ...]
    walk: Walk
    at_tail: bool

    @property
    def entries(self) -> tuple[tuple[Entry, Checkpoint], ...]:
        """All of them decoded, each with the checkpoint after it."""
        return tuple((each.entry(), each.after) for each in self.placed)


def step(table: str, walk: Walk, limit: int | None = None) -> Steps[WalkPage]:
    """Read on by one request (two where an epoch's Tip must be read first).

    Args:
        limit: entries wanted; more may come.

    Raises:
        BeyondTheEnd: the walk began where nothing is, nor will come next.
    """
    cursor = walk.cursor
    if cursor is None or cursor.at_end:
        tip = yield from epoch_tip(table, walk.partition, walk.at.epoch)
        if not walk.known:
            yield from _check(table, walk, tip)
        if tip is None or walk.at.offset >= tip.version:
            # On a `Closed` it must not wait for ever.
            at = Checkpoint.of(walk.at.epoch + 1, 0) if is_closed(tip) else walk.at
            moved = Walk(partition=walk.partition, at=at, known=True)
            return WalkPage(placed=(), walk=moved, at_tail=not is_closed(tip))
        cursor = stand(tip, walk.at.offset)
    pages = yield from advance(table, cursor, limit)
    found, at = _placed(pages.spans, walk.at)
    same = at.epoch == walk.at.epoch
    following = Walk(partition=walk.partition, at=at, cursor=pages.cursor if same else None, known=True)
    return WalkPage(placed=found, walk=following, at_tail=same and pages.cursor.at_end)


def _check(table: str, walk: Walk, tip: Tip | None) -> Steps[None]:
    epoch, offset = walk.at.epoch, walk.at.offset
    exists = tip is not None or epoch == 0
    if not exists and offset == 0:
        exists = is_closed((yield from epoch_tip(table, walk.partition, epoch - 1)))
    if not exists or offset > (0 if tip is None else tip.version):
        raise BeyondTheEnd(walk.partition, walk.at)


def tail(table: str, partition: int, epoch: int) -> Steps[Checkpoint]:
    """The checkpoint after a partition's last entry, found from an epoch that it has reached."""
    end, _ = yield from newest(table, partition, epoch)
    return end


def newest(table: str, partition: int, epoch: int) -> Steps[tuple[Checkpoint, Tip | None]]:
    """The checkpoint after a partition's last entry, and the Tip of its newest epoch; None where that is empty."""
    while True:
        tip = yield from epoch_tip(table, partition, epoch)
        if not is_closed(tip):
            return Checkpoint.of(epoch, 0 if tip is None else tip.version), tip
        epoch += 1


def tails(table: str) -> Steps[list[tuple[int, Checkpoint]]]:
    """Every partition on record with its tail."""
    series = yield from read_series(table)
    found: list[tuple[int, Checkpoint]] = []
    for partition, epoch in series.reached():
        found.append((partition, (yield from tail(table, partition, epoch))))
    return found


# Where a moment is in a chain: entries have the time at which an indexer wrote them. First the epoch is found by the
# times at which epochs ended, then the entry in it, an item of the epoch at a time: by halves, so requests grow with
# the logarithm.
#
# Clocks of indexers differ, so times do not always increase. Wherever the search ends, the entry before that place was
# written before the moment, by its clock: so nothing that was truly written after it is passed over, unless two clocks
# differ by more than `SKEW`.

SKEW: Final = 60 * PER_SECOND
"""Ticks that are searched further back: clocks of writers and indexers may be wrong by half of it each."""


def since(table: str, partition: int, moment: Ticks) -> Steps[Checkpoint]:
    """The checkpoint of the first entry of a partition that may have been written at or after a moment, or the tail.

    Raises:
        CorruptData: an entry is in no item.
    """
    wanted = moment - SKEW
    low, high = 0, (yield from read_series(table)).active.get(partition, 0)
    tip = yield from epoch_tip(table, partition, high)
    while is_closed(tip) and _before(tip, wanted):
        # Either this was the newest epoch when the series was written, or the moment is after the end.
        low = high = high + 1
        tip = yield from epoch_tip(table, partition, high)
    while low < high:
        middle = (low + high) // 2
        ended = yield from epoch_tip(table, partition, middle)
        if ended is None or _before(ended, wanted):
            low = middle + 1
        else:
            high, tip = middle, ended
    return Checkpoint.of(high, 0 if tip is None else (yield from _entry_since(table, tip, wanted)))


def _entry_since(table: str, tip: Tip, wanted: int) -> Steps[int]:
    """The offset of an entry that is not before a moment, while the one before it is."""
    low, high = 0, tip.version - is_closed(tip)
    while low < high:
        middle = high - 1 if high > tip.span.base else (low + high) // 2
        span = tip.span if middle >= tip.span.base else (yield from holding(table, tip.stream, middle))
        if span is None:
            raise CorruptData(f"{tip.stream}: entry {middle} is in no item, and was not pruned")
        first, end = max(span.base, low), min(span.next, high)
        passed = next((at for at in range(first, end) if not _is_before(span, at, wanted)), end)
        if first < passed < end:
            return passed
        low, high = (low, first) if passed == first else (passed, high)
    return low


def _before(tip: Tip | None, wanted: int) -> bool:
    """Whether all of an epoch that has ended was written before a moment; what has no time was not."""
    return tip is not None and bool(tip.span.events) and _is_before(tip.span, tip.span.next - 1, wanted)


def _is_before(span: StoredSpan, index: int, wanted: int) -> bool:
    try:
        return parse_time(span.timestamp(index - span.base)) < wanted
    except InvalidInput:
        return False  # another program's entry, with no time that can be read


def _placed(spans: tuple[StoredSpan, ...], at: Checkpoint) -> tuple[tuple[PlacedEntry, ...], Checkpoint]:
    found: list[PlacedEntry] = []
    for _, kind, event in stored_entries(spans):
        if kind != CLOSED:
            at = Checkpoint.of(at.epoch, at.offset + 1)
            found.append(PlacedEntry(kind, event, at))
            continue
        at = Checkpoint.of(at.epoch + 1, 0)
        if found:
            found[-1] = replace(found[-1], after=at)
    return tuple(found), at
