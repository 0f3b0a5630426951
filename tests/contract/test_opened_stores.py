"""What an application opens, it can use."""

from __future__ import annotations

from epochal import (
    NO_STREAM,
    AggregateEvent,
    Appended,
    Event,
    Query,
    QueryItem,
    TaggedEvent,
    aggregate_id,
    open_aggregates,
    open_feed,
    open_streams,
    open_tagged_events,
)
from epochal.dynamo.stores import Place
from epochal.layout.tables import EVENTS, INDEX, JOURNAL, SNAPSHOT, TAGS, TIPS
from tests.support.tables import Tables


def test_streams_and_their_feed_open_on_tables_of_their_own(ddbl_tables: Tables) -> None:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    streams = open_streams(ddbl_tables.create(TIPS), place=place)
    answer = streams.append("Order-1", [Event(type="Placed", data=b"{}")], expected=NO_STREAM)
    assert isinstance(answer, Appended)
    assert [event.type for event in streams.read("Order-1")] == ["Placed"]
    feed = open_feed(ddbl_tables.create(INDEX), streams=streams, place=place)
    assert feed.partitions() == ()


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
    tagged = open_tagged_events(ddbl_tables.create(EVENTS), ddbl_tables.create(TAGS), place=place)
    tagged.append([TaggedEvent(type="Placed", data="{}", tags=("order:1",))])
    seen = tagged.read(Query(items=(QueryItem(tags=frozenset({"order:1"})),)))
    assert [event.type for event in seen.events] == ["Placed"]
