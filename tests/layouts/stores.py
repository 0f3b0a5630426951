"""Stores of all three layouts over one set of tables in memory, their indexer, and a reader of the feed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from epochal.contrib.equinox.port import tips_source
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.event_store_adapter.history import AggregateHistory
from epochal.contrib.event_store_adapter.ids import AggregateId, AggregateTypes
from epochal.contrib.event_store_adapter.items import JournalSite, KeyResolver
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended
from epochal.contrib.event_store_adapter.port import journal_source
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban.history import TagHistory
from epochal.contrib.sekiban.items import Keys, TaggedEvent, TagSite
from epochal.contrib.sekiban.port import dcb_source
from epochal.contrib.sekiban.store import DcbEvents
from epochal.feed.indexer import Indexer
from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedItem
from epochal.feed.stream_history import StreamHistory
from epochal.feed.stream_records import Record
from epochal.index.epochs import STANDARD, EpochLimits
from epochal.layout.source import Source
from epochal.model.events import Event
from epochal.plan.conditions import Absent, equals
from epochal.plan.ops import Done, Execute, Get, Op, Put, Reply, Set, Transact, Update
from epochal.plan.values import Item, binary, number, text
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables

JOURNAL = JournalSite(
    journal="journal",
    snapshot="snapshot",
    keys=KeyResolver(shards=4),
    types=AggregateTypes(["user-account"]),
)
HEADS = ("tips", "snapshot", "tags")
START = {"tips": 0, "journal": 10_000, "dcb": 20_000}

ALICE = AggregateId(type="user-account", value="alice-1")
BOB = AggregateId(type="user-account", value="bob")


def tag_site(service: str = "", *, type_heads: bool = False) -> TagSite:
    return TagSite(events="events", tags="tags", keys=Keys(service=service), type_heads=type_heads)


@dataclass
class Layouts:
    """What a deployment has, in memory; every request is on record."""

    tables: MemoryTables = field(default_factory=memory_tables)
    site: TagSite = field(default_factory=tag_site)
    partitions: int = 1
    limits: EpochLimits = STANDARD
    ops: list[Op] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)

    @property
    def driver(self) -> Driver:
        return Driver(execute=self.execute, meter=Meter(), patience=Patience(seconds=0.1))

    @property
    def streams(self) -> Streams:
        return Streams(driver=self.driver, table="tips", layout=Tips())

    @property
    def aggregates(self) -> AggregateStore:
        return AggregateStore(driver=self.driver, site=JOURNAL)

    @property
    def tagged(self) -> DcbEvents:
        return DcbEvents(driver=self.driver, site=self.site)

    @property
    def sources(self) -> tuple[Source, ...]:
        return (
            tips_source("tips", self.partitions),
            journal_source(JOURNAL, self.partitions),
            dcb_source(self.site, self.partitions),
        )

    def execute(self, op: Op) -> Reply:
        self.ops.append(op)
        return self.tables.execute(op)

    def indexer(self) -> Indexer:
        """A new process: it holds nothing yet."""
        return Indexer(driver=self.driver, index_table="index", sources=self.sources, limits=self.limits)

    def reader(self) -> FeedReader:
        return FeedReader(
            driver=self.driver,
            table="index",
            histories=(
                StreamHistory(self.streams),
                AggregateHistory(self.aggregates),
                TagHistory(self.tagged),
            ),
        )

    def records(self, table: str) -> list[Record]:
        """What the table's stream carries since it was last asked."""
        changes = self.tables.changes(table)
        fresh = range(self.seen.get(table, 0), len(changes))
        self.seen[table] = len(changes)
        return [Record(table=table, sequence_number=f"{at:021d}", image=changes[at]) for at in fresh]

    def index(self) -> None:
        """Index all that is new, table by table, as a deployed function would."""
        indexer = self.indexer()
        indexer.register()
        for table in HEADS:
            report = indexer.index(self.records(table))
            assert (report.failed, report.set_aside) == ((), 0)

    def feed(self, source: str) -> list[tuple[str, int, str]]:
        """A source's feed, its partition alone: stream, index, type."""
        return [(item.stream, item.index, item.type) for item in self.items(source)]

    def items(self, source: str, *, data: bool = False, once: bool = False) -> list[FeedItem]:
        pages = self.reader().read(START[source], data=data, once=once, limit=7)
        return [item for page in pages for item in page.items]

    def append(self, stream: str, *types: str) -> None:
        self.streams.append(stream, [Event(type=kind, data=kind.encode()) for kind in types])

    def persist(self, aggregate: AggregateId, *types: str) -> None:
        new = [AggregateEvent(type=kind, data=json.dumps(kind).encode()) for kind in types]
        assert isinstance(self.aggregates.append(aggregate, new, snapshot=b'{"seq_nr":0}'), AggregateAppended)

    def tag(self, kind: str, *tags: str, expires: int | None = None) -> None:
        self.tagged.append(
            [TaggedEvent(type=kind, data=json.dumps(kind).encode(), tags=tags, expires=expires)]
        )

    def persist_elsewhere(self, aggregate: AggregateId, *types: str) -> None:
        """What event-store-adapter does for each of these: it knows nothing of our attributes."""
        for kind in types:
            persist_elsewhere(self.tables.execute, aggregate, kind)


def persist_elsewhere(execute: Execute, aggregate: AggregateId, kind: str) -> None:
    """One event by event-store-adapter: the first puts the snapshot, later ones raise its version."""
    key = JOURNAL.keys.key(aggregate, 0)
    head = item_of(execute, "snapshot", key)
    version = 0 if head is None else int(head["version"]["N"])
    seq_nr = 1
    while item_of(execute, "journal", JOURNAL.keys.key(aggregate, seq_nr)) is not None:
        seq_nr += 1
    journal = {
        **JOURNAL.keys.key(aggregate, seq_nr),
        "aid": text(str(aggregate)),
        "seq_nr": number(seq_nr),
        "payload": binary(json.dumps({"type": kind, "data": kind}).encode()),
        "occurred_at": number(481),
    }
    snapshot: Put | Update = Update(
        table="snapshot",
        key=key,
        sets=(Set("version", number(version + 1)),),
        condition=equals("version", number(version)),
    )
    if head is None:
        payload = binary(b'{"type":"State","data":{}}')
        new = {"aid": text(str(aggregate)), "seq_nr": number(0), "payload": payload, "ttl": number(0)}
        item = {**key, **new, "version": number(1)}
        snapshot = Put(table="snapshot", item=item, condition=Absent("pkey"))
    reply = execute(Transact(writes=(snapshot, Put(table="journal", item=journal))))
    assert isinstance(reply, Done)


def item_of(execute: Execute, table: str, key: Item) -> Item | None:
    """An item by its key."""
    return execute(Get(table=table, key=key)).item  # type: ignore[union-attr]


def of_table(ops: Iterable[Op], table: str) -> list[Op]:
    """The requests on one table."""
    return [op for op in ops if getattr(op, "table", "") == table]
