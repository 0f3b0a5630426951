"""What an application opens, it can use."""

from __future__ import annotations

import tracemalloc
from random import Random
from uuid import UUID, uuid4

import pytest

from epochal import (
    NO_STREAM,
    Appended,
    Event,
    Query,
    QueryItem,
    open_feed,
    open_streams,
    open_tagged_events,
)
from epochal.contrib.equinox import open_tips
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id, open_aggregates
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT
from epochal.contrib.sekiban import open_dcb_events, open_projection_states
from epochal.contrib.sekiban.items import EVENTS, PROJECTION_STATES, TAGS
from epochal.contrib.sekiban.listings import TagListings
from epochal.dynamo.clients import s3_client
from epochal.dynamo.stores import Place
from epochal.errors import MissingTable, WrongTable
from epochal.layout.tables import INDEX
from epochal.pages.items import STREAMS
from epochal.store.driver import PERSISTENT
from tests.support.tables import Tables


def test_streams_and_their_feed_open_on_tables_of_their_own(ddbl_tables: Tables) -> None:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    streams = open_streams(ddbl_tables.create(STREAMS), place=place)
    answer = streams.append("Order-1", [Event(type="Placed", data=b"{}")], expected=NO_STREAM)
    assert isinstance(answer, Appended)
    assert [event.type for event in streams.read("Order-1")] == ["Placed"]
    feed = open_feed(ddbl_tables.create(INDEX), streams, place=place)
    assert feed.partitions() == ()


def test_streams_open_as_pages_on_a_table_of_their_own_and_not_on_one_of_tips(ddbl_tables: Tables) -> None:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    streams = open_streams(ddbl_tables.create(STREAMS), place=place)
    token = streams.append("Order-1", [Event(type="Placed", data=b"{}")], expected=NO_STREAM).token
    streams.append("Order-1", [Event(type="Paid")], expected=token)
    assert [event.type for event in streams.read("Order-1")] == ["Placed", "Paid"]

    tips = ddbl_tables.create(TIPS)
    older = open_tips(tips, place=place)
    older.append("Order-1", [Event(type="Placed")])
    feed = open_feed(ddbl_tables.create(INDEX), older, streams, place=place)
    assert feed.partitions() == ()
    with pytest.raises(WrongTable):
        open_streams(tips, place=place).append("Order-1", [Event(type="Paid")])


def test_aggregates_open_on_tables_of_their_own(ddbl_tables: Tables) -> None:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    aggregates = open_aggregates(ddbl_tables.create(JOURNAL), ddbl_tables.create(SNAPSHOT), place=place)
    order = aggregate_id("order", "1")
    aggregates.append(order, [AggregateEvent(type="Placed", data=b"{}")], snapshot=b'{"open":true}')
    replay = aggregates.replay(order)
    assert replay is not None
    assert replay.snapshot.data == b'{"open":true}'


def test_tagged_events_open_on_tables_of_their_own(ddbl_tables: Tables) -> None:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    tagged = open_dcb_events(ddbl_tables.create(EVENTS), ddbl_tables.create(TAGS), place=place)
    tagged.append([Event(type="Placed", data=b"{}", tags=("order:1",))])
    seen = tagged.read(Query(items=(QueryItem(tags=frozenset({"order:1"})),)))
    assert [event.type for event in seen.events] == ["Placed"]


def test_tagged_events_open_beside_streams_whatever_item_of_the_table_is_looked_at_first(
    ddbl_tables: Tables,
) -> None:
    place, table = Place(endpoint=ddbl_tables.endpoint.url), ddbl_tables.create(STREAMS)
    tagged = open_tagged_events(table, types=["Placed"], place=place)
    placed = Event(type="Placed", data=b"{}", tags=("order:1", "shop:1"), id=str(uuid4()))
    made = tagged.append([placed], fail_if=Query(items=(QueryItem(types=frozenset({"Placed"})),))).events

    again = open_tagged_events(table, place=place)
    assert again.read(Query(items=(QueryItem(tags=frozenset({"shop:1"})),))).events == made
    assert again.event(placed.id or "") == made[0]
    with pytest.raises(WrongTable):
        open_tagged_events(ddbl_tables.create(TAGS), place=place).append([placed])


def test_tagged_events_open_with_the_options_of_the_original_library(ddbl_tables: Tables) -> None:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    events, tags = ddbl_tables.create(EVENTS), ddbl_tables.create(TAGS)
    tagged = open_dcb_events(
        events,
        tags,
        service="north",
        type_heads=True,
        write_shards=3,
        consistent=False,
        reads_at_once=8,
        patience=PERSISTENT,
        place=place,
    )
    ids = [
        tagged.append([Event(type="Placed", data=str(nth).encode(), tags=("order:1",))]).events[0].id
        for nth in range(9)
    ]
    listings = TagListings(store=tagged)
    assert [event.id for event in listings.tagged("order:1")] == ids
    assert [event.id for event in listings.all_events()] == ids
    assert len(tagged.read(Query(items=(QueryItem(types=frozenset({"Placed"})),))).events) == 9

    other = open_dcb_events(events, tags, place=place)
    assert other.event(ids[0]) is None
    assert TagListings(store=other).all_tags() == []


def test_tables_that_are_missing_are_named_by_the_stores_that_need_them(ddbl_tables: Tables) -> None:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    tagged = open_dcb_events("no-events", "no-tags", place=place)
    order = Query(items=(QueryItem(tags=frozenset({"order:1"})),))
    listings = TagListings(store=tagged)
    for ask in (
        lambda: tagged.append([Event(type="Placed", data=b"{}")]),
        lambda: tagged.read(order),
        lambda: tagged.event(str(UUID(int=1))),
        lambda: list(listings.all_events()),
        lambda: list(listings.tagged("order:1")),
        lambda: listings.tags("order"),
        listings.all_tags,
    ):
        with pytest.raises(
            MissingTable, match=r"no-(events|tags) does not exist (here|in .*\)): deploy first"
        ):
            ask()
    with pytest.raises(MissingTable, match="no-states"):
        open_projection_states("no-states", place=place).find("Totals", "v1")


@pytest.mark.parametrize("cache_bytes", [0, 10_000_000])
def test_projection_states_open_on_a_table_and_a_bucket_of_their_own(
    embedded_tables: Tables, cache_bytes: int
) -> None:
    place = Place(endpoint=embedded_tables.endpoint.url)
    bucket = f"states-{uuid4().hex}"
    s3_client(endpoint=place.endpoint).create_bucket(Bucket=bucket)
    states = open_projection_states(
        embedded_tables.create(PROJECTION_STATES), bucket=bucket, cache_bytes=cache_bytes, place=place
    )
    noise = Random(0)
    chunks = [noise.randbytes(256 * 1024) for _ in range(32)]
    for state in ([b"small"], chunks):
        tracemalloc.start()
        states.save("Totals", "v1", state, events_processed=1, last_sortable_id="0" * 30)
        found = states.find("Totals", "v1")
        assert found is not None
        first = sum(len(chunk) for chunk in states.open(found))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert first == sum(map(len, state))
        assert peak < 5_000_000 + cache_bytes
        assert b"".join(states.open(found)) == b"".join(state)
    assert found.offload_key is not None
