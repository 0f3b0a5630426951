"""Tables in memory, and a store of streams on them."""

from __future__ import annotations

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables


@pytest.fixture
def tables() -> MemoryTables:
    return memory_tables()


@pytest.fixture
def streams(tables: MemoryTables) -> Streams:
    return memory_tips(tables)
