"""What a stage chooses of aggregates, and what it is told to functions (`epochal.settings`)."""

from __future__ import annotations

from epochal.declaration import Names, Number, OneOf, of_tables, setting
from epochal.lazy_dataclasses import dataclass
from epochal.settings import EVENTS

LIBRARY = "javascript"
"""The library of event-store-adapter whose keys and payloads aggregates have by default."""

LIBRARIES = (LIBRARY, "rust", "go", "java", "php")
"""The libraries of event-store-adapter that aggregates may be shared with."""

PAYLOADS = (*LIBRARIES, "plain")
"""Forms of payloads: those of the libraries, and one that names no type."""

SHARDS = 64
"""Default shards of aggregates: those of event-store-adapter's libraries, which may share the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterOptions:
    """Settings of aggregates, by their names."""

    # With other keys nothing that is stored is found. A shard is one value of a partition key: more than 10,000 spread
    # nothing any further.
    journal_shards: int = of_tables(SHARDS, Number(most=10_000), "Shards of aggregates' keys", EVENTS)
    journal_keys: str = of_tables(
        LIBRARY, OneOf(of=LIBRARIES), "Library by whose hash aggregates' keys are made", EVENTS
    )
    journal_serializer: str = of_tables(
        LIBRARY, OneOf(of=PAYLOADS), "Library as which aggregates are written", EVENTS
    )
    aggregate_types: tuple[str, ...] = of_tables(
        (), Names(), "Types of aggregates, separated by commas; those that hold - must be declared", EVENTS
    )
    # Each append with a snapshot looks for the copies that are beyond these.
    snapshot_copies: int = setting(
        0, Number(least=0, most=1_000), "Snapshots of an aggregate kept beside its head", ("append",)
    )
    snapshot_ttl_days: int = setting(
        0,
        Number(least=0, most=3_650),
        "Days after which snapshots beyond these expire; 0 deletes them at once",
        ("append",),
    )
