"""Keys of journal and snapshot items, as the original libraries resolve them. This outlives the code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from epochal.model.aggregates import AggregateId
from epochal.plan.values import AttributeValue, Key, text
from epochal.settings import SHARDS

HEAD: Final = 0
"""Number of the head among an aggregate's snapshots."""

Hash = Callable[[str], int]


def default_hash(text: str) -> int:
    """The libraries' default: over UTF-16 code units, `h = 31 * h + unit` in 32 bits, read as unsigned."""
    total = 0
    units = text.encode("utf-16-le")
    for low, high in zip(units[::2], units[1::2], strict=True):
        total = (31 * total + (high << 8 | low)) & 0xFFFFFFFF
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyResolver:
    """Spreads aggregates over shards: `pkey` = `<type>-<hash(aid) mod shards>`.

    Changing `shards` or `hash` makes what is stored unreachable: both belong to the tables.
    """

    shards: int = SHARDS
    hash: Hash = default_hash

    def key(self, aggregate: AggregateId, seq_nr: int) -> Key:
        """Primary key of an event in the journal, or of a snapshot."""
        shard = self.hash(str(aggregate)) % self.shards
        return {"pkey": text(f"{aggregate.type}-{shard}"), "skey": text(f"{aggregate}-{seq_nr}")}

    def sort_range(
        self, aggregate: AggregateId, low: str, high: str
    ) -> tuple[str, AttributeValue, AttributeValue]:
        """Sort keys of an aggregate's items from one text to another, and perhaps others' whose value begins with this
        one's. Numbers are unpadded text: 1, 10, 11, 2.
        """
        return ("skey", text(f"{aggregate}-{low}"), text(f"{aggregate}-{high}"))
