"""A partition's chain of epochs, as its three readers see it: the feed, the indexer, and care.

    reader      module              begins at        stops
    feed        `feed_walk`         a checkpoint     at the tail, and where something cannot be read
    indexer     `epoch_loading`     the series       at the first epoch that is open
    care        `chain_check`       epoch 0          at the end: what cannot be read is told and passed over

Each epoch is a stream of the tips layout. Its last event is `Closed`, and then the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from epochal.index.entries import CLOSED
from epochal.index.names import epoch_stream
from epochal.index.stored import StoredSpan, Tip, load_tip
from epochal.plan.ops import Steps
from epochal.plan.values import AttributeValue


def epoch_tip(table: str, partition: int, epoch: int) -> Steps[Tip | None]:
    """The Tip of an epoch, strongly consistent; None where the epoch has not begun."""
    return load_tip(table, epoch_stream(partition, epoch))


def is_closed(tip: Tip | None) -> bool:
    """Whether the epoch with this Tip has ended."""
    return tip is not None and tip.span.types[-1:] == (CLOSED,)


def stored_entries(spans: Iterable[StoredSpan]) -> Iterator[tuple[int, str, AttributeValue]]:
    """Entries of an epoch and its `Closed`, not decoded: offset, type, event."""
    for span in spans:
        for offset, (kind, event) in enumerate(span.pairs, span.base):
            yield offset, kind, event
