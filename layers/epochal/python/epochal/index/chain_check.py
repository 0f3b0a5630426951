"""Walks a partition's whole chain of epochs, even if it is broken: reports unreadable parts, and continues.

A reader of the feed stops where something is wrong (`index.feed_walk`); a check of the index must also read what
follows. The epochs are authoritative; the series only says which of them should exist.

    no Tip              the end of the chain; or a lost epoch, if the series or the next epoch shows that there was more
    not closed          the end of the chain; or an epoch left open, if the next one has begun
    unreadable          reported once for the epoch, or for each entry that cannot be read
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, Literal

from epochal.errors import CorruptData
from epochal.index.checkpoints import Checkpoint
from epochal.index.entries import CLOSED, Entry, epoch_tip, read_own_metadata, read_spans, stored_entries
from epochal.index.tip import StoredSpan, Tip, TipCursor, advance, cursor_at, read_event
from epochal.lazy_dataclasses import dataclass, replace
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
    """Something that is wrong with an index.

    Attributes:
        kind: what is wrong.
        source: source of the feed; `index` for what belongs to none.
        partition: partition of the feed, if it belongs to one.
        stream: stream of the events; for an unreadable head its key, for a checkpoint its group.
        index: index of the first event concerned.
        end: index after the last event concerned.
        at: place in the chain.
        cause: further details.
        key: key of the head that shows what is missing.
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
        """How to fix it: repair, rebuild, or look."""
        return REMEDIES[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPosition:
    """How far a walk over a partition's chain has come.

    Attributes:
        partition: partition that is walked.
        epoch: epoch that is being read.
        reached: epoch that the partition has reached according to the series.
        cursor: position within the epoch; None before its Tip has been read.
        closed: whether the epoch's `Closed` entry has been read.
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
    """Something that is wrong at a place in the chain."""

    kind: FindingKind
    at: Checkpoint
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPage:
    """Entries with their checkpoints, faults, and the next position; None at the end of the chain."""

    entries: tuple[tuple[Entry, Checkpoint], ...] = ()
    faults: tuple[ChainFault, ...] = ()
    place: ChainPosition | None


def step(table: str, place: ChainPosition) -> Steps[ChainPage]:
    """Read the next page of a partition's chain; an unreadable epoch gives a fault and is passed over."""
    try:
        return (yield from _step(table, place))
    except CorruptData as cause:
        index = 0 if place.cursor is None else place.cursor.at
        fault = _fault_at("epoch unreadable", place, index, f"{type(cause).__name__}: {cause}")
        has_next = place.epoch < place.reached or (yield from _has_begun(table, place.following))
        return ChainPage(faults=(fault,), place=place.following if has_next else None)


def _step(table: str, place: ChainPosition) -> Steps[ChainPage]:
    """Read the next page of an epoch's entries; at its end, go to the next epoch, or end the chain.

    The epoch's Tip is read first if necessary.
    """
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
    """Return an empty page for an epoch without a Tip: at the chain's end, or with the fault `epoch lost`."""
    if place.epoch >= place.reached and not (yield from _has_begun(table, place.following)):
        return ChainPage(place=None)
    # The next epoch has begun, so this one was there before: if it is not there now, it is gone.
    if (yield from _read_tip(table, place)) is not None:
        return ChainPage(place=place)
    return ChainPage(faults=(_fault_at("epoch lost", place, 0),), place=place.following)


def _at_end(table: str, place: ChainPosition, cursor: TipCursor) -> Steps[ChainPage]:
    """Return an empty page at an epoch's end: where to go on, and a fault if the epoch was left open."""
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
    """Decode a page's entries except `Closed`; add a fault for each that is unreadable or comes after it."""
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
    """Read the Tip of the epoch at a position."""
    return epoch_tip(table, place.partition, place.epoch)


def _has_begun(table: str, place: ChainPosition) -> Steps[bool]:
    """Return whether an epoch has a Tip, even one that cannot be read."""
    try:
        return (yield from _read_tip(table, place)) is not None
    except CorruptData:
        return True


def _fault_at(kind: FindingKind, place: ChainPosition, offset: int, cause: str = "") -> ChainFault:
    """Build a fault at an offset of the epoch."""
    return ChainFault(kind=kind, at=Checkpoint.of(place.epoch, offset), cause=cause)
