"""`$AppendsIndex-0`: the epoch each partition has reached, and the partitions of each source.

    Started        {"partition","epoch"}                                      one for each epoch begun
    Snapshotted    unfold {"active":{"<partition>":epoch},"partitions":{"<source>":P}}

`active` may lag behind the truth, which is the epochs themselves: its readers walk on past closed ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from epochal.codec.bodies import decode_inline, encode
from epochal.errors import CorruptData
from epochal.index.checkpoints import SERIES
from epochal.index.tip import Tip, load_tip, read_unfold
from epochal.layout.port import base_of
from epochal.layout.streams import EncodedEvent, EncodedUnfold, Written
from epochal.plan.ops import Steps

if TYPE_CHECKING:
    from epochal.index.tip_append import Ids

STARTED: Final = "Started"
SNAPSHOTTED: Final = "Snapshotted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What the series says.

    Attributes:
        active: epoch by partition; a partition that is missing is in epoch 0.
        partitions: number of partitions by source.
    """

    active: dict[int, int] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)

    def reached(self) -> Iterator[tuple[int, int]]:
        """Every partition on record, in order, with the epoch that it has reached, or an earlier one."""
        for base, count in sorted((base_of(source), count) for source, count in self.partitions.items()):
            for partition in range(base, base + count):
                yield partition, self.active.get(partition, 0)


def read_series(table: str) -> Steps[Series]:
    """The series, in one request."""
    return _series((yield from load_tip(table, SERIES)))


def start_epoch(table: str, partition: int, epoch: int, ids: Ids) -> Steps[Series]:
    """Say that a partition has reached an epoch, unless it has got further already."""

    def change(series: Series) -> Series:
        reached = max(epoch, series.active.get(partition, 0))
        return Series(active={**series.active, partition: reached}, partitions=series.partitions)

    body = json.dumps({"partition": partition, "epoch": epoch}, separators=(",", ":")).encode()
    started = EncodedEvent(type=STARTED, data=encode(body), timestamp=ids.timestamp)
    return (yield from _change(table, change, (started,), ids))


def register(table: str, partitions: Mapping[str, int], ids: Ids) -> Steps[dict[str, int]]:
    """The number of partitions on record for each source; one met for the first time is recorded as given."""
    series = yield from read_series(table)
    if not partitions.keys() <= series.partitions.keys():
        series = yield from _change(table, lambda now: _registered(now, partitions), (), ids)
    return series.partitions


def _registered(series: Series, partitions: Mapping[str, int]) -> Series:
    return Series(active=series.active, partitions={**partitions, **series.partitions})


def _change(
    table: str, change: Callable[[Series], Series], events: tuple[EncodedEvent, ...], ids: Ids
) -> Steps[Series]:
    """Apply a change that may be applied again, until it is stored or nothing is left of it."""
    # What only reads the feed starts without it.
    from epochal.index.tip_append import append_on, batch_of  # noqa: PLC0415

    tip = yield from load_tip(table, SERIES)
    while True:
        series = change(_series(tip))
        if tip is not None and series == _series(tip):
            return series
        batch = batch_of(SERIES, events, (_unfold(series, ids),), etag=ids.etag, append_id=ids.append_id)
        result = yield from append_on(table, batch, tip)
        if isinstance(result, Written):
            return series
        tip = result.head


def _series(tip: Tip | None) -> Series:
    for stored in () if tip is None else map(read_unfold, tip.unfolds):
        if stored.type == SNAPSHOTTED:
            return _decode(stored)
    return Series()


def _decode(stored: EncodedUnfold) -> Series:
    try:
        fields = json.loads(decode_inline(stored.data))
        active = {int(partition): int(epoch) for partition, epoch in fields["active"].items()}
        partitions = {str(source): int(count) for source, count in fields.get("partitions", {}).items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptData(f"{SERIES}: its snapshot is not one") from error
    return Series(active=active, partitions=partitions)


def _unfold(series: Series, ids: Ids) -> EncodedUnfold:
    active = {str(partition): epoch for partition, epoch in sorted(series.active.items())}
    body = json.dumps({"active": active, "partitions": series.partitions}, separators=(",", ":")).encode()
    return EncodedUnfold(version=0, type=SNAPSHOTTED, data=encode(body), timestamp=ids.timestamp)
