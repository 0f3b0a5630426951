"""The tables of every layout (FORMATS §1, §4). This outlives the code: a change here needs a migration."""

from __future__ import annotations

from typing import Final

from epochal.plan.tables import KeyAttribute, TableSpec

_P = KeyAttribute(name="p", type="S")
_I = KeyAttribute(name="i", type="N")

TIPS: Final = TableSpec(kind="tips", partition=_P, sort=_I, ttl="ttl", stream=True)
"""Streams of events as tips and calves. `ttl` is set on idempotency records only."""

INDEX: Final = TableSpec(kind="index", partition=_P, sort=_I, stream=True)
"""The feed: epochs, marks and reader checkpoints, in the layout of tips."""

ALL: Final = (TIPS, INDEX)
