"""The tables of a deployment: those of its layouts, and those that belong to no layout.

Tables outlive the code: a change of a key needs a migration (FORMATS).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.plugins import Layout, layouts

_P = KeyAttribute(name="p", type="S")
_I = KeyAttribute(name="i", type="N")

INDEX: Final = TableSpec(kind="index", partition=_P, sort=_I, stream=True)
"""The feed: epochs, marks and reader checkpoints, as Tips (`index.tip`)."""

_PK = KeyAttribute(name="pk", type="S")
_SK = KeyAttribute(name="sk", type="S")

READ_MODELS: Final = TableSpec(kind="read-models", partition=_PK, sort=_SK)
"""Read models of reactions. The table is no part of the store, and a deployment can do without it."""

TIMERS: Final = TableSpec(kind="timers", partition=_P, sort=KeyAttribute(name="s", type="S"))
"""Pending timers by due time: the table can be rebuilt from the feed, and deployments may do without."""


def store_tables(chosen: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """Return the tables of a deployment that has these layouts, or all layouts, and the index."""
    deployed = layouts() if chosen is None else chosen
    return (*(spec for layout in deployed for spec in layout.port.tables), INDEX)


def archives(chosen: Iterable[Layout] | None = None) -> tuple[TableSpec, ...]:
    """Return the archive tables of these layouts, or of all layouts."""
    declared = (layout.port.archive for layout in (layouts() if chosen is None else chosen))
    return tuple(archive.table for archive in declared if archive is not None)


def every_table() -> tuple[TableSpec, ...]:
    """Return all tables that a deployment of this code may have."""
    return (*store_tables(), *archives(), READ_MODELS, TIMERS)
