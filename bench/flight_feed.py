"""Indexes made of real flights: a year's aircraft, some busy all day and some seen once, in the order of time.

They are made in memory by the library's own layers, batch by batch as an indexer writes them, and then put into tables
of DynamoDB Local item by item: so a million events take a minute, and every item is what a deployment would hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from bench.local import Local
from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.port import TIPS, heal_tips, tips_source
from epochal.feed.indexer import Indexer
from epochal.index.ingestion import Indexing, Partition
from epochal.layout.changes import Span
from epochal.layout.tables import INDEX
from epochal.model.outcomes import Appended
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from examples.flights.dataset import YEAR, days, zones
from examples.flights.happenings import Batch, by_moment, in_order

PARTITION = 0


def appends(events: int) -> Iterator[Batch]:
    """Yield the year's first appends, up to the one with which there are `events` events."""
    # 2,400 events a day; the first days of January have the fewest.
    for batch in by_moment(in_order(days(min(YEAR, 2 + events // 2_200)), zones())):
        yield batch
        events -= len(batch.events)
        if events <= 0:
            return


def spans(events: int) -> Iterator[Span]:
    """Yield these appends as spans of an index."""
    reached = Counter[str]()
    for batch in appends(events):
        yield Span(batch.stream, reached[batch.stream], tuple(event.type for event in batch.events))
        reached[batch.stream] += len(batch.events)


def index(tables: MemoryTables, entries: Iterable[Span], at_once: int) -> int:
    """Index spans, `at_once` in an entry, and return their number of events."""
    driver = Driver(execute=tables.execute, meter=Meter())
    indexer = Indexer(driver=driver, index_table=INDEX.kind, sources=(tips_source(TIPS.kind),))
    indexer.register()
    indexing = Indexing(table=INDEX.kind, heal=heal_tips(TIPS.kind), ids=indexer.ids)
    partition, waiting, events = Partition(number=PARTITION), iter(entries), 0
    while batch := list(islice(waiting, at_once)):
        events += driver.run(indexing.ingest(partition, batch)).events
    return events


def bare_index(events: int, at_once: int) -> MemoryTables:
    """Make an index of `events` events, without the events themselves."""
    tables = memory_tables()
    index(tables, spans(events), at_once)
    return tables


def full_feed(events: int, at_once: int) -> MemoryTables:
    """Store events in their streams, and index them."""
    tables = memory_tables()
    store = memory_tips(tables)
    entries: list[Span] = []
    reached = Counter[str]()
    for batch in appends(events):
        assert isinstance(store.append(batch.stream, batch.events), Appended)
        entries.append(Span(batch.stream, reached[batch.stream], tuple(event.type for event in batch.events)))
        reached[batch.stream] += len(batch.events)
    index(tables, entries, at_once)
    return tables


def put(tables: MemoryTables, kind: str, local: Local) -> None:
    """Copy a table's items into a table of DynamoDB Local."""
    local.fill(tables.items(kind))
