"""Walks a partition's chain of epochs from a checkpoint, forward or backward, one request at a time.

A checkpoint from outside may be of an index that has been rebuilt since: a walk from there would wait for ever, or skip
what comes. Two signs of it are refused: an offset beyond its epoch's entries, and an epoch that has not begun.
The predecessor tells whether an epoch without entries has begun.
"""

from __future__ import annotations

from typing import Final

from epochal.errors import BeyondTheEnd, CorruptData, InvalidInput
from epochal.index.checkpoints import BEGINNING, Checkpoint, calf_key
from epochal.index.entries import (
    CLOSED,
    Entry,
    epoch_tip,
    is_closed,
    read_own_metadata,
    read_spans,
    stored_entries,
)
from epochal.index.series import Series, read_series
from epochal.index.tip import (
    StoredSpan,
    Tip,
    TipCursor,
    advance,
    append_id,
    cursor_at,
    find_calf,
    query_calves,
    read_data,
    read_meta,
    read_timestamp,
    readable_spans,
)
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import Ticks, parse_time, unix_seconds
from epochal.plan.ops import Get, Steps
from epochal.plan.values import AttributeValue, read_units


@dataclass(frozen=True, slots=True)
class PlacedEntry:
    """An undecoded entry with the checkpoint after it, or in a backward walk the one before it.

    Decoding is left to the reader: a request returns whole items, of which a page may need only the beginning.
    """

    kind: str
    event: AttributeValue
    after: Checkpoint

    def entry(self) -> Entry:
        """Decode the entry; raise `CorruptData` if it is malformed."""
        spans, meta = read_spans(self.kind, read_data(self.event)), read_meta(self.event)
        return Entry(spans) if meta is None else Entry(spans, *read_own_metadata(meta))

    @property
    def ticks(self) -> Ticks:
        """Time at which the entry was written; raise `InvalidInput` if it is not a time."""
        return parse_time(read_timestamp(self.event))

    @property
    def seconds(self) -> int:
        """The same time in seconds since 1970."""
        return unix_seconds(self.ticks)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedWalk:
    """Position of a reader in a partition's chain of epochs.

    Attributes:
        partition: partition that is read.
        at: checkpoint of the position.
        cursor: position in the epoch's items, while one is being read.
        known: whether the walk came here by itself, so that the place exists.
        forward: whether it reads towards the tail, else towards the beginning.
        looks: number of polls for the next calf since the Tip itself was read, see `poll`.
    """

    partition: int
    at: Checkpoint
    cursor: TipCursor | None = None
    known: bool = False
    forward: bool = True
    looks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkPage:
    """Entries that one step of a walk has read.

    Attributes:
        placed: the entries with their checkpoints.
        walk: position after them.
        at_tail: whether nothing lay beyond when the epoch's Tip was read.
        weight: read units of the next poll as a multiple of the least, if that is known.
    """

    placed: tuple[PlacedEntry, ...]
    walk: FeedWalk
    at_tail: bool
    weight: int = 1

    @property
    def is_news(self) -> bool:
        """Whether a waiting reader should be woken: entries have come, or lie beyond."""
        return bool(self.placed) or not self.at_tail

    @property
    def entries(self) -> tuple[tuple[Entry, Checkpoint], ...]:
        """The decoded entries, each with the checkpoint after it."""
        return tuple((placed.entry(), placed.after) for placed in self.placed)


