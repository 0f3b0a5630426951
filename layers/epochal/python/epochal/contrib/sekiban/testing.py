"""Sekiban's tables in memory, for users' own tests."""

from __future__ import annotations

from epochal.contrib.sekiban.projections import ProjectionStates, states_of
from epochal.contrib.sekiban.store import DcbEvents, opened
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_deployment


def memory_dcb_events(tables: MemoryTables | None = None, *, type_heads: bool = False) -> DcbEvents:
    """A store of tagged events in memory, in Sekiban's tables."""
    return opened(memory_deployment(tables, type_heads=type_heads))


def memory_projection_states(tables: MemoryTables | None = None) -> ProjectionStates:
    """States of projections in memory, with a bucket."""
    return states_of(memory_deployment(tables))
