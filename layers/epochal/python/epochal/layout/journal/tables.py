"""The tables of aggregates (FORMATS §2). This outlives the code: a change here needs a migration."""

from __future__ import annotations

from typing import Final

from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec

_PKEY = KeyAttribute(name="pkey", type="S")
_SKEY = KeyAttribute(name="skey", type="S")
_AID = KeyAttribute(name="aid", type="S")
_SEQ_NR = KeyAttribute(name="seq_nr", type="N")

JOURNAL: Final = TableSpec(
    kind="journal",
    help="Events of aggregates",
    partition=_PKEY,
    sort=_SKEY,
    indexes=(IndexSpec(name="journal-aid-index", partition=_AID, sort=_SEQ_NR),),
)
"""Events of aggregates, an item each."""

SNAPSHOT: Final = TableSpec(
    kind="snapshot",
    help="Heads of aggregates",
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
