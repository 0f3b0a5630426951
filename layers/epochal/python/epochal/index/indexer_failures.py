"""Records why indexers fail, in the series (`epochs`), so that whoever looks at the index can see it.

    a batch fails              the cause is written, with when that began
    the same batch passes      the process that wrote the cause removes it
    the index moves on         the cause is out of date after a while: the process that wrote it may be gone

While an indexer works, nothing is read or written for this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from epochal.errors import InvalidInput
from epochal.index.feed_walk import read_last_write_time
from epochal.index.series import IndexerFailure, Series, change_series
from epochal.index.wire_batch import Ids
from epochal.layout.registry import base_of
from epochal.lazy_dataclasses import replace
from epochal.model.moments import PER_SECOND, Ticks, parse_time
from epochal.plan.ops import Steps

GOES_ON: Final = 300
"""Seconds within which a further failure counts as the same one, whatever was indexed meanwhile: Lambda repeats a batch
within a minute or two, and other shards' batches are indexed beside it."""

MAX_CAUSE: Final = 400
"""Characters of a cause that are kept: whoever reads the series reads it too."""


def record_failures(table: str, causes: Mapping[str, str], ids: Ids) -> Steps[Series]:
    """Record why and since when indexing of these sources fails; return the changed series."""

    def change(series: Series) -> Series:
        """Return the series with these failures; each keeps the `since` of a recent one of its source."""
        failing = dict(series.failing)
        for source, cause in causes.items():
            before = failing.get(source)
            began = before.since if before is not None and _goes_on(before, ids.timestamp) else ids.timestamp
            failing[source] = IndexerFailure(since=began, last=ids.timestamp, cause=cause[:MAX_CAUSE])
        return replace(series, failing=failing)

    return (yield from change_series(table, change, (), ids))


def forget_failures(table: str, sources: Collection[str], ids: Ids) -> Steps[Series]:
    """Remove the recorded failures of these sources; return the changed series."""

    def change(series: Series) -> Series:
        remaining = {source: failure for source, failure in series.failing.items() if source not in sources}
        return replace(series, failing=remaining)

    return (yield from change_series(table, change, (), ids))


def indexer_failures(table: str, series: Series, now: Ticks) -> Steps[dict[str, str]]:
    """Return, by source, why its indexer adds nothing to the index, if that is recorded and still holds.

    No request is made if nothing is recorded.
    """
    failures: dict[str, str] = {}
    for source in series.refused.keys() | series.failing.keys():
        failure = series.failing.get(source)
        if source in series.refused:
            failures[source] = series.refusal(source)
        elif failure is not None and (yield from _is_current(table, series, source, failure, now)):
            failures[source] = (
                f"the indexer has failed since {failure.since}, last at {failure.last}: {failure.cause}"
            )
    return failures


def _is_current(table: str, series: Series, source: str, failure: IndexerFailure, now: Ticks) -> Steps[bool]:
    """Return whether a failure still holds: it is recent, or nothing of its source was indexed since."""
    last = _time_of(failure.last)
    if now <= last + GOES_ON * PER_SECOND:
        return True
    base = base_of(source)
    for partition in range(base, base + series.partitions.get(source, 0)):
        written = yield from read_last_write_time(table, partition, series.active.get(partition, 0))
        if written is not None and written > last:
            return False
    return True


def _goes_on(before: IndexerFailure, now: str) -> bool:
    """Return whether a failure now continues an earlier one."""
    return _time_of(now) <= _time_of(before.last) + GOES_ON * PER_SECOND


def _time_of(timestamp: str) -> Ticks:
    """Parse a stored time; an unreadable one counts as 0."""
    try:
        return parse_time(timestamp)
    except InvalidInput:
        return Ticks(0)  # an item of another program
