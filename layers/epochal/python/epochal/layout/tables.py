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
"""The feed: epochs, marks and reader checkpoints, as Tips (`index.tip`)."""

_PK = KeyAttribute(name="pk", type="S")
_SK = KeyAttribute(name="sk", type="S")

READ_MODELS: Final = TableSpec(kind="read-models", partition=_PK, sort=_SK)
"""Read models of reactions: no part of the store, which any deployment can do without."""


def store_tables(of: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """The tables of a deployment that has these layouts, or all that there are."""
    chosen = layouts() if of is None else of
    return (*(spec for each in chosen for spec in each.port.tables), INDEX)


def archives(of: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """The tables that these layouts, or all that there are, keep streams in which are to be pruned."""
    found = (each.port.archive for each in (layouts() if of is None else of))
    return tuple(each.table for each in found if each is not None)
