"""Writes new events of streams to the index, whether stream records or heads tell of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from epochal.index.epochs import STANDARD, EpochLimits
from epochal.index.ingestion import Indexing, Ingested, Partition
from epochal.index.series import Ids
from epochal.layout.port import Change, Heal
from epochal.plan.ops import Steps
from epochal.store.driver import Driver

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWriter:
    """Writes to the epochs of partitions. Keeps what it has read of them between calls.

    Attributes:
        driver: runs requests on the index and on the sources' tables.
        index_table: where epochs, marks and the series are.
        limits: when an epoch closes; the same for all who write to one index.
    """

    driver: Driver
    index_table: str
    limits: EpochLimits = STANDARD
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom
    _held: dict[int, Partition] = field(default_factory=dict)

    def ingest(self, heal: Heal, partition: int, changes: list[Change]) -> Ingested:
        """Index the changes of a partition. Raises `CorruptData` where its newest epochs cannot be read."""
        indexing = Indexing(
            table=self.index_table, heal=heal, ids=self.ids, limits=self.limits, pause=self._pause
        )
        return self.on_partition(partition, indexing.ingest, changes)

    def on_partition(self, number: int, steps: Callable[[Partition, list[S]], Steps[T]], given: list[S]) -> T:
        """Run steps on what is held of a partition. After an error that is read anew, since it may be incomplete."""
        held = self._held.pop(number, None) or Partition(number=number)
        outcome = self.driver.run(steps(held, given))
        self._held[number] = held
        return outcome

    def ids(self) -> Ids:
        """Identity of a write to the index."""
        return Ids.drawn(self.now(), self.fresh)

    def _pause(self, longest: float) -> bool:
        """Wait for a random part of so many seconds (full jitter); whether there was anything to wait for."""
        if longest:
            self.driver.sleep(longest * self.driver.luck())
        return longest > 0
