"""The cost of the index if a table has many shards: units, refused writes, delay, and the functions' billed time.

Each shard of a table's stream has its own invocations of the indexer, which are simulated as processes that all write
to the active epoch of one partition of the feed. The indexer's real code runs with a virtual clock: a request takes
6 ms and is performed in the middle of them, code takes no time, and an invocation begins one batching window after its
first record. Heads are appended at random times. Tables are in memory; units are DynamoDB's rules applied to the real
items.

Alternatively the table sends its changes to a Kinesis stream (`40 > 1`: 40 shards of the table to one of Kinesis). Then
the shards of that stream have the invocations, however many shards the table has. According to Lambda's documentation
it polls a shard once a second, without a further window; `at once` polls again right after each invocation. `few` uses
ten streams. Some figures are assumed because nobody has measured them: DynamoDB takes `SENDING` seconds on average and
half a second at most to send a change, and sends one in a hundred twice, so changes arrive out of order.

Bounds: write units, and the 99th percentile of the delay of heads, beside each load.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench.bill import GIGABYTES, PRICES
from bench.report import Report
from epochal.contrib.equinox.port import tips_source
from epochal.feed.indexer import Indexer
from epochal.feed.reader import FeedReader
from epochal.feed.stream_records import Record
from epochal.plan.ops import Op, Put, Refusal, Reply, Update
from epochal.plan.values import NONE, Item, Units
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables

SOURCE = tips_source("tips")

REQUEST = 0.006
"""Duration of a request in seconds."""

WINDOW = 1.0
"""Length of a mapping's batching window in seconds: the default of a stage."""

SENDING = 0.05
"""Average seconds until a change reaches Kinesis; AWS documents milliseconds."""

LONGEST = 0.5
TWICE = 0.01
CHANGE = 0.10 + 0.014
"""Dollars for a million changes of up to 1 KB that DynamoDB sends and Kinesis receives, without the price of shards."""

BATCH = 1_000
STREAMS = 4_000
SETTLED = 5.0
"""Least number of seconds at the beginning that are not measured."""

SECONDS = 30.0
"""Number of seconds that are measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A rate of appends to a table, and the bounds that indexing them must keep.

    Attributes:
        shards: number of shards of the table's stream.
        rate: heads appended per second, over all shards.
        units: largest number of write units for 1,000 heads.
        late: bound, in seconds, of the 99th percentile of the delay from an append to the index.
        together: whether the batching windows of all shards begin at the same moments, as after an outage.
        kinesis: number of shards of the Kinesis stream that the table sends its changes to; 0 if the table's own stream
            is read. A shard takes 1,000 changes a second.
        streams: number of streams that the heads belong to. If there are few, a head more often arrives after the next
            one of its stream.
        eager: whether Lambda polls again immediately after an invocation, rather than once a second.
        window: length of the mapping's batching window in seconds. In a window longer than the default, shards begin at
            random moments.
    """

    shards: int
    rate: float
    units: float
    late: float
    together: bool = False
    kinesis: int = 0
    eager: bool = False
    streams: int = STREAMS
    window: float = WINDOW

    @property
    def settled(self) -> float:
        """Seconds at the beginning that are not measured, while processes are cold."""
        return max(SETTLED, 3 * self.window)

    @property
    def following(self) -> int:
        """Number of shards that the indexer follows."""
        return self.kinesis or self.shards


LOADS = (
    Load(shards=1, rate=100, units=22, late=1.1),
    Load(shards=4, rate=100, units=65, late=1.2),
    Load(shards=40, rate=100, units=450, late=1.2),
    Load(shards=1, rate=1_000, units=14, late=1.1),
    Load(shards=4, rate=1_000, units=18, late=1.2),
    Load(shards=40, rate=1_000, units=95, late=1.5),
    Load(shards=40, rate=1_000, units=260, late=2.0, together=True),
    Load(shards=100, rate=1_000, units=270, late=3.5),
    Load(shards=200, rate=100, units=1_800, late=2.2),
    Load(shards=200, rate=1_000, units=400, late=6.5),
    Load(shards=400, rate=1_000, units=1_500, late=12.0),
    Load(shards=200, rate=1_000, units=60, late=12.0, window=10),
    Load(shards=40, rate=100, units=22, late=1.2, kinesis=1),
    Load(shards=40, rate=1_000, units=16, late=1.2, kinesis=2),
    Load(shards=40, rate=1_000, units=22, late=1.2, kinesis=4),
    Load(shards=40, rate=100, units=16, late=1.2, kinesis=1, streams=10),
    Load(shards=40, rate=100, units=45, late=1.2, kinesis=1, eager=True),
    Load(shards=40, rate=1_000, units=105, late=1.7, kinesis=2, eager=True),
)


