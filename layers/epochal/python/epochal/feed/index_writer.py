"""Writes to the index: keeps the state of partitions between calls, and notifies reactions of those that have moved.

Both the indexer and repairs of the index write through it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.epochs import STANDARD, EpochLimits
from epochal.index.ingestion import Indexing, Ingested, Partition, Times, no_times
from epochal.index.wire_batch import Ids
from epochal.layout.changes import Change
from epochal.layout.healing import Heal
from epochal.lazy_dataclasses import dataclass, field
from epochal.plan.ops import Steps
from epochal.store.driver import Driver

S = TypeVar("S")
T = TypeVar("T")


def publish_nothing(_positions: Mapping[int, Checkpoint]) -> None:
    """Publish nothing: the default if no reaction is to be notified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWriter:
    """Writes to the epochs of partitions, and keeps what it has read of them between calls.

    Attributes:
        driver: runs requests on the index and on the sources' tables.
        index_table: table of epochs, marks and the series.
        limits: when an epoch closes; the same for all who write to one index.
        now: returns nanoseconds since 1970.
        fresh: returns random bytes.
        publish: notifies reactions of the positions of partitions.
    """

    driver: Driver
    index_table: str
    limits: EpochLimits = STANDARD
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom
    publish: Callable[[Mapping[int, Checkpoint]], object] = publish_nothing
    _held: dict[int, Partition] = field(default_factory=dict)
    _notified: dict[int, Checkpoint] = field(default_factory=dict)
    _pending_notices: dict[int, Checkpoint] = field(default_factory=dict)

    def ingest(self, heal: Heal, partition: int, changes: list[Change], times: Times = no_times) -> Ingested:
        """Index a partition's changes and return the result; raise `CorruptData` if its epochs are unreadable."""
        indexing = Indexing(
            table=self.index_table, heal=heal, ids=self.ids, limits=self.limits, pause=self._pause
        )
        ingested = self.on_partition(partition, partial(indexing.ingest, times=times), changes)
        held = self._held[partition]
        held.crowding.measure(self.driver.clock(), len(changes))
        position = held.position
        if self._notified.get(partition, BEGINNING) != position:
            self._pending_notices[partition] = position
        return ingested

    def notify(self) -> int:
        """Notify reactions of partitions with new entries; return the number of these partitions.

        Another process may have written the entries and died before it notified anyone. What cannot be published is
        published the next time.
        """
        positions = dict(self._pending_notices)
        if positions:
            self.publish(positions)
            self._notified.update(positions)
            self._pending_notices.clear()
        return len(positions)

    def rest(self, partitions: Iterable[int], deadline: float = math.inf) -> float:
        """Sleep after a batch if one of its partitions is crowded, not past `deadline`; return the seconds.

        The length varies, so that indexers do not go on at the same moment. It is at most half of the time until
        `deadline`, a reading of the driver's clock at which the process must have acknowledged the batch.
        """
        seconds = max((self._held[number].crowding.rest for number in partitions), default=0.0)
        if seconds:
            seconds *= 0.75 + self.driver.luck() / 2
            seconds = min(seconds, (deadline - self.driver.clock()) / 2)
        if seconds <= 0:
            return 0.0
        self.driver.sleep(seconds)
        return seconds

    def on_partition(
        self, number: int, steps: Callable[[Partition, list[S]], Steps[T]], changes: list[S]
    ) -> T:
        """Run steps on a partition's cached state, and return their result; an error drops that state."""
        held = self._held.pop(number, None) or Partition(number=number)
        outcome = self.driver.run(steps(held, changes))
        self._held[number] = held
        return outcome

    def ids(self) -> Ids:
        """Draw the identity of a write to the index."""
        return Ids.drawn(self.now(), self.fresh)

    def _pause(self, longest: float) -> bool:
        """Wait for a random part of so many seconds (full jitter); return whether there was a wait."""
        if longest:
            self.driver.sleep(longest * self.driver.luck())
        return longest > 0
