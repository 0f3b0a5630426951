"""Walks a chain of epochs from a checkpoint on, one request at a time.

A checkpoint from outside may be of an index that has been rebuilt since: a walk from there would wait for ever, or skip
what comes. Two signs of it are refused: an offset beyond its epoch's entries, and an epoch that has not begun.
The predecessor tells whether an epoch without entries has begun.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from epochal.errors import BeyondTheEnd
from epochal.index.checkpoints import Checkpoint
from epochal.index.entries import CLOSED, Entry, read_spans
from epochal.index.epochs import epoch_tip, is_closed, stored_entries
from epochal.index.series import read_series
from epochal.index.tip import Cursor, StoredSpan, Tip, advance, read_data, read_timestamp, stand
from epochal.model.times import parse_time, unix_seconds
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
