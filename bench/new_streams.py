"""What many streams cost the index: how large epochs grow, requests and held streams a batch, units for marks.

Every record begins a stream: each is forgotten, so each gets a mark. Once by the indexer, and once by a rebuild from an
export. Then the same streams again, at random, so that nearly each event's stream has to be looked up, too. On the
memory interpreter; units are DynamoDB's rules applied to the real items.

    python -c "from bench.new_streams import main; main(1_000_000)"

Bounds: no epoch passes a limit by more than one batch; marks take no more requests than streams have been marked, by
far, and a tenth of a unit an event, reads and writes together; no more is held than two epochs have.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from bench.report import Report
from epochal.care.mender import Mender
from epochal.care.rebuild import SPANS, Rebuilder
from epochal.care.spool import Spool
from epochal.contrib.equinox.port import tips_source
from epochal.feed.indexer import Indexer
from epochal.feed.stream_records import Record
from epochal.index.checkpoints import calf_key
from epochal.index.epochs import STANDARD, EpochLimits
from epochal.index.ingestion import Partition
from epochal.plan.ops import BatchGet, Op, Put, Query, Reply, Transact
from epochal.plan.values import NONE, Item, Units
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables

STREAMS = 400_000
BATCH = 1_000

MOST_REQUESTS = 600
"""Of a batch: those for the leaves of a thirty-second of the marks, where an epoch's are of all streams."""

MOST_UNITS = 0.1
"""Reads and writes of marks, an event."""

SOURCE = tips_source("tips")


@dataclass(slots=True)
class Watched:
    """An index, with figures of its indexing.

    Attributes:
        requests: number of requests of each batch.
        held: number of streams after each batch.
        closed: bytes, entries and streams of each closed epoch.
        units: units of reads and writes of marks.
    """

    limits: EpochLimits = STANDARD
    tables: MemoryTables = field(default_factory=memory_tables)
    requests: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    closed: list[tuple[int, int, int]] = field(default_factory=list)
    units: Units = NONE
    _asked: int = 0
    _last: int = -1

    def execute(self, op: Op) -> Reply:
        """Perform a request, and count it."""
        self._asked += 1
        reply = self.tables.execute(op)
        if is_of_marks(op):
            self.units += reply.units
        return reply

    def after_batch(self, partition: Partition) -> None:
        """Record the figures of a batch."""
        active, previous = partition.state.active, partition.state.previous
        self.requests.append(self._asked)
        self._asked = 0
        self.held.append(len(active.next) + (0 if previous is None else len(previous.next)))
        if previous is not None and previous.number > self._last:
            self._last = previous.number
            self.closed.append((previous.size, previous.version, len(previous.next)))

    def check(self, events: int) -> None:
        """Exit with an error if a bound is exceeded."""
        limits, batch_bytes = self.limits, 300 * 1024
        for size, entries, met in self.closed:
            if (
                size > limits.bytes + batch_bytes
                or entries > limits.entries + 2
                or met > limits.streams + BATCH
            ):
                raise SystemExit(f"an epoch grew to {size:,} bytes, {entries:,} entries, {met:,} streams")
        if max(self.requests) > MOST_REQUESTS:
            raise SystemExit(f"a batch took {max(self.requests):,} requests")
        if max(self.held) > 2 * (limits.streams + BATCH):
            raise SystemExit(f"{max(self.held):,} streams were held")
        if (self.units.write + self.units.read) / events > MOST_UNITS:
            raise SystemExit(
                f"marks of {events:,} events took {self.units.write:,.0f} + {self.units.read:,.0f} units"
            )


def is_of_marks(op: Op) -> bool:
    """Return whether a request reads or writes marks."""
    match op:
        case Query(partition=(_, name)):
            return str(name["S"]).startswith("$Marks-")
        case Put(item=item):
            return str(item["p"]["S"]).startswith("$Marks-")
        case _:
            return isinstance(op, Transact | BatchGet)


def index(streams: int, limits: EpochLimits = STANDARD) -> Watched:
    """Index streams of one event in batches."""
    watched = Watched(limits=limits)
    _index(_indexer(watched), watched, ((stream, 1) for stream in range(streams)))
    return watched