def step(table: str, walk: FeedWalk, limit: int | None = None, *, consistent: bool = True) -> Steps[WalkPage]:
    """Read the next entries in the walk's direction; return them with the position after them.

    This takes one request, or two to read an epoch's Tip first.

    Args:
        limit: number of entries wanted; more may come.
        consistent: if false, a Tip may be an earlier one, at half the cost, once the walk has moved by itself: entries
            that lie beyond may not be visible yet. What a Tip once said of an epoch stays true.

    Raises:
        BeyondTheEnd: the walk began at a place that does not exist, and where the next entry will not be written.
    """
    if not walk.forward:
        return (yield from _step_back(table, walk, limit))
    cursor = walk.cursor
    if cursor is None or cursor.at_end:
        tip = yield from epoch_tip(
            table, walk.partition, walk.at.epoch, consistent=consistent or not walk.known
        )
        if not walk.known:
            yield from _check_start(table, walk, tip)
        if tip is None or walk.at.offset >= tip.version:
            # On a `Closed` it must not wait for ever.
            closed = is_closed(tip)
            checkpoint = Checkpoint.of(walk.at.epoch + 1, 0) if closed else walk.at
            next_cursor = None if tip is None or closed else cursor_at(tip, checkpoint.offset)
            next_walk = FeedWalk(partition=walk.partition, at=checkpoint, cursor=next_cursor, known=True)
            return WalkPage(placed=(), walk=next_walk, at_tail=not closed)
        cursor = cursor_at(tip, walk.at.offset)
    pages = yield from advance(table, cursor, limit)
    entries, checkpoint = _place_entries(pages.spans, walk.at)
    same = checkpoint.epoch == walk.at.epoch
    following = FeedWalk(
        partition=walk.partition, at=checkpoint, cursor=pages.cursor if same else None, known=True
    )
    return WalkPage(placed=entries, walk=following, at_tail=same and pages.cursor.at_end)


SELDOM: Final = 16
"""Number of polls for a calf, for each 4 KB of the Tip, before the Tip itself is read. So reading Tips adds a
sixteenth."""


def poll(table: str, walk: FeedWalk, limit: int | None = None, *, consistent: bool = True) -> Steps[WalkPage]:
    """Return a waiting reader's new entries and its walk, at the least cost while there are none.

    Reading a Tip costs by its size. But an indexer that appends to a large Tip first moves its events into a calf
    (`calf_costs.LARGE`): as long as there is no such calf, which is the cheapest to check, nothing has come. Other
    programs may append to their Tips as they are, so those are read themselves.
    """
    cursor = walk.cursor
    head = cursor.head if cursor is not None and cursor.at_end and walk.forward else None
    weight = 1 if head is None else int(read_units(head.size))
    calved = False
    if head is not None and weight > 1 and any(append_id(event) for event in head.span.events):
        if walk.looks < SELDOM * weight:
            reply = yield Get(table=table, key=calf_key(head.stream, head.span.base), consistent=consistent)
            if reply.item is None:
                return WalkPage(placed=(), walk=replace(walk, looks=walk.looks + 1), at_tail=True)
            # An eventually consistent read might return the Tip from before this calf.
            consistent = calved = True
        # One that is still as it was has lost its writer, and is looked at in vain until there is another.
        weight = 3 * weight if calved else 1
    page = yield from step(table, walk, limit, consistent=consistent)
    return page if page.is_news else replace(page, weight=weight)


def _step_back(table: str, walk: FeedWalk, limit: int | None) -> Steps[WalkPage]:
    """Read the entries before a position, newest first."""
    checkpoint, tip = walk.at, None if walk.cursor is None else walk.cursor.head
    if checkpoint == BEGINNING:
        return WalkPage(placed=(), walk=walk, at_tail=True)
    if tip is None:
        checkpoint, tip = yield from _end_before(table, walk)
    spans: list[StoredSpan] = (
        [] if tip is None else (yield from _spans_before(table, tip, checkpoint.offset, limit))
    )
    entries = tuple(
        PlacedEntry(kind, event, Checkpoint.of(checkpoint.epoch, offset))
        for span in spans
        for offset, (kind, event) in reversed([*enumerate(span.pairs, span.base)])
        if kind != CLOSED
    )
    following = Checkpoint.of(checkpoint.epoch, spans[-1].base if spans else 0)
    cursor = cursor_at(tip, following.offset) if tip is not None and following.offset else None
    next_walk = FeedWalk(partition=walk.partition, at=following, cursor=cursor, known=True, forward=False)
    return WalkPage(placed=entries, walk=next_walk, at_tail=following == BEGINNING)


def _end_before(table: str, walk: FeedWalk) -> Steps[tuple[Checkpoint, Tip | None]]:
    """Return the checkpoint and Tip to read backward from; raise `BeyondTheEnd` if it is not in the index.

    At the beginning of an epoch, that is the end of the epoch before.
    """
    checkpoint = walk.at
    tip = yield from epoch_tip(
        table, walk.partition, checkpoint.epoch if checkpoint.offset else checkpoint.epoch - 1
    )
    version = 0 if tip is None else tip.version
    if not walk.known and (checkpoint.offset > version if checkpoint.offset else not is_closed(tip)):
        raise BeyondTheEnd(walk.partition, checkpoint)
    return checkpoint if checkpoint.offset else Checkpoint.of(checkpoint.epoch - 1, version), tip


