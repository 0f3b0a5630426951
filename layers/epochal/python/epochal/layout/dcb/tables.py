"""The tables of tagged events (FORMATS §3). This outlives the code: a change here needs a migration."""

from __future__ import annotations

from typing import Final

from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec

_PK = KeyAttribute(name="pk", type="S")
_SK = KeyAttribute(name="sk", type="S")

EVENTS: Final = TableSpec(
    kind="events",
    help="Tagged events",
    partition=_PK,
    sort=_SK,
    indexes=(
        IndexSpec(
            name="GSI1",
            partition=KeyAttribute(name="gsi1pk", type="S"),
            sort=KeyAttribute(name="sortableUniqueId", type="S"),
        ),
    ),
    ttl="ttl",
)
"""Tagged events, an item each."""

TAGS: Final = TableSpec(
    kind="tags",
    help="Heads and entries of tags",
    partition=_PK,
    sort=_SK,
    indexes=(
        IndexSpec(
            name="GSI1",
            partition=KeyAttribute(name="tagGroup", type="S"),
            sort=KeyAttribute(name="tagString", type="S"),
            keys_only=True,
        ),
    ),
    stream=True,
)
"""The head of each tag, and an entry for each of its events."""
