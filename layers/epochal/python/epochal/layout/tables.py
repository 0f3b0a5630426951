"""The tables of every layout (FORMATS). This outlives the code: a change here needs a migration."""

from __future__ import annotations

from typing import Final

from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec

_P = KeyAttribute(name="p", type="S")
_I = KeyAttribute(name="i", type="N")

TIPS: Final = TableSpec(kind="tips", partition=_P, sort=_I, ttl="ttl", stream=True)
"""Streams of events as tips and calves. `ttl` is set on idempotency records only."""

INDEX: Final = TableSpec(kind="index", partition=_P, sort=_I, stream=True)
"""The feed: epochs, marks and reader checkpoints, in the layout of tips."""

_PKEY = KeyAttribute(name="pkey", type="S")
_SKEY = KeyAttribute(name="skey", type="S")
_AID = KeyAttribute(name="aid", type="S")
_SEQ_NR = KeyAttribute(name="seq_nr", type="N")

JOURNAL: Final = TableSpec(
    kind="journal",
    partition=_PKEY,
    sort=_SKEY,
    indexes=(IndexSpec(name="journal-aid-index", partition=_AID, sort=_SEQ_NR),),
)
"""Events of aggregates, an item each."""

SNAPSHOT: Final = TableSpec(
    kind="snapshot",
    partition=_PKEY,
    sort=_SKEY,
    indexes=(
        IndexSpec(name="snapshot-aid-index", partition=_AID, sort=_SEQ_NR),
        IndexSpec(
            name="snapshot-active-ttl-index",
            partition=_AID,
            sort=KeyAttribute(name="active_ttl_seq_nr", type="N"),
            keys_only=True,
        ),
    ),
    ttl="ttl",
    stream=True,
)
"""The head of each aggregate (number 0), and kept copies of its snapshots."""

_PK = KeyAttribute(name="pk", type="S")
_SK = KeyAttribute(name="sk", type="S")

EVENTS: Final = TableSpec(
    kind="events",
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

PROJECTION_STATES: Final = TableSpec(kind="projection-states", partition=_PK, sort=_SK)
"""States of projections, one for each version of each."""

ARCHIVE: Final = TableSpec(kind="archive", partition=_P, sort=_I)
"""Streams in the layout of tips, as copied before they were pruned: no part of a store that does without."""

READ_MODELS: Final = TableSpec(kind="read-models", partition=_PK, sort=_SK)
"""Read models of reactions: no part of the store, which any deployment can do without."""

ALL: Final = (TIPS, INDEX, JOURNAL, SNAPSHOT, EVENTS, TAGS, PROJECTION_STATES)
