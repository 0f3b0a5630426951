"""Heads of every layout on their way into the feed: three streams of tables, one indexer, as they are deployed."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import count

import pytest

from epochal.contrib.event_store_adapter.ids import AggregateId, aggregate_id
from epochal.contrib.event_store_adapter.items import HEAD, JournalEvent, site_of, write_event
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.retention import Retention
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.sekiban.items import tag_site_of
from epochal.contrib.sekiban.store import DcbEvents
from epochal.dynamo.interpreter import interpreter
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import poison_stream
from epochal.layout.registry import base_of
from epochal.model.events import Event
from epochal.plan.ops import Items, Put, Query, Set, Transact, Update
from epochal.plan.values import number, text
from epochal.plugins import layouts
from epochal.store.driver import Driver, Meter

SECONDS = 120.0
_numbers = count()


@pytest.fixture
def driver(deployment: LocalDeployment) -> Driver:
    return Driver(execute=interpreter(deployment.endpoint.client("dynamodb")), meter=Meter())


@pytest.fixture
def aggregates(deployment: LocalDeployment, driver: Driver) -> AggregateStore:
    return AggregateStore(driver=driver, site=site_of(deployment.settings))


@pytest.fixture
def tagged(deployment: LocalDeployment, driver: Driver) -> DcbEvents:
    return DcbEvents(driver=driver, site=tag_site_of(deployment.settings))


@pytest.fixture
def feed(deployment: LocalDeployment, driver: Driver) -> FeedReader:
    return FeedReader(driver=driver, table=deployment.settings.index_table)


@pytest.fixture
def order() -> AggregateId:
    """One that no other test uses."""
    return aggregate_id("order", f"source-{next(_numbers)}")


def fed(feed: FeedReader, source: str, stream: str, events: int) -> list[tuple[int, str]]:
    """Indices and types of a stream's first events in the feed, waited for."""
    ends = time.monotonic() + SECONDS
    while True:
        pages = feed.read(base_of(source), predicate=lambda span: span.stream == stream)
        found = [(item.index, item.type) for page in pages for item in page.items]
        if len(found) >= events or time.monotonic() > ends:
            return found
        time.sleep(0.2)


def test_events_of_an_aggregate_come_into_the_feed(
    aggregates: AggregateStore, feed: FeedReader, order: AggregateId
) -> None:
    aggregates.append(order, [happened("Placed"), happened("Paid")], snapshot=b"{}")
    aggregates.append(order, [happened("Shipped")])
    assert fed(feed, "journal", str(order), 3) == [(0, "Placed"), (1, "Paid"), (2, "Shipped")]


def test_so_do_those_that_another_library_wrote_once_its_head_says_that_something_happened(
    aggregates: AggregateStore, feed: FeedReader, order: AggregateId
) -> None:
    """The indexer reads them from the journal: its role has to allow that."""
    aggregates.append(order, [happened("Placed")], snapshot=b"{}")
    assert fed(feed, "journal", str(order), 1) == [(0, "Placed")]
    _append_as_another_library(aggregates, order)
    assert fed(feed, "journal", str(order), 2) == [(0, "Placed"), (1, "Paid")]


def test_a_tagged_event_comes_into_the_feed_of_each_of_its_tags(
    tagged: DcbEvents, feed: FeedReader, order: AggregateId
) -> None:
    mine, yours = f"order:{order.value}", f"customer:{order.value}"
    tagged.append([Event(type="Placed", data=b"{}", tags=(mine, yours))])
    tagged.append([Event(type="Paid", data=b"{}", tags=(mine,))])
    assert fed(feed, "dcb", mine, 2) == [(0, "Placed"), (1, "Paid")]
    assert fed(feed, "dcb", yours, 1) == [(0, "Placed")]


def test_what_else_those_tables_hold_is_not_taken_for_poison(
    deployment: LocalDeployment,
    aggregates: AggregateStore,
    tagged: DcbEvents,
    feed: FeedReader,
    order: AggregateId,
) -> None:
    def set_aside() -> list[Items]:
        names = (poison_stream(each.base) for each in layouts())
        table = deployment.settings.index_table
        found = [feed.driver.execute(Query(table=table, partition=("p", text(name)))) for name in names]
        return [each for each in found if isinstance(each, Items)]

    tag, before = f"order:{order.value}", set_aside()
    keeping = replace(aggregates, retention=Retention())
    keeping.append(order, [happened("Placed")], snapshot=b"{}")
    tagged.append([Event(type="Placed", data=b"{}", tags=(tag,))])
    assert fed(feed, "journal", str(order), 1) == fed(feed, "dcb", tag, 1) == [(0, "Placed")]
    assert set_aside() == before


def happened(kind: str) -> AggregateEvent:
    return AggregateEvent(type=kind, data=b"{}")


def _append_as_another_library(aggregates: AggregateStore, order: AggregateId) -> None:
    """A second event, and a head whose version is raised while what is ours in it stays as it was."""
    site = aggregates.site
    event = JournalEvent(seq_nr=2, payload=b'{"type":"Paid","data":{}}', occurred_at="2026-11-21T08:00:00Z")
    head = Update(table=site.snapshot, key=site.keys.key(order, HEAD), sets=(Set("version", number(2)),))
    put = Put(table=site.journal, item=write_event(site.keys, order, event))
    aggregates.driver.execute(Transact(writes=(head, put)))
