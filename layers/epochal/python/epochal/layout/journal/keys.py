"""Keys of journal and snapshot items, as the original libraries resolve them. This outlives the code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.errors import InvalidInput
from epochal.model.aggregates import AggregateId, Hash
from epochal.plan.values import AttributeValue, Key, text
from epochal.settings import LIBRARY, SHARDS

HEAD: Final = 0
"""Number of the head among an aggregate's snapshots."""

_32: Final = 0xFFFF_FFFF


def times_31(text: str) -> int:
    """Over UTF-16 code units, `h = 31 * h + unit` in 32 bits, read as unsigned."""
    total = 0
    units = text.encode("utf-16-le")
    for low, high in zip(units[::2], units[1::2], strict=True):
        total = (31 * total + (high << 8 | low)) & _32
    return total


def javascript(aggregate: AggregateId) -> int:
    """Our default, and the JavaScript library's."""
    return times_31(str(aggregate))


def hash_of(given: str | Hash, field: str = "keys") -> Hash:
    """The hash that a library's name stands for; raises `InvalidInput` of `field` for any other name."""
    if not isinstance(given, str):
        return given
    if given == "dotnet":
        raise InvalidInput(
            field, ".NET's own hash is another in every process: give the hash that its application was given"
        )
    if given == LIBRARY:
        return javascript
    from epochal.layout.journal.hashes import HASHES  # noqa: PLC0415  few need them, and functions start without

    if given not in HASHES:
        raise InvalidInput(field, f"must be one of {', '.join(HASHES)}, or a hash of aggregates")
    return HASHES[given]


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
