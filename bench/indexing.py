"""The indexer's speed and price: records a second, requests a batch, capacity units for a thousand events.

One warm indexer over one partition, of each source in turn, on the memory interpreter: its time is the library's own,
the interpreter's included; its units are DynamoDB's rules applied to the real items. A network adds its round trips:
one for a batch, and one more for the marks that it has to read or write, side by side.

Bounds: batches of 200 and more at 5,000 records a second in one partition; one entry a batch, written once.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.report import Report
from epochal.contrib.equinox.port import tips_source
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import HEAD, JournalSite, KeyResolver
from epochal.contrib.event_store_adapter.port import journal_source
from epochal.contrib.sekiban.items import Keys, TagSite
from epochal.contrib.sekiban.port import dcb_source
from epochal.feed.indexer import Indexer
from epochal.feed.reader import FeedReader
from epochal.feed.stream_records import Record
from epochal.layout.registry import base_of
from epochal.plan.ops import Op, Put, Query, Reply, Transact, Update
from epochal.plan.values import NONE, Item, Units
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables

RECORDS = 20_000
LEAST_RECORDS_A_SECOND = 5_000
BOUND_FROM = 200
"""Smaller batches are what a trickle brings; a load that must be kept up with brings large ones."""

TYPES = ("FlightScheduled", "FlightDeparted", "FlightArrived", "FlightCancelled")

SITE = JournalSite(journal="journal", snapshot="snapshot", keys=KeyResolver())

SOURCES = {
    "tips": tips_source("tips"),
    "journal": journal_source(SITE),
    "dcb": dcb_source(TagSite(events="events", tags="tags", keys=Keys())),
}


def _tip(stream: int, version: int, kind: str) -> Item:
    return {
        "p": {"S": f"Aircraft-N{stream}"},
        "i": {"N": "2147483647"},
        "n": {"N": str(version)},
        "a": {"N": "1"},
        "c": {"L": [{"S": kind}]},
        "etag": {"S": "0" * 32},
    }


def _snapshot(stream: int, version: int, kind: str) -> Item:
    aggregate = AggregateId(type="aircraft", value=f"N{stream}")
    return {
        **SITE.keys.key(aggregate, HEAD),
        "aid": {"S": str(aggregate)},
        "seq_nr": {"N": "0"},
        "payload": {"B": b"{}"},
        "version": {"N": str(version)},
        "head_version": {"N": str(version)},
        "last_seq_nr": {"N": str(version)},
        "last_event_types": {"L": [{"S": kind}]},
    }


def _tag(stream: int, version: int, kind: str) -> Item:
    return {
        "pk": {"S": f"TAG#aircraft:N{stream}"},
        "sk": {"S": "#"},
        "n": {"N": str(version)},
        "a": {"N": "1"},
        "c": {"L": [{"S": kind}]},
        "ids": {"L": [{"S": "00000000-0000-4000-8000-000000000000"}]},
        "last": {"S": f"{version:030d}"},
    }


HEADS = {"tips": _tip, "journal": _snapshot, "dcb": _tag}
"""What a head looks like whose latest append was one event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Records to index: `RECORDS` appends of one event to `streams` random streams, in batches of `batch`."""

    name: str
    streams: int
    batch: int
    source: str = "tips"

    def batches(self) -> Iterator[list[Record]]:
        """Yield the records in batches; the events of a stream are numbered from 0."""
        rng, versions = random.Random(self.name), Counter[int]()
        batch: list[Record] = []
        for number in range(RECORDS):
            stream = rng.randrange(self.streams)
            versions[stream] += 1
            kind = TYPES[number % len(TYPES)]
            image = HEADS[self.source](stream, versions[stream], kind)
            batch.append(Record(table=SOURCES[self.source].table, sequence_number=str(number), image=image))
            if len(batch) == self.batch or number == RECORDS - 1:
                yield batch
                batch = []


LOADS = (
    *(Load(name="4,000 aircraft", streams=4_000, batch=batch) for batch in (1, 10, 200, 1_000)),
    Load(name="20 busy streams", streams=20, batch=200),
    Load(name="nearly all new", streams=10_000_000, batch=200),
    Load(name="4,000 aggregates", streams=4_000, batch=200, source="journal"),
    Load(name="4,000 tags", streams=4_000, batch=200, source="dcb"),
)


@dataclass(slots=True, kw_only=True)
class Measured:
    """Figures of indexing a load.

    Attributes:
        entries: writes to an epoch's Tip, including refused ones.
        others: number of other requests, by purpose.
    """

    load: Load
    seconds: float = 0.0
    batches: int = 0
    entries: int = 0
    epochs: int = 0
    others: Counter[str] = field(default_factory=Counter)
    units: Units = NONE

    @property
    def rate(self) -> float:
        """Records per second."""
        return RECORDS / self.seconds

    def count(self, op: Op) -> None:
        """Count a request."""
        match op:
            case Query(partition=(_, name)) if str(name["S"]).startswith("$Marks-"):
                self.others["marks read"] += 1
            case Put(item=item) if item["p"]["S"].startswith("$Marks-"):
                self.others["marks"] += 1
            case Transact():
                self.others["marks"] += 1
            case Put(item=item) if "a" not in item:
                self.others["calves"] += 1
            case Put(item=key) | Update(key=key) if key["p"]["S"].startswith("$AppendsEpoch-"):
                self.entries += 1
            case _:
                self.others["series, epochs"] += 1


def measure(load: Load) -> Measured:
    """Index a load, and check that the feed contains all of it."""
    tables, meter, measured = memory_tables(), Meter(), Measured(load=load)

    def execute(op: Op) -> Reply:
        measured.count(op)
        return tables.execute(op)

    driver = Driver(execute=execute, meter=meter)
    indexer = Indexer(driver=driver, index_table="index", sources=(SOURCES[load.source],))
    indexer.register()
    batches = list(load.batches())
    began = time.perf_counter()
    for batch in batches:
        assert not indexer.index(batch).failed
    measured.seconds = time.perf_counter() - began
    measured.batches, measured.units = len(batches), meter.units
    measured.epochs = _check(tables, base_of(load.source))
    return measured


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is missed."""
    results = [measure(load) for load in LOADS]
    Report(
        title=f"Indexing {RECORDS:,} records of one event in one partition, in memory",
        columns=[
            "streams",
            "batch",
            "records/s",
            "entries/batch",
            "requests/batch",
            "marks",
            "WCU",
            "RCU",
            "epochs",
        ],
        rows=[_row(result) for result in results],
    ).print()
    print("Marks, WCU and RCU are for 1,000 events.")
    for result in results:
        if result.entries != result.batches:
            raise SystemExit(f"{result.load}: {result.batches} batches took {result.entries} entries")
        if result.load.batch >= BOUND_FROM and result.rate < LEAST_RECORDS_A_SECOND:
            raise SystemExit(f"{result.load}: only {result.rate:,.0f} records a second")


def _row(result: Measured) -> tuple[str, ...]:
    return (
        result.load.name,
        f"{result.load.batch:,}",
        f"{result.rate:,.0f}",
        f"{result.entries / result.batches:.2f}",
        f"{(result.entries + sum(result.others.values())) / result.batches:.2f}",
        f"{result.others['marks'] / RECORDS * 1_000:,.1f}",
        f"{result.units.write / RECORDS * 1_000:,.1f}",
        f"{result.units.read / RECORDS * 1_000:,.1f}",
        f"{result.epochs + 1}",
    )


def _check(tables: MemoryTables, partition: int) -> int:
    """Check that the feed of a partition is complete and in order, and return the epoch that it has reached."""
    reader = FeedReader(driver=Driver(execute=tables.execute, meter=Meter()), table="index")
    reached, total = Counter[str](), 0
    at = 0
    for page in reader.read(partition):
        for item in page.items:
            assert item.index == reached[item.stream]
            reached[item.stream] += 1
            total += 1
        at = page.next.epoch
    assert total == RECORDS
    return at


if __name__ == "__main__":
    main()
