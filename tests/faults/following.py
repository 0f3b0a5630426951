"""Processes that follow, and may be killed at any moment: an indexer of the tables' streams, and a reader of the feed.

python -m tests.faults.following indexer …     acknowledges a batch once it is indexed; after a kill it comes again
python -m tests.faults.following reader …      keeps what it has read, then where it stands; after a kill it reads
                                               again what it had not kept
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

from epochal.contrib.local.endpoint import Endpoint
from epochal.errors import Unavailable
from epochal.feed.indexer import Indexer, sources_of
from epochal.feed.stream_records import read_records
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.index.epochs import EpochLimits
from tests.faults.site import Site
from tests.simulation.index_event_source import records_of

BATCH = 40
LIMITS = EpochLimits(entries=25)
"""Epochs close often, so that processes die around that too."""


def index(site: Site) -> None:
    """Index for ever."""
    indexer = Indexer(
        driver=site.place.driver(), index_table=site.index, sources=sources_of(site.settings), limits=LIMITS
    )
    register(indexer)
    client = Endpoint(url=site.streams_url, region=site.region).client("dynamodbstreams")
    tables = Endpoint(url=site.streams_url, region=site.region).client("dynamodb")
    arns = {
        table: tables.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        for table in (site.tips, site.pages, site.snapshot, site.tags)
    }
    log = site.log("indexer")
    done: dict[str, int] = dict(log)
    while True:
        for table, arn in arns.items():
            records = [record for shard in records_of(client, arn) for record in shard]
            index_table(indexer, log, table, records, done)
        time.sleep(0.5)


def register(indexer: Indexer) -> None:
    while True:
        try:
            indexer.register()
        except Unavailable:
            continue
        return


def index_table(indexer: Indexer, log: Any, table: str, records: list[Any], done: dict[str, int]) -> None:
    """All records of a table that are not done, by batches; each is done once the log says so."""
    at = done.get(table, 0)
    while at < len(records):
        batch = records[at : at + random.randint(1, BATCH)]
        if not indexer.index(read_records(batch)).failed:
            at += len(batch)
            log.add(table, at)
    done[table] = at


def read(site: Site) -> None:
    """Read for ever."""
    feed, log, kept = site.open_feed(), site.log("reader"), site.log("reader stands")
    stands: dict[int, int] = dict(kept)
    while True:
        try:
            for tail in feed.partitions():
                start = Checkpoint(stands.get(tail.partition, BEGINNING))
                page = feed.page(tail.partition, start=start, limit=20)
                for item in page.items:
                    log.add(item.stream, item.index)
                if page.next != start:
                    kept.add(tail.partition, int(page.next))
                    stands[tail.partition] = int(page.next)
        except Unavailable:
            continue
        time.sleep(0.3)


if __name__ == "__main__":
    {"indexer": index, "reader": read}[sys.argv[1]](Site.parse(sys.argv[2]))
