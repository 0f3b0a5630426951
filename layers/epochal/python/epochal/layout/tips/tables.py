"""The table of streams (FORMATS §1). This outlives the code: a change here needs a migration."""

from __future__ import annotations

from typing import Final

from epochal.plan.ops import KeyAttribute, TableSpec

TIPS: Final = TableSpec(
    kind="tips",
    help="Table of streams that are stored as tips",
    partition=KeyAttribute(name="p", type="S"),
    sort=KeyAttribute(name="i", type="N"),
    ttl="ttl",
    stream=True,
)
"""Streams of events as tips and calves. `ttl` is set on idempotency records only."""
