"""Sagas over several streams, several shards and partitions, and what readers of the feed see of them.

A program begins a saga; what goes on is written by the program itself, at once, or by readers of the feed, which see an
event and append its effect to another stream. Each shard of the table has an indexer of its own, which now and then
falls behind; clocks of writers and indexers differ. Beside them two readers follow all partitions: one takes them as
they come, one in order.

python -m tests.simulation.saga_world        how often an effect comes before its cause, by shards
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count

from epochal.feed.events import name_of
from epochal.feed.indexer import Indexer
from epochal.feed.ordered import OrderedCheckpoint, OrderedPage
from epochal.feed.results import FeedItem
from epochal.feed.stream_records import Record
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.model.events import Event
from epochal.plan.values import Item
from epochal.store.driver import POOL
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_deployment, memory_tables
from tests.support.inline import Inline

STEPS = ("Placed", "Paid", "Packed", "Shipped", "Billed")
STREAMS = ("Order", "Payment", "Parcel", "Order", "Payment")
"""Of the steps: so effects come back to streams that have had causes."""

BEGIN = 1_356_998_400.0
"""Seconds since 1970: the first of January 2013."""

LAG = 2.0
"""Seconds at most from an append to its entry in the index."""

WITHIN = 3.0
"""Seconds of the window: the lag, what indexers' and readers' clocks differ, and some more."""

WRITERS_SKEW = 1.5
INDEXERS_SKEW = 0.2


@dataclass
class Sagas:
    """A world that a seed decides.

    Attributes:
        skew: seconds that writers' clocks are wrong at most.
        by_itself: how often the program goes on with a saga by itself: its events wait for no indexer.
        came: events in the order in which a plain reader of all partitions met them.
        ordered: those of a reader in order, whose every item is the next in its order.
    """

    seed: int
    shards: int
    partitions: int
    sagas: int = 8
    within: float = WITHIN
    skew: float = WRITERS_SKEW
    by_itself: float = 0.4
    came: list[FeedItem] = field(default_factory=list)
    ordered: list[FeedItem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.seed}/{self.shards}/{self.partitions}")
        # Of the reader in order alone: how it reads changes nothing of what happens.
        self._stops = random.Random(self.seed)
        self.now = BEGIN
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._tables: MemoryTables = memory_tables()
        self._place = memory_deployment(self._tables, pages_partitions=self.partitions)
        # Each look at a store of the deployment opens it anew.
        self._feed, self._streams = self._place.feed, self._place.streams
        self._queues: list[list[tuple[int, Item]]] = [[] for _ in range(self.shards)]
        self._told = 0
        self._left, self._last = self.sagas * len(STEPS), BEGIN
        self._indexers = [self._indexer() for _ in range(self.shards)]
        self._indexers[0].register()
        self.numbers = [each.partition for each in self._feed.partitions() if each.partition >= 30_000]
        self._saga_at: dict[int, Checkpoint] = dict.fromkeys(self.numbers, BEGINNING)
        self._plain_at: dict[int, Checkpoint] = dict.fromkeys(self.numbers, BEGINNING)
        self._checkpoint = OrderedCheckpoint()
        self._pages: Iterator[OrderedPage] | None = None

    def play(self) -> None:
        """Play until nothing happens any more, and all is read: with no thread, since the world waits for nobody."""
        threads = POOL.set(Inline)
        try:
            self._play()
        finally:
            POOL.reset(threads)

    def _play(self) -> None:
        for number in range(self.sagas):
            self._in(self.rng.uniform(0, 4), lambda number=number: self._step(number, 0, None))  # type: ignore[misc]
        for shard in range(self.shards):
            self._in(self.rng.uniform(0, LAG), lambda shard=shard: self._index(shard))  # type: ignore[misc]
        for number in self.numbers:
            self._in(self.rng.uniform(0, 0.3), lambda number=number: self._react(number))  # type: ignore[misc]
        self._in(0.1, self._look_plainly)
        self._in(0.1, self._look_in_order)
        while self._due:
            self.now, _, happens = heappop(self._due)
            happens()
        self.now += self.within + 2 * INDEXERS_SKEW + 0.1
        self._read_plainly()
        self._read_in_order()

    def _in(self, seconds: float, happens: Callable[[], None]) -> None:
        heappush(self._due, (self.now + seconds, next(self._numbers), happens))

    def _clock(self, skew: float) -> Callable[[], int]:
        off = self.rng.uniform(-skew, skew)
        return lambda: int((self.now + off) * 1e9)

    @property
    def _over(self) -> bool:
        """Whether the last event was written long ago."""
        return self._left == 0 and self.now > self._last + LAG + 1

    def _indexer(self) -> Indexer:
        made = self._place.indexer
        return replace(made, now=self._clock(INDEXERS_SKEW), fresh=self.rng.randbytes, _held={})

    def _step(self, number: int, step: int, cause: str | None) -> None:
        """Append an event of a saga; the program goes on with the next one by itself, or leaves it to a reader."""
        store = replace(self._streams, now=self._clock(self.skew))
        stream = f"{STREAMS[step]}-{number}"
        goes_on = step + 1 < len(STEPS) and self.rng.random() < self.by_itself
        event = Event(type=STEPS[step], data=b"by itself" if goes_on else b"", causation_id=cause)
        index = store.append(stream, [event]).version - 1
        self._left, self._last = self._left - 1, self.now
        for position, image in enumerate(self._tables.changes("streams")[self._told :], self._told):
            shard = hashlib.sha256(image["p"]["S"].encode()).digest()[7] % self.shards
            self._queues[shard].append((position, image))
            self._told = position + 1
        if goes_on:
            self._in(self.rng.uniform(0.005, 0.05), lambda: self._step(number, step + 1, f"{stream}@{index}"))

    def _index(self, shard: int) -> None:
        """What waits in a shard is indexed, at most the lag after the last time."""
        batch, self._queues[shard] = self._queues[shard], []
        report = self._indexers[shard].index(
            Record(table="streams", sequence_number=f"{position:021d}", image=image)
            for position, image in batch
        )
        assert not report.failed
        if not self._over:
            slow = self.rng.random() < 0.2
            pause = self.rng.uniform(0.05, LAG if slow else 0.4)
            self._in(pause, lambda: self._index(shard))

    def _react(self, number: int) -> None:
        """A reader of a partition appends the effects of what it meets."""
        page = self._feed.page(number, start=self._saga_at[number], data=True)
        self._saga_at[number] = page.next
        for item in page.items:
            step = STEPS.index(item.type) + 1
            assert item.event is not None
            if step < len(STEPS) and not item.event.content:
                self._step(int(item.stream.partition("-")[2]), step, name_of(item.event))
        if not self._over:
            self._in(self.rng.uniform(0.05, 0.5), lambda: self._react(number))

    def _look_plainly(self) -> None:
        self._read_plainly()
        if not self._over:
            self._in(self.rng.uniform(0.1, 0.8), self._look_plainly)

    def _read_plainly(self) -> None:
        for number in self.rng.sample(self.numbers, len(self.numbers)):
            page = self._feed.page(number, start=self._plain_at[number], data=True)
            self._plain_at[number] = page.next
            self.came += page.items

    def _look_in_order(self) -> None:
        self._read_in_order()
        if not self._over:
            self._in(self._stops.uniform(0.1, 0.8), self._look_in_order)

    def _read_in_order(self) -> None:
        """Now and then the reader stops, and another goes on from the text of its checkpoint."""
        if self._pages is None:
            self._pages = self._feed.ordered(
                within=self.within,
                start=OrderedCheckpoint.parse(str(self._checkpoint)),
                partitions=self.numbers,
                follow=True,
                wait=0,
                limit=self._stops.choice((1, 3, 1_000)),
                now=lambda: int(self.now * 1e9),
            )
        for page in self._pages:
            self.ordered += page.items
            self._checkpoint = page.next
            if self._stops.random() < 0.1:
                self._pages = None
            if page.at_tail or (self._pages is None and not self._over):
                break
        else:
            raise AssertionError("a reader that follows never ends")


def too_early(items: list[FeedItem]) -> list[str]:
    """Effects that come before their causes."""
    met: set[str] = set()
    found = []
    for item in items:
        assert item.event is not None
        if item.event.causation_id is not None and item.event.causation_id not in met:
            found.append(f"{name_of(item.event)} before {item.event.causation_id}")
        met.add(name_of(item.event))
    return found


def table(seeds: int = 25) -> Iterator[str]:
    """Of effects, how many come before their causes, by shards, in a partition and in four."""
    yield "| shards | one partition | four |"
    yield "|---|---|---|"
    for shards in (1, 2, 4, 8):
        shares = []
        for partitions in (1, 4):
            early = total = 0
            for seed in range(seeds):
                world = Sagas(seed=seed, shards=shards, partitions=partitions)
                world.play()
                early += len(too_early(world.came))
                total += sum(
                    item.event is not None and item.event.causation_id is not None for item in world.came
                )
            shares.append(f"{early / total:.1%}")
        yield f"| {shards} | {shares[0]} | {shares[1]} |"


if __name__ == "__main__":
    for line in table():
        print(line)  # noqa: T201
