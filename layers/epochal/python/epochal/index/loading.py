"""Reading epochs back: whole ones for an indexer, what is new since a version, or the entries from a
checkpoint on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from epochal.index.entries import Entry, read_entry
from epochal.index.epochs import Epoch
from epochal.index.names import epoch_stream
from epochal.layout.tips.append import read
from epochal.layout.tips.items import Span, event_bytes, read_event
from epochal.layout.tips.reading import advance, stand
from epochal.plan.ops import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What an indexer holds of one partition: the active epoch and its predecessor."""

    active: Epoch
    previous: Epoch | None


def load(table: str, partition: int, epoch: int) -> Steps[Loaded]:
    """The first epoch at or after `epoch` that is not closed, and the one before it."""
    previous = None
    if epoch > 0:
        previous = yield from _load_epoch(table, partition, epoch - 1)
    active = yield from _load_epoch(table, partition, epoch)
    while active.closed:
        previous, active = active, (yield from _load_epoch(table, partition, active.number + 1))
    return Loaded(active=active, previous=previous)


def refresh(table: str, partition: int, loaded: Loaded) -> Steps[Loaded]:
    """Take in what others have written since; move on where they closed the epoch."""
    yield from _catch_up(table, partition, loaded.active)
    if not loaded.active.closed:
        return loaded
    return (yield from load_next(table, partition, loaded.active))


def load_next(table: str, partition: int, closed: Epoch) -> Steps[Loaded]:
    """The state after an epoch that has closed."""
    following = yield from load(table, partition, closed.number + 1)
    if following.active.number == closed.number + 1:
        # The predecessor is at hand already; `load` read it again only where more epochs have closed since.
        return Loaded(active=following.active, previous=closed)
    return following


def _load_epoch(table: str, partition: int, number: int) -> Steps[Epoch]:
    epoch = Epoch(number=number)
    yield from _catch_up(table, partition, epoch)
    return epoch


def _catch_up(table: str, partition: int, epoch: Epoch) -> Steps[None]:
    """Fold into `epoch` the entries that it lacks."""
    tip = yield from read(table, epoch_stream(partition, epoch.number))
    if tip is None:
        return
    cursor = stand(tip, epoch.version)
    while not cursor.at_end:
        pages = yield from advance(table, cursor)
        for entry in entries(pages.spans):
            epoch.fold(entry)
        cursor = pages.cursor
    epoch.known = tip
    epoch.size = tip.calved + event_bytes(tip.span)


def entries(spans: tuple[Span, ...]) -> Iterator[Entry | None]:
    """Decode the entries of an epoch; None is `Closed`."""
    for span in spans:
        for kind, event in span.pairs:
            yield read_entry(read_event(kind, event))