class Clock:
    """Virtual time. One thread runs at a time, until it waits for a later moment."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, threading.Lock]] = []
        self._turns = itertools.count()
        self._idle = threading.Lock()
        self._idle.acquire()

    def wait(self, seconds: float) -> None:
        """Let other threads run until `seconds` later."""
        mine = self._enter(seconds)
        self._idle.release()
        mine.acquire()

    def run(self, bodies: list[Callable[[], None]]) -> None:
        """Run functions concurrently until all have returned."""
        errors: list[BaseException] = []

        def enter(body: Callable[[], None], begins: threading.Lock) -> None:
            begins.acquire()
            try:
                body()
            except BaseException as error:  # noqa: BLE001  it is raised again below
                errors.append(error)
            self._idle.release()

        for body in bodies:
            threading.Thread(target=enter, args=(body, self._enter(0)), daemon=True).start()
        while self._waiting and not errors:
            self.now, _, lock = heapq.heappop(self._waiting)
            lock.release()
            self._idle.acquire()
        if errors:
            raise errors[0]

    def _enter(self, seconds: float) -> threading.Lock:
        lock = threading.Lock()
        lock.acquire()
        heapq.heappush(self._waiting, (self.now + seconds, next(self._turns), lock))
        return lock


@dataclass(slots=True)
class Measured:
    """Figures of a load, measured once the processes are warm.

    Attributes:
        invocations: number of invocations of the indexer.
        paid: billed seconds of these invocations.
        entries: number of index entries that were written.
        refused: number of writes that were refused.
        lateness: delay in seconds from append to index, for each head.
        healed: number of events that were read from the store because they arrived after later ones.
    """

    load: Load
    invocations: int = 0
    paid: float = 0.0
    requests: int = 0
    entries: int = 0
    refused: int = 0
    units: Units = NONE
    lateness: list[float] = field(default_factory=list)
    healed: int = 0

    @property
    def thousands(self) -> float:
        """Number of heads, in thousands."""
        return len(self.lateness) / 1_000

    @property
    def write_units(self) -> float:
        """Write units per 1,000 heads."""
        return self.units.write / self.thousands

    @property
    def dollars(self) -> float:
        """Dollars for indexing a million heads of up to 1 KB: tables, function and, if used, Kinesis."""
        prices = (
            (PRICES["write unit"], self.units.write),
            (PRICES["read unit"], self.units.read),
            (PRICES["invocation"], self.invocations),
            (PRICES["gigabyte-second"], self.paid * GIGABYTES),
        )
        spent = sum(price * quantity for (price, _), quantity in prices) * 1_000 / self.thousands
        return spent + (CHANGE * (1 + TWICE) if self.load.kinesis else 0.0)

    def late(self, share: float) -> float:
        """Return the delay in seconds that this share of the heads did not exceed."""
        return sorted(self.lateness)[int(share * (len(self.lateness) - 1))]

    def take(self, op: Op, reply: Reply) -> None:
        """Count a request."""
        self.requests += 1
        self.units += reply.units
        if isinstance(op, Put | Update):
            self.refused += isinstance(reply, Refusal)
            key = op.item if isinstance(op, Put) else op.key
            epoch = key["p"]["S"].startswith("$AppendsEpoch-") and key["i"]["N"] == "2147483647"
            self.entries += epoch and not isinstance(reply, Refusal)

    def fail(self) -> None:
        """Exit with an error if a bound is exceeded."""
        if self.write_units > self.load.units:
            raise SystemExit(f"{self.load}: {self.write_units:.0f} write units")
        if self.late(0.99) > self.load.late:
            raise SystemExit(f"{self.load}: {self.late(0.99):.2f} s")


@dataclass(slots=True)
class World:
    """The shards of a table, and the invocations of the indexer that read them."""

    load: Load
    seconds: float = SECONDS
    clock: Clock = field(default_factory=Clock)
    tables: MemoryTables = field(default_factory=memory_tables)
    measured: Measured = field(init=False)
    written: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.measured = Measured(load=self.load)

    def play(self) -> Measured:
        """Simulate all shards, and check that the feed then contains every head in order."""
        follow = self._kinesis_shard if self.load.kinesis else self._shard
        self.clock.run([lambda shard=shard: follow(shard) for shard in range(self.load.following)])  # type: ignore[misc]
        reached = Counter[str]()
        for page in FeedReader(driver=Driver(execute=self.tables.execute, meter=Meter()), table="index").read(
            0
        ):
            for item in page.items:
                assert item.index == reached[item.stream]
                reached[item.stream] += 1
        assert sum(reached.values()) >= len(self.measured.lateness)
        return self.measured

    def _shard(self, number: int) -> None:
        indexer = self._indexer(number)
        indexer.register()
        appended, clock, ready = self._appends(number), self.clock, list[tuple[float, Record]]()
        clock.wait(random.Random(f"begins {number}").random() * (self.load.window - WINDOW))
        following = next(appended)
        while following[0] < self.load.settled + self.seconds:
            clock.wait(max(0.0, following[0] - clock.now))
            ends = self._window_end()
            while len(ready) < BATCH and following[0] <= ends:
                ready.append(following)
                following = next(appended)
            clock.wait(max(0.0, (ready[-1][0] if len(ready) == BATCH else ends) - clock.now))
            self._invoke(number, indexer, ready)
            ready = []

    def _kinesis_shard(self, number: int) -> None:
        """Poll a Kinesis shard once a second, as Lambda does; a change that is sent twice counts once."""
        indexer = self._indexer(number)
        indexer.register()
        arrived, next_poll = self._arrivals(number), random.Random(f"asked {number}").random()
        following, seen = next(arrived), set[str]()
        while next_poll < self.load.settled + self.seconds:
            self.clock.wait(max(0.0, next_poll - self.clock.now))
            until = self.clock.now
            while following[0] <= until:
                ready: list[tuple[float, Record]] = []
                while len(ready) < BATCH and following[0] <= until:
                    ready.append(following[1])
                    following = next(arrived)
                ready.sort(key=lambda arrival: arrival[0])  # as `read_records` does
                first = [arrival for arrival in ready if arrival[1].sequence_number not in seen]
                seen.update(arrival[1].sequence_number for arrival in first)
                self._invoke(number, indexer, ready, first)
                until = self.clock.now if self.load.eager else until
            next_poll = max(next_poll + 1, self.clock.now)

    def _invoke(
        self,
        number: int,
        indexer: Indexer,
        ready: list[tuple[float, Record]],
        first: list[tuple[float, Record]] | None = None,
    ) -> None:
        began = self.clock.now
        report = indexer.index([record for _, record in ready])
        assert (report.failed, report.set_aside) == ((), 0)
        # A batch is in the index once reactions are notified; what the function does afterwards is billed, too.
        indexed = self.written.pop(number, self.clock.now)
        if self._counts():
            self.measured.invocations += 1
            self.measured.paid += self.clock.now - began
            self.measured.lateness += [indexed - at for at, _ in (ready if first is None else first)]
            self.measured.healed += sum(result.healed for result in report.by_partition.values())

    def _arrivals(self, number: int) -> Iterator[tuple[float, tuple[float, Record]]]:
        """Yield the changes that arrive at a Kinesis shard with their arrival times, in order of arrival."""
        rng, waiting = random.Random(f"sending {number}"), list[tuple[float, int, tuple[float, Record]]]()
        serial = itertools.count()
        for head in self._appends(number):
            while waiting and waiting[0][0] <= head[0]:
                arrives, _, change = heapq.heappop(waiting)
                yield arrives, change
            self.tables.execute(
                Put(table="tips", item=head[1].image)
            )  # the indexer reads late events from there
            for _ in range(1 + (rng.random() < TWICE)):
                arrives = head[0] + min(LONGEST, rng.expovariate(1 / SENDING))
                heapq.heappush(waiting, (arrives, next(serial), head))

    def _window_end(self) -> float:
        now = self.clock.now
        window = self.load.window
        return (now // window + 1) * window if self.load.together else now + window

    def _counts(self) -> bool:
        return self.clock.now >= self.load.settled

    def _indexer(self, number: int) -> Indexer:
        luck = random.Random(f"luck {number}")

        def execute(op: Op) -> Reply:
            self.clock.wait(REQUEST / 2)
            reply = self.tables.execute(op)
            if self._counts():
                self.measured.take(op, reply)
            self.clock.wait(REQUEST / 2)
            return reply

        driver = Driver(
            execute=execute,
            meter=Meter(),
            clock=lambda: self.clock.now,
            sleep=self.clock.wait,
            luck=luck.random,
        )
        return Indexer(
            driver=driver,
            index_table="index",
            sources=(SOURCE,),
            now=lambda: int((1_700_000_000 + self.clock.now) * 1e9),
            fresh=random.Random(f"ids {number}").randbytes,
            publish=lambda _: self.written.update({number: self.clock.now}),
        )

    def _appends(self, number: int) -> Iterator[tuple[float, Record]]:
        """Yield the times at which heads of a shard are appended, and their stream records."""
        shards = self.load.following
        rng, at, versions = random.Random(f"appends {number}"), 0.0, Counter[str]()
        for serial in itertools.count():
            at += rng.expovariate(self.load.rate / shards)
            which = rng.randrange(max(1, self.load.streams // shards)) * shards + number
            stream = f"Order-{which * 2_654_435_761 % 2**32:08x}"
            versions[stream] += 1
            yield (
                at,
                Record(
                    table="tips", sequence_number=f"{number}-{serial}", image=_head(stream, versions[stream])
                ),
            )


def _head(stream: str, version: int) -> Item:
    return {
        "p": {"S": stream},
        "i": {"N": "2147483647"},
        "n": {"N": str(version)},
        "a": {"N": "1"},
        "c": {"L": [{"S": "OrderPaid" if at else "OrderPlaced"} for at in range(version)]},
        "e": {"L": [{"M": {"t": {"S": "2026-11-23T08:50:22.3631515+00:00"}}}] * version},
        "etag": {"S": "0" * 32},
    }


def main() -> None:
    """Simulate every load, print the figures, and exit with an error if a bound is exceeded."""
    results = [World(load=load).play() for load in LOADS]
    Report(
        title=f"Shards that write to one partition of the feed: for 1,000 heads, over {SECONDS:.0f} s",
        columns=[
            "shards",
            "heads/s",
            "WCU",
            "RCU",
            "requests",
            "entries",
            "refused/entry",
            "healed",
            "ms paid",
            "$ a million",
            "p50",
            "p99",
        ],
        rows=[_row(result) for result in results],
    ).print()
    for result in results:
        result.fail()


def _row(result: Measured) -> tuple[str, ...]:
    thousands = result.thousands
    return (
        _shards(result.load),
        f"{result.load.rate:,.0f}",
        f"{result.write_units:,.0f}",
        f"{result.units.read / thousands:,.0f}",
        f"{result.requests / thousands:,.0f}",
        f"{result.entries / thousands:,.0f}",
        f"{result.refused / max(1, result.entries):.2f}",
        f"{result.healed / thousands:,.1f}",
        f"{result.paid / thousands * 1_000:,.0f}",
        f"{result.dollars:.2f}",
        f"{result.late(0.5):.2f} s",
        f"{result.late(0.99):.2f} s",
    )


def _shards(load: Load) -> str:
    if load.kinesis:
        besides = " at once" if load.eager else " few" if load.streams != STREAMS else ""
        return f"{load.shards} > {load.kinesis}{besides}"
    if load.window != WINDOW:
        return f"{load.shards} window {load.window:.0f}"
    return f"{load.shards}{' at once' if load.together else ''}"


if __name__ == "__main__":
    main()