def index_again(streams: int, limits: EpochLimits = STANDARD) -> Watched:
    """Index streams, then measure as many further events of random ones."""
    first = index(streams, limits)
    watched = Watched(limits=limits, tables=first.tables)
    rng, versions = random.Random(streams), Counter[int]()

    def events() -> Iterator[tuple[int, int]]:
        for _ in range(streams):
            stream = rng.randrange(streams)
            versions[stream] += 1
            yield stream, 1 + versions[stream]

    _index(_indexer(watched), watched, events())
    return watched


def _indexer(watched: Watched) -> Indexer:
    indexer = Indexer(driver=_driver(watched), index_table="index", sources=(SOURCE,), limits=watched.limits)
    indexer.register()
    return indexer


def _index(indexer: Indexer, watched: Watched, events: Iterator[tuple[int, int]]) -> None:
    records = (
        Record(table="tips", sequence_number=str(k), image=head(*event)) for k, event in enumerate(events)
    )
    while batch := list(islice(records, BATCH)):
        if indexer.index(batch).failed:
            raise SystemExit("a batch failed")
        watched.after_batch(indexer._held[0])  # noqa: SLF001  # what is held is what is measured


def rebuild(streams: int, limits: EpochLimits = STANDARD) -> Watched:
    """Build the same index from an export of the table."""
    watched = Watched(limits=limits)

    def told(_: str) -> None:
        held = mender._held.get(0)  # noqa: SLF001  # what is held is what is measured
        if held is not None and held.loaded is not None:
            watched.after_batch(held)

    mender = Mender(driver=_driver(watched), index_table="index", limits=limits)
    rebuilder = Rebuilder(mender=mender, tell=once_in(SPANS, told))
    with Spool() as spool:
        done = rebuilder.from_export(SOURCE, map(head, range(streams)), spool)
    if done.events != streams or done.troubles:
        raise SystemExit(f"{done.events:,} of {streams:,} were indexed: {done.troubles[:1]}")
    return watched


def once_in(calls: int, tell: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that passes on every `calls`-th message about indexing: a rebuild reports each stream."""
    count = 0

    def told(words: str) -> None:
        nonlocal count
        if words.endswith("indexed"):
            count += 1
            if count % calls == 0:
                tell(words)

    return told


def head(stream: int, version: int = 1) -> Item:
    """Return the Tip of a stream whose latest append is one event."""
    return {
        **calf_key(f"Order-{stream * 2_654_435_761 % 2**32:08x}", 2_147_483_647),
        "n": {"N": str(version)},
        "a": {"N": "1"},
        "c": {"L": [{"S": "OrderPlaced"}]},
        "e": {"L": [{"M": {"d": {"B": b"{}"}}}]},
        "etag": {"S": "0" * 32},
    }


def _driver(watched: Watched) -> Driver:
    return Driver(execute=watched.execute, meter=Meter())


def main(streams: int = STREAMS) -> None:
    """Measure, print the figures, and exit with an error if a bound is missed."""
    measured = [
        ("indexer", index(streams)),
        ("rebuild from an export", rebuild(streams)),
        ("indexer, the streams again", index_again(streams)),
    ]
    Report(
        title=f"{streams:,} streams in one partition, {BATCH:,} events a batch, in memory",
        columns=[
            "by",
            "epochs",
            "largest",
            "streams",
            "requests",
            "at most",
            "held",
            "WCU/event",
            "RCU/event",
        ],
        rows=[_row(name, watched, streams) for name, watched in measured],
    ).print()
    print("WCU and RCU are for marks alone.")
    for _, watched in measured:
        watched.check(streams)


def _row(name: str, watched: Watched, events: int) -> tuple[str, ...]:
    return (
        name,
        f"{len(watched.closed):,}",
        f"{max((size for size, _, _ in watched.closed), default=0):,}",
        f"{max((met for _, _, met in watched.closed), default=0):,}",
        f"{_mean(watched.requests):,.0f}",
        f"{max(watched.requests):,}",
        f"{max(watched.held):,}",
        f"{watched.units.write / events:.3f}",
        f"{watched.units.read / events:.3f}",
    )


def _mean(values: list[int]) -> float:
    return sum(values) / max(1, len(values))


if __name__ == "__main__":
    main()
