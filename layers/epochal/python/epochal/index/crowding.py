"""How crowded a partition is, and how long an indexer rests after a batch so that its next one is larger.

The indexers of all shards append to one Tip, which takes some 60 entries a second before most writes are refused. Each
indexer measures how many entries others write. Above that rate it rests after a batch is written and notified, before
the batch is acknowledged: meanwhile the shard gathers changes, and they share the next entry. All indexers of a
partition measure the same rate, so they rest equally long, and no shard falls behind the others.

Lambda charges for the time of a rest, so it is as short as possible. There is none if it would gather almost nothing,
or if few entries come from others. A longer window of the event source mapping gathers for nothing.
"""

from __future__ import annotations

from typing import Final

from epochal.lazy_dataclasses import dataclass

CALM: Final = 55.0
"""Entries a second of others up to which nobody rests: with a request of 6 ms a third of writes is refused."""

LENGTHENING: Final = 0.1
"""Seconds of rest for each further entry a second. 200 shards rest 1.3 s, at 70 entries a second."""

LONGEST: Final = 5.0
"""Seconds of a rest at most; the average length of the rests may vary by a quarter."""

CROWD: Final = 20
"""Entries of others between two batches from which on a rest is worth it: few busy shards do not rest."""

WORTHWHILE: Final = 3
"""Changes in a batch from which on a rest gathers a batch that is larger. Fewer come too seldom."""

HIGHEST: Final = 200.0
"""Entries a second that one measurement can show at most: twice what a Tip takes. A clock that was set back by nearly
the time between two batches would show thousands, and the average would stay above `CALM` for many batches."""

RECENT: Final = 0.5
"""Weight of the latest batch in the average rate."""


@dataclass(slots=True, kw_only=True)
class Crowding:
    """Measures the entries that others write to a partition, from batch to batch.

    Attributes:
        others: number of entries of others seen since the last batch.
        rate: average number of entries a second that others write.
        rest: seconds to rest after the last batch; 0 if the partition is not crowded.
    """

    others: int = 0
    rate: float = 0.0
    rest: float = 0.0
    _measured: float | None = None

    def count_others(self, entries: int) -> None:
        """Count entries that others have written; a negative number, of an epoch that was deleted, counts as none."""
        self.others += max(0, entries)

    def measure(self, now: float, changes: int) -> None:
        """Update the rate of others' entries, and the seconds of rest, after a batch of `changes` at `now`.

        A clock that has not advanced since the last batch leaves the rate as it is.
        """
        if self._measured is not None and now > self._measured:
            rate = min(HIGHEST, self.others / (now - self._measured))
            self.rate += (rate - self.rate) * RECENT
        crowded = self.others >= CROWD and changes >= WORTHWHILE
        self.rest = min(LONGEST, LENGTHENING * max(0.0, self.rate - CALM)) if crowded else 0.0
        self.others, self._measured = 0, now
