"""Tips in memory, for users' own tests."""

from __future__ import annotations

from epochal.contrib.equinox.streams import opened
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_deployment


def memory_tips(tables: MemoryTables | None = None) -> Streams:
    """A store of streams in memory that are stored as tips, with a bucket."""
    return opened(memory_deployment(tables))
