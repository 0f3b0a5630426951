"""When events came, and how many: the entries of an index, each with the time that it was written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from epochal.index.checkpoints import Checkpoint
from epochal.index.entries import read_spans
from epochal.index.feed_walk import FeedWalk, PlacedEntry, step
from epochal.index.tip import read_data
from epochal.layout.changes import Span
from epochal.lazy_dataclasses import dataclass
from epochal.store.driver import Driver

PAGE: Final = 200
"""Entries asked for at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An entry: the events that it tells of, and when it was written, in seconds since 1970."""

    seconds: float
    spans: tuple[Span, ...]

    @property
    def events(self) -> int:
        """Number of events."""
        return sum(len(span.types) for span in self.spans)


def arrivals(driver: Driver, table: str, partition: int, start: Checkpoint) -> Iterator[Arrival]:
    """Yield the index entries of a partition from `start` to the tail, with the time each was written.

    Each entry is read when it is reached.

    Raises:
        BeyondTheEnd: it is of another index.
        CorruptData: an entry cannot be read.
    """
    walk, at_tail = FeedWalk(partition=partition, at=start), False
    while not at_tail:
        page = driver.run(step(table, walk, PAGE))
        yield from map(_arrival, page.placed)
        walk, at_tail = page.walk, page.at_tail


def _arrival(placed: PlacedEntry) -> Arrival:
    return Arrival(seconds=placed.seconds, spans=read_spans(placed.kind, read_data(placed.event)))