def _spans_before(table: str, tip: Tip, end: int, limit: int | None) -> Steps[list[StoredSpan]]:
    """Return spans of an epoch before offset `end`, newest first: the Tip's, or those of some calves."""
    if end > tip.span.base:
        return [tip.span.before(end)]
    if not end:
        return []
    spans: list[StoredSpan] = []
    first = end
    reply = yield query_calves(table, tip.stream, 0, end - 1, forward=False, limit=limit)
    for span in readable_spans(reply.items):
        if span.next < first:
            break
        spans.append(span.before(first))
        first = span.base
    if not spans:
        calf = yield from find_calf(table, tip.stream, end - 1)
        if calf is None:
            raise CorruptData(f"{tip.stream}: entry {end - 1} is in no item, but was not pruned")
        spans = [calf.before(end)]
    return spans


def _check_start(table: str, walk: FeedWalk, tip: Tip | None) -> Steps[None]:
    """Raise `BeyondTheEnd` if a walk's starting checkpoint does not exist in the index."""
    epoch, offset = walk.at.epoch, walk.at.offset
    exists = tip is not None or epoch == 0
    if not exists and offset == 0:
        exists = is_closed((yield from epoch_tip(table, walk.partition, epoch - 1)))
    if not exists or offset > (0 if tip is None else tip.version):
        raise BeyondTheEnd(walk.partition, walk.at)


def tail(table: str, partition: int, epoch: int) -> Steps[Checkpoint]:
    """Find the checkpoint after a partition's last entry, starting from an epoch that it has reached."""
    end, _ = yield from find_tail(table, partition, epoch)
    return end


def find_tail(table: str, partition: int, epoch: int) -> Steps[tuple[Checkpoint, Tip | None]]:
    """Find the checkpoint after a partition's last entry, and the Tip of its newest epoch or None."""
    while True:
        tip = yield from epoch_tip(table, partition, epoch)
        if not is_closed(tip):
            return Checkpoint.of(epoch, 0 if tip is None else tip.version), tip
        epoch += 1


def read_last_write_time(table: str, partition: int, epoch: int) -> Steps[Ticks | None]:
    """Return when the last entry of a partition was written; None without entries or a readable time."""
    end, _ = yield from find_tail(table, partition, epoch)
    walk, at_beginning = FeedWalk(partition=partition, at=end, forward=False), False
    while not at_beginning:
        page = yield from step(table, walk, 1)
        if page.placed:
            try:
                return page.placed[0].ticks
            except InvalidInput:
                return None
        walk, at_beginning = page.walk, page.at_tail
    return None


def read_tail(table: str, partition: int) -> Steps[Checkpoint | None]:
    """Return the tail of a partition by the series; None if the partition is not recorded."""
    epoch = dict((yield from read_series(table)).reached()).get(partition)
    return None if epoch is None else (yield from tail(table, partition, epoch))


def read_tails(table: str) -> Steps[list[tuple[int, Checkpoint]]]:
    """Return the tail of every recorded partition."""
    return (yield from tails_in(table, (yield from read_series(table))))


def tails_in(table: str, series: Series) -> Steps[list[tuple[int, Checkpoint]]]:
    """Return the tail of every partition that a series records."""
    positions: list[tuple[int, Checkpoint]] = []
    for partition, epoch in series.reached():
        positions.append((partition, (yield from tail(table, partition, epoch))))
    return positions


def _place_entries(
    spans: tuple[StoredSpan, ...], checkpoint: Checkpoint
) -> tuple[tuple[PlacedEntry, ...], Checkpoint]:
    """Return spans' entries, without `Closed`, with the checkpoints after them, and the last checkpoint."""
    entries: list[PlacedEntry] = []
    for _, kind, event in stored_entries(spans):
        if kind != CLOSED:
            checkpoint = Checkpoint.of(checkpoint.epoch, checkpoint.offset + 1)
            entries.append(PlacedEntry(kind, event, checkpoint))
            continue
        checkpoint = Checkpoint.of(checkpoint.epoch + 1, 0)
        if entries:
            entries[-1] = replace(entries[-1], after=checkpoint)
    return tuple(entries), checkpoint
