"""Keys of journal and snapshot items, as the original libraries resolve them. This outlives the code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.layout.journal.hashes import Hash, javascript
from epochal.model.aggregates import AggregateId
from epochal.plan.values import AttributeValue, Key, text
from epochal.settings import SHARDS

HEAD: Final = 0
"""Number of the head among an aggregate's snapshots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyResolver:
    """Spreads aggregates over shards: `pkey` = `<type>-<hash mod shards>`, hashed as a library that shares them does.

    Changing `shards` or `hash` makes what is stored unreachable: both belong to the tables.
    """

    shards: int = SHARDS
    hash: Hash = javascript

    def key(self, aggregate: AggregateId, seq_nr: int) -> Key:
        """Primary key of an event in the journal, or of a snapshot."""
        hashed = self.hash(aggregate)
        # What is left of a number below zero is below zero, as in all languages that have such hashes.
        shard = hashed % self.shards if hashed >= 0 else -(-hashed % self.shards)
        return {"pkey": text(f"{aggregate.type}-{shard}"), "skey": text(f"{aggregate}-{seq_nr}")}

    def sort_range(
        self, aggregate: AggregateId, low: str, high: str
    ) -> tuple[str, AttributeValue, AttributeValue]:
        """Sort keys of an aggregate's items from one text to another, and perhaps others' whose value begins with this
        one's. Numbers are unpadded text: 1, 10, 11, 2.
        """
        return ("skey", text(f"{aggregate}-{low}"), text(f"{aggregate}-{high}"))
