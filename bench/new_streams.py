"""What many new streams cost the index: how large epochs grow, and requests and held streams a batch, over rollovers.

Every record begins a stream, which is the most that marks can cost: each stream is forgotten, so each gets one. Once by
the indexer, and once by a rebuild from an export. On the memory interpreter; marks are counted and compared with what
is to be marked, and not kept, so that memory shows what the indexer holds.

    python -c "from bench.new_streams import main; main(5_000_000)"

Bounds: no epoch passes a limit by more than one batch; no batch takes half as many requests again as it has streams; no
more is held than two epochs have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from bench.report import Report
from epochal.care.catch_up import Mender
from epochal.care.external_sort import Spool
from epochal.care.rebuild import SPANS, Rebuilder
from epochal.index.epochs import STANDARD, EpochLimits
from epochal.index.ingestion import Partition
from epochal.indexer.indexer import Indexer, Record
from epochal.layout.tips.items import calf_key
from epochal.layout.tips.port import tips_source
from epochal.plan.ops import BatchGet, Done, Items, Op, Put, Reply
from epochal.plan.values import Item
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables

STREAMS = 400_000
BATCH = 1_000

SOURCE = tips_source("tips")


@dataclass(slots=True)
class Watched:
    """An index, and what indexing it took.

    Attributes:
        requests: of each batch.
        held: streams after each batch.
        closed: of each epoch that closed, its bytes, entries and streams.
        marks: how many were written.
    """

    limits: EpochLimits = STANDARD
    tables: MemoryTables = field(default_factory=memory_tables)
    requests: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    closed: list[tuple[int, int, int]] = field(default_factory=list)
    marks: int = 0
    _asked: int = 0

    def execute(self, op: Op) -> Reply:
        """Perform a request."""
        self._asked += 1
        if isinstance(op, Put) and op.item["p"]["S"].startswith("$Indexed-"):
            self.marks += 1
            return Done()
        if isinstance(op, BatchGet):
            return Items(items=())
        return self.tables.execute(op)

    def after_batch(self, partition: Partition) -> None:
        """Take down what a batch came to."""
        active, previous = partition.state.active, partition.state.previous
        self.requests.append(self._asked)
        self._asked = 0
        self.held.append(len(active.next) + (0 if previous is None else len(previous.next)))
        if previous is not None and previous.number == len(self.closed):
            self.closed.append((previous.size, previous.version, len(previous.next)))

    def check(self, streams: int) -> None:
        """Fail where a bound is passed."""
        limits, batch_bytes = self.limits, 300 * 1024
        for size, entries, met in self.closed:
            if (
                size > limits.bytes + batch_bytes
                or entries > limits.entries + 2
                or met > limits.streams + BATCH
            ):
                raise SystemExit(f"an epoch grew to {size:,} bytes, {entries:,} entries, {met:,} streams")
        # A little more is owed where an epoch holds more streams than the one after it has room for.
        if max(self.requests) > 1.5 * BATCH:
            raise SystemExit(f"a batch took {max(self.requests):,} requests")
        if max(self.held) > 2 * (limits.streams + BATCH):
            raise SystemExit(f"{max(self.held):,} streams were held")
        owed = sum(met for _, _, met in self.closed[:-1])
        if not owed <= self.marks <= streams:
            raise SystemExit(f"{self.marks:,} marks were written, of {owed:,} owed")


def index(streams: int, limits: EpochLimits = STANDARD) -> Watched:
    """Index so many streams of one event, batch by batch."""
    watched = Watched(limits=limits)
    indexer = Indexer(driver=_driver(watched), index_table="index", sources=(SOURCE,), limits=limits)
    indexer.register()
    records = (Record(table="tips", sequence_number=str(k), image=head(k)) for k in range(streams))
    while batch := list(islice(records, BATCH)):
        if indexer.index(batch).failed:
            raise SystemExit("a batch failed")
        watched.after_batch(indexer._held[0])  # noqa: SLF001  # what is held is what is measured
    return watched


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
    """Pass on what follows a batch: a rebuild tells of each stream."""
    count = 0

    def told(words: str) -> None:
        nonlocal count
        if words.endswith("indexed"):
            count += 1
            if count % calls == 0:
                tell(words)

    return told


def head(stream: int) -> Item:
    """The Tip of a stream whose one append is one event."""
    return {
        **calf_key(f"Order-{stream * 2_654_435_761 % 2**32:08x}", 2_147_483_647),
        "n": {"N": "1"},
        "a": {"N": "1"},
        "c": {"L": [{"S": "OrderPlaced"}]},
        "e": {"L": [{"M": {"d": {"B": b"{}"}}}]},
        "etag": {"S": "0" * 32},
    }


def _driver(watched: Watched) -> Driver:
    return Driver(execute=watched.execute, meter=Meter())


def main(streams: int = STREAMS) -> None:
    """Measure, print, fail below a bound."""
    measured = [("indexer", index(streams)), ("rebuild from an export", rebuild(streams))]
    Report(
        title=f"{streams:,} new streams in one partition, {BATCH:,} a batch, in memory",
        columns=["by", "epochs", "largest", "streams", "requests", "at first", "at last", "held", "marks"],
        rows=[_row(name, watched) for name, watched in measured],
    ).print()
    for _, watched in measured:
        watched.check(streams)


def _row(name: str, watched: Watched) -> tuple[str, ...]:
    return (
        name,
        f"{len(watched.closed):,}",
        f"{max(size for size, _, _ in watched.closed):,}",
        f"{max(met for _, _, met in watched.closed):,}",
        f"{_mean(watched.requests):,.0f}",
        f"{_mean(watched.requests[100:200]):,.0f}",
        f"{_mean(watched.requests[-100:]):,.0f}",
        f"{max(watched.held):,}",
        f"{watched.marks:,}",
    )


def _mean(values: list[int]) -> float:
    return sum(values) / max(1, len(values))


if __name__ == "__main__":
    main()
