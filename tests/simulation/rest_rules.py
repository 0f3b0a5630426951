"""What must hold of the rests of an indexer, by what others have truly written to a partition.

    never         after the first batch of a process, or with fewer entries of others than `CROWD`, or with fewer
                  changes than `WORTHWHILE`, or where others wrote less than `CALM` a second before each of the last
                  batches
    always        where others wrote more than that before each of the last batches
    how long      as the least and the most of the last rates say, and never longer than `LONGEST`

An average forgets: what was before the last `RECALLED` batches weighs nothing worth mentioning.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from epochal.index import crowding

RECALLED = 8
"""Batches that the average rate is of: of an older one, less than a part in 250 is left."""

TRUSTED = 4
"""Batches after which the average is within a part in 16 of a rate that was the same in each of them."""

FORGOTTEN = 2.0**-RECALLED
"""What is left of a rate after so many batches."""


@dataclass(slots=True)
class RestRules:
    """What an indexer may make of one partition, from batch to batch.

    Attributes:
        least: seconds that it must rest for at least after the last batch.
        most: seconds that it may rest for at most.
    """

    least: float = 0.0
    most: float = 0.0
    _rates: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=RECALLED))
    _measured: float | None = None

    def end_batch(self, now: float, fewest: int, highest: int, changes: int) -> None:
        """Take a batch of `changes` into account, before which others wrote so many entries at least and at most."""
        last, self._measured = self._measured, now
        self.least = self.most = 0.0
        if last is not None and now > last:
            rates = (min(crowding.HIGHEST, count / (now - last)) for count in (fewest, highest))
            lower, upper = rates
            self._rates.append((lower, upper))
        if not self._rates or highest < crowding.CROWD or changes < crowding.WORTHWHILE:
            return
        top = max(upper for _, upper in self._rates) + crowding.HIGHEST * FORGOTTEN
        self.most = length_at(top)
        if fewest >= crowding.CROWD and len(self._rates) >= TRUSTED:
            bottom = min(lower for lower, _ in list(self._rates)[-TRUSTED:])
            self.least = length_at(bottom * (1 - 2.0**-TRUSTED))


def length_at(rate: float) -> float:
    """How long a rest is where others write so many entries a second."""
    return min(crowding.LONGEST, crowding.LENGTHENING * max(0.0, rate - crowding.CALM))
