"""Aggregates in memory, for users' own tests."""

from __future__ import annotations

from collections.abc import Iterable

from epochal.contrib.event_store_adapter.store import AggregateStore, opened
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_deployment


def memory_aggregates(tables: MemoryTables | None = None, *, types: Iterable[str] = ()) -> AggregateStore:
    """A store of aggregates in memory; `types` are declared, as those that hold `-` must be."""
    return opened(memory_deployment(tables, aggregate_types=tuple(types)))
