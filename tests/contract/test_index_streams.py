"""From appends over DynamoDB's own stream records to the feed, under the rules of Lambda's event source mapping."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
import pytest

from epochal.contrib.equinox.calving import ByCost, Fixed
from epochal.contrib.equinox.port import TIPS, tips_source
from epochal.contrib.equinox.streams import Tips
from epochal.dynamo.interpreter import interpreter
from epochal.feed.indexer import Indexer
from epochal.feed.reader import FeedReader
from epochal.feed.stream_history import StreamHistory
from epochal.index.epochs import EpochLimits
from epochal.layout.registry import partition_of
from epochal.layout.tables import INDEX
from epochal.model.events import Event, Unfold
from epochal.model.outcomes import Appended
from epochal.plan.ops import Put
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from tests.simulation.index_event_source import EventSource, IndexerFunction, records_of, split
from tests.simulation.scheduler import Killed, failing
from tests.support.tables import Tables

PARTITIONS = 3


@dataclass
class Source:
    """Two tables of DynamoDB Local, what was appended to one, and functions that index it into the other."""

    tables: Tables
    streams: Any
    tips: str = field(init=False)
    index: str = field(init=False)
    truth: dict[str, list[str]] = field(default_factory=dict)
    faults: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        self.tips, self.index = self.tables.create(TIPS), self.tables.create(INDEX)
        self.perform = interpreter(self.tables.client)
        self.driver = Driver(execute=self.perform, meter=Meter())
        self.store = Streams(driver=self.driver, table=self.tips, layout=Tips())

    def append(self, stream: str, *types: str, store: Streams | None = None) -> None:
        events = [Event(type=kind, data=b'{"at":"%d"}' % len(types)) for kind in types]
        assert isinstance((store or self.store).append(stream, events), Appended)
        self.truth.setdefault(stream, []).extend(types)

    def shards(self) -> list[list[dict[str, Any]]]:
        arn = self.tables.client.describe_table(TableName=self.tips)["Table"]["LatestStreamArn"]
        return records_of(self.streams, arn)

    def indexer(self, number: int) -> Indexer:
        """A process of the function; its requests fail as the seed has it."""
        execute = failing(self.perform, random.Random(f"{self.seed} {number}"), self.faults)
        return Indexer(
            driver=Driver(execute=execute, meter=Meter(), patience=Patience(first=0.001, longest=0.005)),
            index_table=self.index,
            sources=(tips_source(self.tips, PARTITIONS),),
            limits=EpochLimits(entries=12, streams=8),
        )

    def function(self) -> IndexerFunction:
        return IndexerFunction(self.indexer)

    def feed(self) -> dict[str, list[str]]:
        """Types by stream; fails where a stream is not in order, or not in its partition."""
        reader = FeedReader(driver=self.driver, table=self.index, histories=(StreamHistory(self.store),))
        found: dict[str, list[str]] = {}
        for tail in reader.partitions():
            for item in (item for page in reader.read(tail.partition) for item in page.items):
                types = found.setdefault(item.stream, [])
                assert item.index == len(types)
                assert tail.partition == partition_of(item.stream, PARTITIONS)
                types.append(item.type)
        return found

    def aside(self) -> list[dict[str, Any]]:
        store = replace(self.store, table=self.index)
        return list(store.reader().events("$Poison-0", None, None, "forward"))  # type: ignore[arg-type]


@pytest.fixture
def source(ddbl_tables: Tables) -> Iterator[Source]:
    endpoint = ddbl_tables.endpoint
    client = boto3.client("dynamodbstreams", endpoint_url=endpoint.url, region_name=endpoint.region)
    yield Source(tables=ddbl_tables, streams=client)
    client.close()


def fill(source: Source, appends: int, seed: int = 1) -> None:
    """Appends to streams that calve in every way, and all else that changes items of the table."""
    rng = random.Random(seed)
    stores = [
        replace(source.store, layout=Tips(calving=calving))
        for calving in (
            ByCost(),
            Fixed(max_bytes=900, mode="two-step"),
            Fixed(max_events=3, mode="transactional"),
        )
    ]
    for number in range(appends):
        which = rng.randrange(12)
        stream, store = f"Order-{which}", stores[which % 3]
        kinds = [f"T{number}.{k}" for k in range(rng.randint(1, 3))]
        source.append(stream, *kinds, store=store)
        if number % 5 == 0:
            store.append(stream, [], unfolds=[Unfold(type="State", data=b"{}")])
        if number % 7 == 0:
            key = {"idempotency_key": f"key-{number}"}
            store.append(f"Keyed-{which}", [Event(type="K")], **key)  # type: ignore[arg-type]
            source.truth.setdefault(f"Keyed-{which}", []).append("K")


@pytest.mark.parametrize("appends", [30, pytest.param(120, marks=pytest.mark.proof)])
def test_what_was_appended_is_what_the_feed_holds(source: Source, appends: int) -> None:
    fill(source, appends)
    source.store.prune("Order-1", 2)
    mapping = EventSource(source.function(), batch=25)
    mapping.deliver(source.shards())
    assert source.feed() == source.truth
    assert mapping.given_up == []


@pytest.mark.parametrize("appends", [25, pytest.param(90, marks=pytest.mark.proof)])
def test_shards_that_split_are_followed_by_their_children_and_the_feed_is_the_same(
    source: Source, appends: int
) -> None:
    fill(source, appends)
    (shard,) = source.shards()
    mapping = EventSource(source.function(), batch=9, lanes=2, again=0.2)
    generations = split(shard, 1, 2, 4)
    assert [len(shards) for shards in generations] == [1, 2, 4]
    for shards in generations:
        mapping.deliver(shards)
    assert source.feed() == source.truth


@pytest.mark.proof
def test_what_lies_before_the_starting_position_is_indexed_once_its_streams_are_appended_to(
    source: Source,
) -> None:
    fill(source, 40)
    (missed,) = source.shards()
    for stream in list(source.truth):
        source.append(stream, "after")
    (shard,) = source.shards()
    EventSource(source.function(), batch=7).deliver([shard[len(missed) :]])
    assert source.feed() == source.truth


@pytest.mark.parametrize(
    ("seed", "appends"),
    [(0, 30), *(pytest.param(seed, 60, marks=pytest.mark.proof) for seed in range(4))],
)
def test_throttled_unanswered_crashing_and_repeated_in_parallel_the_feed_is_the_same(
    source: Source, seed: int, appends: int
) -> None:
    fill(source, appends, seed)
    source.seed, source.faults = seed, 0.08
    mapping = EventSource(source.function(), batch=8, lanes=4, retries=50, again=0.3, seed=seed)
    mapping.deliver(source.shards())
    assert mapping.given_up == []
    assert source.feed() == source.truth


def test_poison_between_records_is_set_aside_once_however_often_it_is_delivered(source: Source) -> None:
    fill(source, 10)
    poison: dict[str, Any] = {"p": {"S": "Order-1"}, "i": {"N": "5"}}
    tip: dict[str, Any] = {"p": {"S": "Foreign-1"}, "i": {"N": "2147483647"}}
    for item in (
        {**poison, "n": {"S": "a calf of another make"}},
        {**tip, "a": {"N": "1"}, "c": {"L": [{"S": "x"}]}},
        {**tip, "a": {"N": "2"}, "n": {"N": "1"}, "c": {"L": [{"S": "x"}, {"S": "y"}]}, "e": {"B": b"\xff"}},
    ):
        source.perform(Put(table=source.tips, item=item))
    fill(source, 10, seed=2)
    mapping = EventSource(source.function(), batch=5, lanes=2, again=0.5)
    for _ in range(2):
        mapping.deliver(source.shards())
    assert source.feed() == source.truth
    assert mapping.given_up == []
    assert len(source.aside()) == 2


def test_a_record_that_crashes_the_function_is_given_up_alone_and_healed_by_the_next_append(
    source: Source,
) -> None:
    fill(source, 20)
    source.append("Order-3", "the one")
    fill(source, 20, seed=2)
    function, shards = source.function(), source.shards()

    def fragile(event: dict[str, Any]) -> dict[str, Any]:
        if any(image_of(record)["c"]["L"][-1:] == [{"S": "the one"}] for record in event["Records"]):
            raise Killed
        return function(event)

    mapping = EventSource(fragile, batch=30)
    mapping.deliver(shards)
    (given_up,) = mapping.given_up
    assert image_of(given_up)["p"] == {"S": "Order-3"}
    assert max(mapping.batches) > 15
    assert source.feed() == source.truth, "Order-3 was appended to again, which healed the gap"


@pytest.mark.proof
def test_an_outage_that_outlasts_every_retry_loses_nothing_once_streams_are_appended_to_again(
    source: Source,
) -> None:
    fill(source, 30)
    function, out = source.function(), [True]

    def fails(event: dict[str, Any]) -> dict[str, Any]:
        return function(event) if not out else all_failed(event)

    mapping = EventSource(fails, batch=20)
    mapping.deliver(source.shards())
    assert len(mapping.given_up) == sum(map(len, source.shards()))
    out.clear()
    before = sum(map(len, source.shards()))
    for stream in list(source.truth):
        source.append(stream, "after")
    (shard,) = source.shards()
    mapping.deliver([shard[before:]])
    assert source.feed() == source.truth


def image_of(record: dict[str, Any]) -> dict[str, Any]:
    """A record's new image, its types none where it lacks them."""
    return {"c": {"L": []}, **record["dynamodb"].get("NewImage", {})}


def all_failed(event: dict[str, Any]) -> dict[str, Any]:
    numbers = [record["dynamodb"]["SequenceNumber"] for record in event["Records"]]
    return {"batchItemFailures": [{"itemIdentifier": number} for number in numbers]}
