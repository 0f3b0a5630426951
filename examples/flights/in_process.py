"""A store for long runs: two tables on the embedded AWS, and the indexer in this process.

In a deployment DynamoDB Streams carry each change of a page to the indexer's function. The embedded AWS keeps those
records for a day, in memory, several for each event; a year of flights would fill it with gigabytes. So the tables have
no streams here: what a record would tell is handed to the same indexer directly, a second's worth at a time.
The indexer reads a record with its source's `appended`; the one here is of what an append says, and not of a page.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, Queue
from typing import Final

from botocore.config import Config

from epochal.care.table_creation import create_table
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.wire.http import KEPT
from epochal.feed.indexer import Indexer
from epochal.feed.stream_records import Record
from epochal.layout.changes import Span
from epochal.layout.tables import INDEX
from epochal.model.events import Unfold
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.pages.port import pages_source
from epochal.plan.values import Item, number, read_number, sequence, text
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from examples.flights.happenings import Batch
from examples.flights.stores import Conflict, Written
from examples.flights.through_library import LibraryStore

STREAMS_TABLE: Final = "flights-streams"
INDEX_TABLE: Final = "flights-index"

WINDOW_SECONDS: Final = 1.0
BATCH: Final = 1_000
"""As the deployed indexer's event source mapping collects records."""

QUEUED: Final = 20_000
"""Records that may wait; a writer that is further ahead waits too."""


class InProcessStore(LibraryStore):
    """A store through the library that hands what it appends to an indexer. Made by `in_process`."""

    def __init__(self, streams: Streams, index_table: str, records: Queue[Record]) -> None:
        super().__init__(streams, index_table)
        self._records = records

    def append(self, batch: Batch, snapshot: Unfold | None, token: str | None) -> Written | Conflict:
        """Append, and tell the indexer."""
        answer = super().append(batch, snapshot, token)
        if isinstance(answer, Written):
            self._records.put(_record(batch, answer.version))
        return answer


def make_tables(endpoint: Endpoint) -> None:
    """Create the two tables."""
    for name, spec in ((STREAMS_TABLE, STREAMS), (INDEX_TABLE, INDEX)):
        create_table(endpoint.client("dynamodb"), name, replace(spec, stream=False))


@contextmanager
def in_process(endpoint: Endpoint) -> Iterator[InProcessStore]:
    """The store, with its indexer running for as long as the block does."""
    client = endpoint.client("dynamodb", config=Config(max_pool_connections=KEPT))
    driver = Driver(execute=interpreter(client), meter=Meter())
    source = replace(pages_source(STREAMS_TABLE), appended=_span)
    indexer = Indexer(driver=driver, index_table=INDEX_TABLE, sources=(source,))
    indexer.register()
    records: Queue[Record] = Queue(QUEUED)
    over = threading.Event()
    thread = threading.Thread(target=_index, args=(indexer, records, over), daemon=True)
    thread.start()
    try:
        yield InProcessStore(
            Streams(driver=driver, table=STREAMS_TABLE, layout=Pages()), INDEX_TABLE, records
        )
    finally:
        over.set()
        thread.join()


def _record(batch: Batch, version: int) -> Record:
    """What the table's stream would say of this append, as far as an indexer reads it."""
    types = [text(event.type) for event in batch.events]
    image = {"p": text(batch.stream), "i": number(version - len(types)), "c": sequence(types)}
    return Record(table=STREAMS_TABLE, sequence_number=f"{batch.stream}@{version}", image=image)


def _span(image: Item) -> Span:
    """The events that a record tells of."""
    return Span(image["p"]["S"], read_number(image, "i"), tuple(each["S"] for each in image["c"]["L"]))


def _index(indexer: Indexer, records: Queue[Record], over: threading.Event) -> None:
    while not over.is_set():
        waiting = _collected(records)
        while waiting and not over.is_set():
            failed = set(indexer.index(waiting).failed)
            waiting = [record for record in waiting if record.sequence_number in failed]


def _collected(records: Queue[Record]) -> list[Record]:
    """Records of a window, or as many as a batch holds."""
    batch: list[Record] = []
    end = time.monotonic() + WINDOW_SECONDS
    while len(batch) < BATCH and (left := end - time.monotonic()) > 0:
        try:
            batch.append(records.get(timeout=left))
        except Empty:
            break
    return batch
