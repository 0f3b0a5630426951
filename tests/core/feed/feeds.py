"""A source, its index and its readers in memory, with every request on record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from epochal.feed.indexer import Indexer
from epochal.feed.reader import FeedReader
from epochal.feed.stream_history import StreamHistory
from epochal.feed.stream_records import Record
from epochal.index.epochs import STANDARD, EpochLimits
from epochal.index.marks import decode_leaf, hash_of, hash_place
from epochal.layout.changes import Change, Span
from epochal.layout.source import Source
from epochal.model.events import Event
from epochal.model.outcomes import Appended
from epochal.pages.port import appended, pages_source
from epochal.plan.ops import BatchGet, Get, Op, Query, Reply, Transact
from epochal.plan.values import Item, Key, number, text
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams, memory_tables

Fault = Callable[[Op], None]
"""Sees each request before it is performed, and may raise."""

NAME: Final = "tips"
"""The name whose partitions begin at 0; streams are stored as pages all the same."""


def no_fault(_: Op) -> None:
    """Every request goes through."""


@dataclass
class Clock:
    """Time that passes only while someone sleeps; `at_sleep` happens meanwhile."""

    now: float = 0.0
    sleeps: int = 0
    at_sleep: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps += 1
        self.at_sleep()


class History(StreamHistory):
    """Reads the streams of the source that the feed knows as `NAME`."""

    @property
    def name(self) -> str:
        return NAME

    def on(self, driver: Driver) -> History:
        return History(self.store.on(driver))


@dataclass
class Feeds:
    """Tables `streams` and `index`, a store over the one, indexers and readers over the other."""

    tables: MemoryTables = field(default_factory=memory_tables)
    limits: EpochLimits = STANDARD
    partitions: int = 1
    ops: list[Op] = field(default_factory=list)
    fault: Fault = no_fault
    clock: Clock = field(default_factory=Clock)
    meter: Meter = field(default_factory=Meter)
    at_once: int = 1
    now: Callable[[], int] = time.time_ns
    table: str = "streams"

    @property
    def driver(self) -> Driver:
        return Driver(
            execute=self.execute,
            meter=self.meter,
            patience=Patience(seconds=1.0),
            clock=self.clock,
            sleep=self.clock.sleep,
            luck=lambda: 1.0,
            at_once=self.at_once,
        )

    @property
    def streams(self) -> Streams:
        return memory_streams(self.tables)

    def source(self) -> Source:
        source = pages_source("streams", self.partitions)
        return replace(source, name=NAME, appended=appended_to)

    def history(self, streams: Streams) -> StreamHistory:
        return History(streams)

    def indexer(self) -> Indexer:
        """A new process: it holds nothing yet."""
        return Indexer(
            driver=self.driver,
            index_table="index",
            sources=(self.source(),),
            limits=self.limits,
            now=self.now,
        )

    def reader(self, streams: Streams | None = None) -> FeedReader:
        histories = () if streams is None else (self.history(streams),)
        return FeedReader(driver=self.driver, table="index", histories=histories)

    def append(self, stream: str, *types: str) -> Appended:
        """Append events of these types, whatever the stream's version."""
        outcome = self.streams.append(stream, [Event(type=kind, data=kind.encode()) for kind in types])
        assert isinstance(outcome, Appended)
        return outcome

    def records(self, since: int = 0) -> list[Record]:
        """What the source's stream carries, from its change `since` on."""
        changes = self.tables.changes(self.table)
        return [record(at, changes[at], self.table) for at in range(since, len(changes))]

    def feed(self, partition: int = 0) -> list[tuple[str, int, str]]:
        """All of a partition's feed: stream, index, type."""
        pages = self.reader().read(partition)
        return [(item.stream, item.index, item.type) for page in pages for item in page.items]

    def tip(self, stream: str) -> Item | None:
        """The Tip of a stream of the index."""
        wanted = {"p": {"S": stream}, "i": {"N": "2147483647"}}
        return self.tables.execute(Get(table="index", key=wanted)).item  # type: ignore[union-attr]

    def marks(self) -> dict[str, int]:
        """Every mark: next index by partition and stream, of streams that the feed has."""
        leaves = [(item["p"]["S"], decode_leaf(item)) for item in self.tables.items("index") if is_leaf(item)]
        found: dict[str, int] = {}
        for name, leaf in leaves:
            partition = int(name.removeprefix("$Marks-"))
            reader = FeedReader(driver=Driver(execute=self.tables.execute, meter=Meter()), table="index")
            items = (item for page in reader.read(partition) for item in page.items)
            for stream in dict.fromkeys(item.stream for item in items):
                hashed = hash_of(stream)
                if leaf.start <= hash_place(hashed) < leaf.end and leaf.mark(hashed):
                    found[f"{partition}_{stream}"] = leaf.mark(hashed)
        return found

    def execute(self, op: Op) -> Reply:
        """The interpreter: on record, and through `fault`."""
        self.ops.append(op)
        self.fault(op)
        return self.tables.execute(op)


def is_leaf(item: Item) -> bool:
    """Whether an item of the index has marks."""
    return item["p"]["S"].startswith("$Marks-")


def record(place: int, image: Item, table: str = "streams") -> Record:
    """A stream record; sequence numbers sort as text, as AWS's do."""
    return Record(table=table, sequence_number=f"{place:021d}", image=image)


def head(stream: str, following: int, *types: str) -> Item:
    """A made-up image of a head whose latest write appended events of these types, of whatever names."""
    return {
        "p": text(stream),
        "i": number(0),
        "n": number(following),
        "types": {"L": [text(kind) for kind in types]},
    }


def appended_to(item: Item) -> Change | None:
    """What the image of a page says, or one that is made up."""
    if "types" not in item:
        return appended(item)
    types = tuple(kind["S"] for kind in item["types"]["L"])
    return Span(item["p"]["S"], int(item["n"]["N"]) - len(types), types)


def spans_of(texts: Iterable[str]) -> list[Span]:
    """`"A:3:xy"` is events 3 and 4 of stream A, of types x and y."""
    fields = (text.split(":") for text in texts)
    return [Span(stream, int(index), tuple(types)) for stream, index, types in fields]


def keys_of(op: Op) -> tuple[Key, ...]:
    """Whatever a request touches, by key."""
    match op:
        case BatchGet(keys=keys):
            return keys
        case Query(partition=(name, value)):
            return ({name: value},)
        case Transact(writes=writes):
            return tuple(key for write in writes for key in keys_of(write))
        case Get(key=key):
            return (key,)
        case _:
            return (op.item if hasattr(op, "item") else op.key,)


def streams_of(ops: Iterable[Op]) -> list[str]:
    """Partition keys that requests touched, in order."""
    return [key["p"]["S"] for op in ops for key in keys_of(op)]


def is_read(op: Op) -> bool:
    """Whether a request only reads."""
    return isinstance(op, Get | BatchGet | Query)
