"""Compares heads of streams with the index by a few requests: does the index lack events, whatever its indexer says?

Where the requests reach the end of the table, every head is compared. Of a larger table only those heads are that were
written after the index got its last entry: they are lacking, wherever the indexer stands still.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from epochal.care.heads import ScannedHead, heads_by_partition, read_heads, scan
from epochal.care.mender import Mender
from epochal.errors import CorruptData
from epochal.index.feed_walk import read_last_write_time
from epochal.index.moments import SKEW
from epochal.index.series import Series
from epochal.layout.source import Source
from epochal.lazy_dataclasses import dataclass
from epochal.model.moments import Ticks

REQUESTS: Final = 4
"""Scans of a table, of 1 MB each: 512 read units at most, which is a hundredth of a cent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadComparison:
    """How much of a source the index lacks.

    Attributes:
        streams: number of heads that were read.
        whole: True where these are all the heads of the source.
        lacking: number of streams of which the index lacks something.
        events: number of events that it lacks of these streams, without those that are pruned.
        oldest: the earliest time at which one of these streams was last written; None where the layout has none.
    """

    streams: int
    whole: bool
    lacking: int
    events: int
    oldest: Ticks | None


def compare_heads(mender: Mender, source: Source, series: Series, requests: int = REQUESTS) -> HeadComparison:
    """Compare heads that at most `requests` scans read with the index; return counts of what it lacks.

    Raises:
        CorruptData: the newest epochs of a partition cannot be read.
    """
    heads: list[ScannedHead] = []
    after, complete = None, False
    for _ in range(requests):
        page = mender.driver.ask(scan(source, after=after, consistent=False))
        heads += read_heads(source, page.items)
        after, complete = page.last, page.last is None
        if complete:
            break
    suspects = heads if complete else _written_since(mender, source, series, heads)
    lagging = [
        stream
        for partition, heads_there in heads_by_partition(source, suspects).items()
        for stream in mender.behind(source, partition, heads_there)
    ]
    times = [time for stream in lagging if (time := _written(source, stream.head)) is not None]
    return HeadComparison(
        streams=len(heads),
        whole=complete,
        lacking=len(lagging),
        events=sum(max(0, stream.end - stream.index) for stream in lagging),
        oldest=min(times, default=None),
    )


def _written_since(
    mender: Mender, source: Source, series: Series, heads: Iterable[ScannedHead]
) -> list[ScannedHead]:
    """Keep the heads that were, or may have been, written after their partition's last entry in the index."""
    suspects: list[ScannedHead] = []
    for partition, heads_there in heads_by_partition(source, heads).items():
        epoch = series.active.get(partition, 0)
        last = mender.driver.run(read_last_write_time(mender.index_table, partition, epoch)) or 0
        times = ((head, _written(source, head)) for head in heads_there)
        suspects += (head for head, time in times if time is None or time > last - SKEW)
    return suspects


def _written(source: Source, head: ScannedHead) -> Ticks | None:
    """Return when a head's stream was last written; None where it does not say or cannot be read."""
    try:
        return source.written(head.image)
    except CorruptData:
        return None
