"""The series `$AppendsIndex-0`: the epoch that each partition has reached, and the partitions of each source.

    Started        {"partition","epoch"}: an event for each epoch that begins
    Snapshotted    {"active":{"<partition>":epoch},"partitions":{"<source>":P}}: an unfold

`active` may be behind the epochs themselves: its readers walk on past closed ones. `refused` {"<source>":[P,"since"]}
is there while an indexer cannot start because it is deployed for another number of partitions. `failing`
{"<source>":["since","last","cause"]} is there after an indexer has failed (`indexer_failures`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from epochal.codec.bodies import decode_inline, encode
from epochal.errors import CorruptData
from epochal.index.checkpoints import SERIES
from epochal.index.tip import Tip, load_tip, read_unfold
from epochal.layout.outcomes import refusing_head
from epochal.layout.registry import base_of
from epochal.layout.streams import EncodedEvent, EncodedUnfold
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.outcomes import Appended
from epochal.plan.ops import Steps

if TYPE_CHECKING:
    from epochal.index.wire_batch import Ids

STARTED: Final = "Started"

SNAPSHOTTED: Final = "Snapshotted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCount:
    """A number of partitions that an indexer is deployed for but the index does not have, and since when."""

    partitions: int
    since: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexerFailure:
    """Why the indexer of a source fails, since when, and when it failed last."""

    since: str
    last: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The content of the series: how far partitions are, and which indexers do not work.

    Attributes:
        active: number of the active epoch, by partition; a missing partition is in epoch 0.
        partitions: number of partitions, by source.
        refused: by source, the other number of partitions that its indexer is deployed for, with which it does not
            start.
        failing: by source, why its indexer failed; the index may have moved on since.
    """

    active: dict[int, int] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    refused: dict[str, RefusedCount] = field(default_factory=dict)
    failing: dict[str, IndexerFailure] = field(default_factory=dict)

    def refusal(self, source: str) -> str:
        """Explain that an indexer is deployed for another number of partitions than the index has; else empty."""
        refused = self.refused.get(source)
        if refused is None:
            return ""
        return (
            f"the indexer has failed since {refused.since}: it is deployed for {refused.partitions} partitions of "
            f"{source}, and the index has {self.partitions[source]}. Deploy {self.partitions[source]} again, "
            "or rebuild the index"
        )

    def reached(self) -> Iterator[tuple[int, int]]:
        """Iterate over all recorded partitions in order, with an epoch that each has reached."""
        for base, count in sorted((base_of(source), count) for source, count in self.partitions.items()):
            for partition in range(base, base + count):
                yield partition, self.active.get(partition, 0)


def read_series(table: str) -> Steps[Series]:
    """Read the series, in one request."""
    return _series_in((yield from load_tip(table, SERIES)))


def start_epoch(table: str, partition: int, epoch: int, ids: Ids) -> Steps[Series]:
    """Record in the series that a partition has reached an epoch, if it is later; return the series."""

    def change(series: Series) -> Series:
        """Raise the partition's epoch in the series."""
        reached = max(epoch, series.active.get(partition, 0))
        return replace(series, active={**series.active, partition: reached})

    body = json.dumps({"partition": partition, "epoch": epoch}, separators=(",", ":")).encode()
    started = EncodedEvent(type=STARTED, data=encode(body), timestamp=ids.timestamp)
    return (yield from change_series(table, change, (started,), ids))


def register(table: str, partitions: Mapping[str, int], ids: Ids) -> Steps[dict[str, int]]:
    """Record new sources' numbers of partitions, and differing ones as refused; return those on record.

    A source that is new is recorded with the given number. For a known source with another number, that number is
    recorded as refused, until the source is registered with the right one.
    """
    series = yield from read_series(table)
    if _with_partitions(series, partitions, ids) != series:
        series = yield from change_series(table, lambda now: _with_partitions(now, partitions, ids), (), ids)
    return series.partitions


def _with_partitions(series: Series, partitions: Mapping[str, int], ids: Ids) -> Series:
    """Return the series with sources registered: new numbers recorded, differing ones refused."""
    recorded = {**partitions, **series.partitions}
    refused = {source: refusal for source, refusal in series.refused.items() if source not in partitions}
    for source, count in partitions.items():
        if count != recorded[source]:
            earlier = series.refused.get(source)
            if earlier is None or earlier.partitions != count:
                earlier = RefusedCount(partitions=count, since=ids.timestamp)
            refused[source] = earlier
    return replace(series, partitions=recorded, refused=refused)


def change_series(
    table: str, change: Callable[[Series], Series], events: tuple[EncodedEvent, ...], ids: Ids
) -> Steps[Series]:
    """Apply a change to the series, then store and return it; apply it anew if others wrote meanwhile.

    Nothing is written if the change has no effect.
    """
    # Programs that only read the feed start without this module.
    from epochal.index.tip_append import append_on  # noqa: PLC0415
    from epochal.index.wire_batch import batch_of  # noqa: PLC0415

    tip = yield from load_tip(table, SERIES)
    while True:
        series = change(_series_in(tip))
        if tip is not None and series == _series_in(tip):
            return series
        batch = batch_of(
            SERIES, events, (_encode_series(series, ids),), etag=ids.etag, append_id=ids.append_id
        )
        result = yield from append_on(table, batch, tip)
        if isinstance(result, Appended):
            return series
        tip = refusing_head(result)


def _series_in(tip: Tip | None) -> Series:
    """Decode the series in a Tip; return an empty one if there is none."""
    for stored in () if tip is None else map(read_unfold, tip.unfolds):
        if stored.type == SNAPSHOTTED:
            return _decode_series(stored)
    return Series()


def _decode_series(stored: EncodedUnfold) -> Series:
    """Decode the stored snapshot of the series; raise `CorruptData` if it is malformed."""
    try:
        fields = json.loads(decode_inline(stored.data))
        active = {int(partition): int(epoch) for partition, epoch in fields["active"].items()}
        partitions = {str(source): int(count) for source, count in fields.get("partitions", {}).items()}
        refused = {
            str(source): RefusedCount(partitions=int(count), since=str(since))
            for source, (count, since) in fields.get("refused", {}).items()
        }
        failing = {
            str(source): IndexerFailure(since=str(since), last=str(last), cause=str(cause))
            for source, (since, last, cause) in fields.get("failing", {}).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptData(f"{SERIES}: its snapshot cannot be read") from error
    return Series(active=active, partitions=partitions, refused=refused, failing=failing)


def _encode_series(series: Series, ids: Ids) -> EncodedUnfold:
    """Encode the series as the unfold that stores it."""
    active = {str(partition): epoch for partition, epoch in sorted(series.active.items())}
    fields: dict[str, Any] = {"active": active, "partitions": series.partitions}
    if series.refused:
        fields["refused"] = {
            source: [record.partitions, record.since] for source, record in series.refused.items()
        }
    if series.failing:
        fields["failing"] = {
            source: [record.since, record.last, record.cause] for source, record in series.failing.items()
        }
    body = json.dumps(fields, separators=(",", ":")).encode()
    return EncodedUnfold(version=0, type=SNAPSHOTTED, data=encode(body), timestamp=ids.timestamp)
