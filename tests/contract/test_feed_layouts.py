"""From appends of every layout, over DynamoDB's own stream records, to their events in the feed: on AWS's DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import boto3
import pytest

from epochal.care.mender import Mender
from epochal.care.quarantined import PoisonRecords
from epochal.care.verify import Verifier
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT, site_of
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban.items import EVENTS, TAGS, tag_site_of
from epochal.contrib.sekiban.store import DcbEvents
from epochal.dynamo.interpreter import interpreter
from epochal.dynamo.stores import Place, open_streams
from epochal.feed.indexer import Indexer, Report, sources_of
from epochal.feed.reader import reader_of
from epochal.feed.results import FeedItem
from epochal.feed.stream_records import read_records
from epochal.index.epochs import EpochLimits
from epochal.layout.registry import partitions_of
from epochal.layout.tables import INDEX
from epochal.model.events import Event
from epochal.pages.items import STREAMS
from epochal.pages.reading import query
from epochal.plan.conditions import equals
from epochal.plan.ops import Delete, Op, Put, Set, Transact, Update
from epochal.plan.values import binary, number, text
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams
from tests.simulation.index_event_source import records_of
from tests.support.tables import Tables

pytestmark = pytest.mark.ddbl

ALICE = AggregateId(type="user-account", value="alice-1")


@dataclass
class Deployment:
    """Tables of all layouts, and an indexer that has been shown their streams so far."""

    tables: Tables
    table_streams: Any
    settings: Settings = field(init=False)
    shown: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = Settings.of(
            tips_table=self.tables.create(TIPS),
            index_table=self.tables.create(INDEX),
            journal_table=self.tables.create(JOURNAL),
            snapshot_table=self.tables.create(SNAPSHOT),
            events_table=self.tables.create(EVENTS),
            tags_table=self.tables.create(TAGS),
            streams_table=self.tables.create(STREAMS),
            type_heads=True,
            tips_partitions=2,
            dcb_partitions=3,
            aggregate_types=("user-account",),
        )
        self.execute = interpreter(self.tables.client)
        self.driver = Driver(execute=self.execute, meter=Meter())
        self.tips = Streams(driver=self.driver, table=self.settings.table("tips"), layout=Tips())
        self.aggregates = AggregateStore(driver=self.driver, site=site_of(self.settings))
        self.tagged = DcbEvents(driver=self.driver, site=tag_site_of(self.settings))
        endpoint = self.tables.endpoint
        place = Place(endpoint=endpoint.url, region=endpoint.region)
        self.streams = open_streams(self.settings.table("streams"), place=place)
        self.indexer = Indexer(
            driver=self.driver,
            index_table=self.settings.index_table,
            sources=sources_of(self.settings),
            limits=EpochLimits(entries=3),
        )
        self.indexer.register()
        self.reader = reader_of(self.settings, self.driver, BodyCodec())

    def perform(self, *ops: Op) -> None:
        for op in ops:
            self.execute(op)

    def fresh(self, table: str) -> list[dict[str, Any]]:
        """Records of a table's stream that have not been asked for before."""
        arn = self.tables.client.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        (shard,) = records_of(self.table_streams, arn)
        before, self.shown[table] = self.shown.get(table, 0), len(shard)
        return shard[before:]

    def index(self) -> list[Report]:
        """Index all that is new, in batches of four of one table."""
        batches = [
            records[start : start + 4]
            for source in self.indexer.sources
            for records in [self.fresh(source.table)]
            for start in range(0, len(records), 4)
        ]
        return [self.indexer.index(read_records(batch)) for batch in batches]

    def feed(self, first: int, *, once: bool = False) -> list[FeedItem]:
        """A source's feed: all of its partitions."""
        return [
            item
            for partition in partitions_of(self.settings)
            if first <= partition < first + 10_000
            for page in self.reader.read(partition, data=True, once=once, limit=5)
            for item in page.items
        ]

    def persist_elsewhere(self, version: int, seq_nr: int) -> None:
        """What event-store-adapter sends for `persistEvent`."""
        site = self.aggregates.site
        journal = {
            **site.keys.key(ALICE, seq_nr),
            "aid": text(str(ALICE)),
            "seq_nr": number(seq_nr),
            "payload": binary(b'{"type":"Elsewhere","data":{}}'),
            "occurred_at": number(481),
        }
        head = Update(
            table=site.snapshot,
            key=site.keys.key(ALICE, 0),
            sets=(Set("version", number(version + 1)),),
            condition=equals("version", number(version)),
        )
        self.perform(Transact(writes=(head, Put(table=site.journal, item=journal))))


