"""Finds the place of a moment in a partition's chain of epochs, by the times at which an indexer wrote its entries.

First the epoch is found by the times at which epochs ended, then the entry in the epoch, one item at a time. Both are
binary searches, so the number of requests grows with the logarithm of the chain's length.

Clocks of indexers differ, so times do not always increase. Wherever the search ends, the entry before that place was
written before the moment, by its own clock. So no entry that was written after the moment is skipped, unless two clocks
differ by more than `SKEW`.
"""

from __future__ import annotations

from typing import Final

from epochal.errors import CorruptData, InvalidInput
from epochal.index.checkpoints import Checkpoint
from epochal.index.entries import epoch_tip, is_closed
from epochal.index.series import read_series
from epochal.index.tip import StoredSpan, Tip, find_calf
from epochal.model.moments import PER_SECOND, Ticks, parse_time
from epochal.plan.ops import Steps

SKEW: Final = 60 * PER_SECOND
"""Ticks that are searched further back: clocks of writers and indexers may be wrong by half of it each."""


def find_moment(table: str, partition: int, moment: Ticks) -> Steps[Checkpoint]:
    """Find the checkpoint of a partition's first entry since a minute before `moment`; else its tail.

    It is found by binary search. The minute is `SKEW`, by which clocks may differ.

    Raises:
        CorruptData: an entry is in no item.
    """
    bound = moment - SKEW
    low, high = 0, (yield from read_series(table)).active.get(partition, 0)
    tip = yield from epoch_tip(table, partition, high)
    while is_closed(tip) and _ended_before(tip, bound):
        # Either this was the newest epoch when the series was written, or the moment is after the end.
        low = high = high + 1
        tip = yield from epoch_tip(table, partition, high)
    while low < high:
        middle = (low + high) // 2
        middle_tip = yield from epoch_tip(table, partition, middle)
        if middle_tip is None or _ended_before(middle_tip, bound):
            low = middle + 1
        else:
            high, tip = middle, middle_tip
    return Checkpoint.of(high, 0 if tip is None else (yield from _entry_since(table, tip, bound)))


def _entry_since(table: str, tip: Tip, bound: int) -> Steps[int]:
    """Find the offset of an entry at or after a time whose predecessor is before it, by binary search."""
    low, high = 0, tip.version
    while low < high:
        middle = high - 1 if high > tip.span.base else (low + high) // 2
        span = tip.span if middle >= tip.span.base else (yield from find_calf(table, tip.stream, middle))
        if span is None:
            raise CorruptData(f"{tip.stream}: entry {middle} is in no item, but was not pruned")
        first, end = max(span.base, low), min(span.next, high)
        first_after = next(
            (position for position in range(first, end) if not _is_before(span, position, bound)), end
        )
        if first < first_after < end:
            return first_after
        low, high = (low, first) if first_after == first else (first_after, high)
    return low


def _ended_before(tip: Tip | None, bound: int) -> bool:
    """Return whether a whole epoch was written before a time; one without a time was not."""
    return tip is not None and bool(tip.span.events) and _is_before(tip.span, tip.span.next - 1, bound)


def _is_before(span: StoredSpan, index: int, bound: int) -> bool:
    """Return whether an entry was written before a time; one without a readable time was not."""
    try:
        return parse_time(span.timestamp(index - span.base)) < bound
    except InvalidInput:
        return False  # another program's entry, with no time that can be read
