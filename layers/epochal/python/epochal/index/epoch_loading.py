"""Reads epochs from the index for an indexer: whole epochs, or only the entries since a version."""

from __future__ import annotations

from epochal.index.entries import epoch_tip, read_entry, stored_entries
from epochal.index.epochs import Epoch
from epochal.index.series import read_series
from epochal.index.tip import Tip, advance, cursor_at, event_bytes, read_event
from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedEpochs:
    """The part of a partition that an indexer holds: the active epoch and its predecessor."""

    active: Epoch
    previous: Epoch | None


def load_newest(table: str, partition: int) -> Steps[LoadedEpochs]:
    """Load a partition's active epoch and its predecessor, starting where the series says it is."""
    series = yield from read_series(table)
    return (yield from load(table, partition, series.active.get(partition, 0)))


def load(table: str, partition: int, epoch: int) -> Steps[LoadedEpochs]:
    """Load the first epoch at or after `epoch` that is not closed, and its predecessor."""
    if epoch > 0:
        return (yield from load_next(table, partition, (yield from _load_epoch(table, partition, epoch - 1))))
    first = yield from _load_epoch(table, partition, 0)
    if not first.closed:
        return LoadedEpochs(active=first, previous=None)
    return (yield from load_next(table, partition, first))


def refresh(table: str, partition: int, loaded: LoadedEpochs, tip: Tip | None = None) -> Steps[LoadedEpochs]:
    """Apply others' new entries to the active epoch; return the loaded epochs, the next ones if it closed.

    If the epoch has been deleted, begin from nothing: only the loaded state says that it ever existed.

    Args:
        tip: Tip of the active epoch, if a refused write has returned it.
    """
    number = loaded.active.number
    if tip is None:
        tip = yield from epoch_tip(table, partition, number)
    if tip is None and loaded.active.tip is not None:
        return (yield from load(table, partition, number))
    yield from _catch_up(table, partition, loaded.active, tip)
    if not loaded.active.closed:
        return loaded
    return (yield from load_next(table, partition, loaded.active))


def load_next(table: str, partition: int, closed: Epoch) -> Steps[LoadedEpochs]:
    """Load the active epoch and its predecessor after an epoch that has closed.

    If the next one has closed too, the series tells how many have.
    """
    previous, active = closed, (yield from _load_epoch(table, partition, closed.number + 1))
    if active.closed:
        reached = (yield from read_series(table)).active.get(partition, 0)
        if reached > active.number + 1:
            previous = yield from _load_epoch(table, partition, reached - 1)
            active = yield from _load_epoch(table, partition, reached)
    while active.closed:
        previous, active = active, (yield from _load_epoch(table, partition, active.number + 1))
    return LoadedEpochs(active=active, previous=previous)


def _load_epoch(table: str, partition: int, number: int) -> Steps[Epoch]:
    """Load one epoch with all of its entries."""
    epoch = Epoch(number=number)
    yield from _catch_up(table, partition, epoch)
    return epoch


def _catch_up(table: str, partition: int, epoch: Epoch, tip: Tip | None = None) -> Steps[None]:
    """Apply to an epoch's state the stored entries that it lacks, and set its Tip and size."""
    if tip is None:
        tip = yield from epoch_tip(table, partition, epoch.number)
    if tip is None:
        return
    cursor = cursor_at(tip, epoch.version)
    while not cursor.at_end:
        pages = yield from advance(table, cursor)
        for _, kind, event in stored_entries(pages.spans):
            epoch.fold(read_entry(read_event(kind, event)))
        cursor = pages.cursor
    epoch.tip = tip
    epoch.size = tip.calved + event_bytes(tip.span)
