"""A store in memory with an indexer beside it, as a deployment has one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.port import TIPS, tips_source
from epochal.feed.indexer import Indexer
from epochal.feed.stream_records import Record
from epochal.layout.tables import INDEX
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from examples.flights.dataset import Day, days
from examples.flights.through_library import LibraryStore


@dataclass(slots=True)
class World:
    """Tables, a store on them, and an indexer that takes each change once."""

    tables: MemoryTables = field(default_factory=memory_tables)
    store: LibraryStore = field(init=False)
    _indexer: Indexer = field(init=False)
    _indexed: int = 0

    def __post_init__(self) -> None:
        streams = memory_tips(self.tables)
        self.store = LibraryStore(streams, INDEX.kind)
        self._indexer = Indexer(
            driver=streams.driver, index_table=INDEX.kind, sources=(tips_source(TIPS.kind),)
        )
        self._indexer.register()

    def index(self) -> None:
        """Take what has changed since the last time."""
        changes = self.tables.changes(TIPS.kind)
        fresh = enumerate(changes[self._indexed :], self._indexed)
        report = self._indexer.index(
            [Record(table=TIPS.kind, sequence_number=f"{n:021}", image=image) for n, image in fresh]
        )
        assert not report.failed
        self._indexed = len(changes)


@pytest.fixture(scope="session")
def year() -> list[Day]:
    """All flights: reading them takes a second."""
    return days(365)


@pytest.fixture
def world() -> Iterator[World]:
    """A world whose indexer runs beside the test."""
    found, over = World(), threading.Event()

    def run() -> None:
        while not over.wait(0.02):
            found.index()

    thread = threading.Thread(target=run)
    thread.start()
    yield found
    over.set()
    thread.join()