@pytest.fixture
def deployed(ddbl_tables: Tables) -> Iterator[Deployment]:
    endpoint = ddbl_tables.endpoint
    client = boto3.client("dynamodbstreams", endpoint_url=endpoint.url, region_name=endpoint.region)
    yield Deployment(tables=ddbl_tables, table_streams=client)
    client.close()


def persist(deployed: Deployment, *types: str) -> None:
    new = [AggregateEvent(type=kind, data=b"{}") for kind in types]
    assert isinstance(deployed.aggregates.append(ALICE, new, snapshot=b"{}"), AggregateAppended)


def places(items: list[FeedItem]) -> dict[str, list[tuple[int, str]]]:
    """Index and type by stream; the event says the same."""
    found: dict[str, list[tuple[int, str]]] = {}
    for item in items:
        assert item.event is not None
        assert (item.event.stream, item.event.index, item.event.type) == (item.stream, item.index, item.type)
        found.setdefault(item.stream, []).append((item.index, item.type))
    return found


@pytest.mark.parametrize("appends", [7, pytest.param(12, marks=pytest.mark.proof)])
def test_what_is_appended_in_any_layout_is_in_the_feed_with_its_event(
    deployed: Deployment, appends: int
) -> None:
    expected: dict[str, list[tuple[int, str]]] = {}
    for k in range(appends):
        deployed.tips.append(f"Order-{k % 3}", [Event(type=f"T{k}", data=b"{}")])
        expected.setdefault(f"Order-{k % 3}", []).append((k // 3, f"T{k}"))
        deployed.streams.append(f"Cart-{k % 3}", [Event(type=f"T{k}", data=b"{}")])
        expected.setdefault(f"Cart-{k % 3}", []).append((k // 3, f"T{k}"))
        persist(deployed, f"T{k}")
        expected.setdefault(str(ALICE), []).append((k, f"T{k}"))
        deployed.tagged.append(
            [Event(type=f"T{k}", data=b"{}", tags=("course:1", f"student:{k % 2}") if k % 4 else ())]
        )
        for tag in ("course:1", f"student:{k % 2}") if k % 4 else ("",):
            own = expected.setdefault(tag, [])
            own.append((len(own), f"T{k}"))
        if k % 5 == 0:
            deployed.index()
    assert not any(report.failed or report.set_aside for report in deployed.index())
    assert {
        **places(deployed.feed(0)),
        **places(deployed.feed(10_000)),
        **places(deployed.feed(20_000)),
        **places(deployed.feed(30_000)),
    } == expected
    once = [item.type for item in deployed.feed(20_000, once=True)]
    assert sorted(once) == sorted(f"T{k}" for k in range(appends))


def test_a_stream_of_pages_is_appended_to_by_the_library_indexed_fed_reacted_to_and_verified(
    deployed: Deployment,
) -> None:
    seen: list[tuple[str, int, str, bytes]] = []

    def board(delivery: Delivery) -> None:
        seen.extend((each.stream, each.index, each.type, each.data) for each in delivery.events)

    facts = [(f"T{k}", Random(k).randbytes(900)) for k in range(40)]
    for kind, data in facts:
        deployed.streams.append("Cart-1", [Event(type=kind, data=data)])
    assert len(list(deployed.driver.ask(query(deployed.streams.table, "Cart-1", 0, 40)).items)) > 1
    verifier = Verifier(
        mender=Mender(driver=deployed.driver, index_table=deployed.settings.index_table),
        sources=deployed.indexer.sources,
        settle=0.0,
    )
    assert {finding.stream for finding in verifier.findings()} == {"Cart-1"}
    assert not any(report.failed or report.set_aside for report in deployed.index())
    assert list(verifier.findings()) == []
    reaction = Reaction(name="board", handler=board, sources=frozenset({"pages"}))
    Reactor(member=Member(reaction=reaction, reader=deployed.reader)).run(30_000, seconds=30)
    assert seen == [("Cart-1", k, kind, data) for k, (kind, data) in enumerate(facts)]


def test_what_another_library_persists_is_in_the_feed_too(deployed: Deployment) -> None:
    persist(deployed, "Ours")
    deployed.index()
    deployed.persist_elsewhere(version=1, seq_nr=2)
    deployed.persist_elsewhere(version=2, seq_nr=3)
    persist(deployed, "Ours")
    deployed.persist_elsewhere(version=4, seq_nr=5)
    deployed.index()
    kinds = ["Ours", "Elsewhere", "Elsewhere", "Ours", "Elsewhere"]
    assert places(deployed.feed(10_000)) == {str(ALICE): list(enumerate(kinds))}


@pytest.mark.parametrize("lost", [10, pytest.param(30, marks=pytest.mark.proof)])
def test_records_that_never_arrive_are_healed_from_the_store_of_each_layout(
    deployed: Deployment, lost: int
) -> None:
    """As many of each layout's are lost; the next append tells of them."""

    def append(kind: str) -> None:
        deployed.tips.append("Order-1", [Event(type=kind, data=b"{}")])
        deployed.streams.append("Cart-1", [Event(type=kind, data=b"{}")])
        persist(deployed, kind)
        deployed.tagged.append([Event(type=kind, data=b"{}", tags=("course:1",))])

    for k in range(lost):
        append(f"T{k}")
    for source in deployed.indexer.sources:
        deployed.fresh(source.table)
    append(f"T{lost}")
    reports = deployed.index()
    assert sum(ingested.healed for report in reports for ingested in report.by_partition.values()) == 4 * lost
    for first in (0, 10_000, 20_000, 30_000):
        (found,) = places(deployed.feed(first)).values()
        assert found == [(k, f"T{k}") for k in range(lost + 1)]


def test_an_expired_event_keeps_its_place(deployed: Deployment) -> None:
    for kind in ("a", "b", "c"):
        deployed.tagged.append([Event(type=kind, data=b"{}", tags=("course:1",))])
    deployed.index()
    second = deployed.feed(20_000)[1].event
    assert second is not None
    assert second.id is not None
    site = deployed.tagged.site
    deployed.perform(Delete(table=site.events, key=site.keys.event(second.id)))
    assert [(item.index, item.type, item.gone) for item in deployed.feed(20_000)] == [
        (0, "a", None),
        (1, "b", "expired"),
        (2, "c", None),
    ]


def test_a_poisoned_record_is_set_aside_and_indexed_by_a_retry(deployed: Deployment) -> None:
    persist(deployed, "a", "b")
    (record,) = deployed.fresh(deployed.settings.table("snapshot"))
    record["dynamodb"]["NewImage"]["last_seq_nr"] = {"N": "1"}
    for _ in range(2):
        deployed.indexer.index(read_records([record]))
    poison = PoisonRecords(indexer=replace(deployed.indexer))
    assert [(found.source, found.index) for found in poison.waiting()] == [("journal", 0)]
    assert poison.retry("journal", 0).events == 2
    assert places(deployed.feed(10_000)) == {str(ALICE): [(0, "a"), (1, "b")]}
    assert list(poison.waiting()) == []
