"""Walks a partition's whole chain of epochs, however broken: it reports what cannot be read, and goes on.

A reader of the feed stops where something is wrong (`index.feed_walk`); a check of the index must see what comes
behind that. Epochs are the truth; the series only tells which of them there should be.

    no Tip              the end of the chain; lost, where the series or the next epoch tells that there was more
    not closed          the end of the chain; left open, where the next epoch has begun
    unreadable          told once for the epoch, or for each entry that cannot be read
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from epochal.errors import CorruptData
from epochal.index.chain import epoch_tip, stored_entries
from epochal.index.checkpoints import Checkpoint
from epochal.index.entries import CLOSED, Entry, read_spans
from epochal.index.findings import Kind
from epochal.index.stored import Cursor, StoredSpan, Tip, advance, read_event, stand
from epochal.plan.ops import Steps


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
    cursor: Cursor | None = None
    closed: bool = False

    @property
    def following(self) -> ChainPosition:
        """The beginning of the next epoch."""
        return ChainPosition(partition=self.partition, epoch=self.epoch + 1, reached=self.reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFault:
    """Something that is wrong at a place of the chain."""

    kind: Kind
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
        fault = _fault("epoch unreadable", place, at, f"{type(cause).__name__}: {cause}")
        goes_on = place.epoch < place.reached or (yield from _begun(table, place.following))
        return ChainPage(faults=(fault,), place=place.following if goes_on else None)


def _step(table: str, place: ChainPosition) -> Steps[ChainPage]:
    cursor = place.cursor
    if cursor is None:
        tip = yield from _tip(table, place)
        if tip is None:
            return (yield from _without_tip(table, place))
        cursor = stand(tip, 0)
    if cursor.at_end:
        return (yield from _at_end(table, replace(place, cursor=cursor), cursor))
    pages = yield from advance(table, cursor)
    return _decoded(place, pages.spans, pages.cursor)


def _without_tip(table: str, place: ChainPosition) -> Steps[ChainPage]:
    """Nothing has come to this epoch yet; or it has been lost."""
    if place.epoch >= place.reached and not (yield from _begun(table, place.following)):
        return ChainPage(place=None)
    # The next epoch has begun, so this one was there before: if it is not there now, it is gone.
    if (yield from _tip(table, place)) is not None:
        return ChainPage(place=place)
    return ChainPage(faults=(_fault("epoch lost", place, 0),), place=place.following)


def _at_end(table: str, place: ChainPosition, cursor: Cursor) -> Steps[ChainPage]:
    """The next epoch; or the end of the chain."""
    if place.closed:
        return ChainPage(place=place.following)
    goes_on = place.epoch < place.reached or (yield from _begun(table, place.following))
    fresh = yield from _tip(table, place)
    if fresh is not None and fresh.version > cursor.at:
        return ChainPage(place=replace(place, cursor=stand(fresh, cursor.at)))
    if not goes_on:
        return ChainPage(place=None)
    return ChainPage(faults=(_fault("epoch left open", place, cursor.at),), place=place.following)


def _decoded(place: ChainPosition, spans: tuple[StoredSpan, ...], cursor: Cursor) -> ChainPage:
    entries: list[tuple[Entry, Checkpoint]] = []
    faults: list[ChainFault] = []
    closed = place.closed
    for offset, kind, event in stored_entries(spans):
        if closed:
            faults.append(_fault("epoch continued", place, offset))
        if kind == CLOSED:
            closed = True
            continue
        try:
            entry = Entry(read_spans(kind, read_event(kind, event).data))
        except CorruptData as cause:
            faults.append(_fault("entry unreadable", place, offset, str(cause)))
        else:
            entries.append((entry, Checkpoint.of(place.epoch, offset)))
    following = replace(place, cursor=cursor, closed=closed)
    return ChainPage(entries=tuple(entries), faults=tuple(faults), place=following)


def _tip(table: str, place: ChainPosition) -> Steps[Tip | None]:
    return epoch_tip(table, place.partition, place.epoch)


def _begun(table: str, place: ChainPosition) -> Steps[bool]:
    try:
        return (yield from _tip(table, place)) is not None
    except CorruptData:
        return True


def _fault(kind: Kind, place: ChainPosition, offset: int, cause: str = "") -> ChainFault:
    return ChainFault(kind=kind, at=Checkpoint.of(place.epoch, offset), cause=cause)
