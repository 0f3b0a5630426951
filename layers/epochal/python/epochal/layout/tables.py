"""The tables of a deployment: those of its layouts, and those that are no layout's (FORMATS). This outlives the code: a
change here needs a migration.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from epochal.plan.ops import KeyAttribute, TableSpec
from epochal.plugins import Layout, layouts

_P = KeyAttribute(name="p", type="S")
_I = KeyAttribute(name="i", type="N")

INDEX: Final = TableSpec(kind="index", partition=_P, sort=_I, stream=True)
"""The feed: epochs, marks and reader checkpoints, in the layout of tips."""

_PK = KeyAttribute(name="pk", type="S")
_SK = KeyAttribute(name="sk", type="S")

ARCHIVE: Final = TableSpec(kind="archive", partition=_P, sort=_I)
"""Streams in the layout of tips, as copied before they were pruned: no part of a store that does without."""

STREAMS_ARCHIVE: Final = TableSpec(kind="streams-archive", partition=_P, sort=_I)
"""Streams of pages, as copied before they were pruned. It is a table of its own, since a stream of tips may have the
same name."""

ARCHIVES: Final = {"tips": ARCHIVE, "pages": STREAMS_ARCHIVE}
"""By the layout whose streams they keep."""

READ_MODELS: Final = TableSpec(kind="read-models", partition=_PK, sort=_SK)
"""Read models of reactions: no part of the store, which any deployment can do without."""


def store_tables(of: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """The tables of a deployment that has these layouts, or all that there are."""
    chosen = layouts() if of is None else of
    return (*(spec for each in chosen for spec in each.port.tables), INDEX)
