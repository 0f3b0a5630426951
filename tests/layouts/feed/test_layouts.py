"""Events of all layouts as readers of the feed get them."""

from __future__ import annotations

from collections import Counter

import pytest

from epochal.care.mender import Mender
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.events import FeedEvent
from epochal.feed.reader import FeedReader
from epochal.layout.source import End
from epochal.model.events import Event
from epochal.plan.ops import BatchGet, Delete, Put, Query
from epochal.plan.values import number, text
from tests.layouts.stores import ALICE, BOB, JOURNAL, START, Layouts, of_table, tag_site

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def layouts() -> Layouts:
    return Layouts()


def expire(layouts: Layouts, kind: str) -> None:
    """What DynamoDB does with events whose time is over."""
    for item in list(layouts.tables.items("events")):
        if item["eventType"]["S"] == kind:
            layouts.tables.execute(Delete(table="events", key={name: item[name] for name in ("pk", "sk")}))


def events_of(layouts: Layouts, source: str, *, once: bool = False) -> list[FeedEvent]:
    found = [item.event for item in layouts.items(source, data=True, once=once)]
    assert None not in found
    return [event for event in found if event is not None]


# --------------------------------------------------------------------------------------------------------------- shape


def test_an_event_of_a_stream_keeps_all_it_was_appended_with(layouts: Layouts) -> None:
    layouts.streams.append(
        "Order-1",
        [
            Event(
                type="Placed",
                data=b"{}",
                meta=b"m",
                correlation_id="c",
                causation_id="d",
                timestamp="2013-01-01T00:00:00Z",
            )
        ],
    )
    layouts.index()
    (found,) = events_of(layouts, "tips")
    assert found == FeedEvent(
        stream="Order-1",
        index=0,
        type="Placed",
        data=b"{}",
        meta=b"m",
        timestamp="2013-01-01T00:00:00.0000000+00:00",
        correlation_id="c",
        causation_id="d",
    )
    assert found.first


def test_an_event_of_an_aggregate_stands_at_its_number_less_one(layouts: Layouts) -> None:
    layouts.persist(ALICE, "Registered", "Renamed")
    layouts.index()
    found = events_of(layouts, "journal")
    assert [(event.stream, event.index, event.type, event.data) for event in found] == [
        (str(ALICE), 0, "Registered", b'"Registered"'),
        (str(ALICE), 1, "Renamed", b'"Renamed"'),
    ]
    assert [event.timestamp for event in found] == [
        event.occurred_at for event in layouts.aggregates.events_after(ALICE)
    ]


def test_events_that_another_library_persisted_come_with_their_data(layouts: Layouts) -> None:
    layouts.persist_elsewhere(BOB, "a", "b")
    layouts.index()
    found = events_of(layouts, "journal")
    assert [(event.type, event.data, event.timestamp) for event in found] == [
        ("a", b'"a"', "481"),
        ("b", b'"b"', "481"),
    ]


def test_a_tagged_event_comes_with_all_its_tags_and_its_id_in_each_of_its_streams(layouts: Layouts) -> None:
    layouts.tag("Enrolled", "student:7", "course:1")
    layouts.index()
    found = events_of(layouts, "dcb")
    assert [(event.stream, event.index, event.tags) for event in found] == [
        ("course:1", 0, ("course:1", "student:7")),
        ("student:7", 0, ("course:1", "student:7")),
    ]
    assert len({event.id for event in found}) == 1
    assert [event.first for event in found] == [True, False]
    assert found[0].data == b'"Enrolled"'


def test_a_tagged_event_comes_with_its_bytes_and_its_metadata(layouts: Layouts) -> None:
    layouts.tagged.append([Event(type="A", data=b"\xff", meta=b'{"by":"ops"}', tags=("t:1",))])
    layouts.tagged.append([Event(type="B", meta=b"\0", tags=("t:1",))])
    layouts.index()
    found = events_of(layouts, "dcb")
    assert [(event.data, event.meta) for event in found] == [(b"\xff", b'{"by":"ops"}'), (b"", b"\0")]


# --------------------------------------------------------------------------------------------------------------- gone


def test_what_was_pruned_comes_as_such_with_its_type(layouts: Layouts) -> None:
    layouts.append("Order-1", *"abcd")
    layouts.index()
    layouts.streams.prune("Order-1", 2)
    items = layouts.items("tips", data=True)
    assert [(item.type, item.gone, item.event is None) for item in items] == [
        ("a", "pruned", True),
        ("b", "pruned", True),
        ("c", None, False),
        ("d", None, False),
    ]


def test_what_has_expired_comes_as_such_in_each_of_its_streams(layouts: Layouts) -> None:
    layouts.tag("Kept", "course:1")
    layouts.tag("Token", "course:1", "student:7", expires=1)
    layouts.index()
    expire(layouts, "Token")
    items = layouts.items("dcb", data=True)
    assert [(item.stream, item.index, item.type, item.gone) for item in items] == [
        ("course:1", 0, "Kept", None),
        ("course:1", 1, "Token", "expired"),
        ("student:7", 0, "Token", "expired"),
    ]
    assert not any(item.omitted for item in items)


def test_an_aggregates_event_that_is_missing_is_a_fault_and_not_an_event_less(layouts: Layouts) -> None:
    layouts.persist(ALICE, "a", "b", "c")
    layouts.index()
    layouts.tables.execute(Delete(table="journal", key=JOURNAL.keys.key(ALICE, 2)))
    items = layouts.items("journal", data=True)
    assert [(item.index, item.type, item.fault is None) for item in items] == [
        (0, "a", True),
        (1, "b", False),
        (2, "c", True),
    ]
    assert "event 2" in str(items[1].fault)


def test_events_of_an_aggregate_whose_head_is_gone_come_all_the_same(layouts: Layouts) -> None:
    layouts.persist(ALICE, "a")
    layouts.index()
    layouts.tables.execute(Delete(table="snapshot", key=JOURNAL.keys.key(ALICE, 0)))
    assert [item.type for item in layouts.items("journal", data=True)] == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "stream"), [("tips", "Order-1"), ("journal", str(ALICE)), ("dcb", "course:1")]
)
def test_the_events_of_a_stream_are_as_many_as_asked_for_whatever_is_gone(
    layouts: Layouts, source: str, stream: str
) -> None:
    kinds = [f"T{k}" for k in range(250)]
    layouts.append("Order-1", *kinds)
    for kind in kinds:
        layouts.persist(ALICE, kind)
        layouts.tag(kind, "course:1")
    layouts.index()
    layouts.streams.prune("Order-1", 120)
    expire(layouts, "T130")
    reader = layouts.reader()
    for first, end in ((0, 250), (0, 1), (100, 201), (119, 121), (130, 131), (249, 250), (7, 7)):
        found = list(reader.events(START[source], stream, first, end))
        assert [event.index for event in found] == list(range(first, end))
        for event in found:
            assert event.stream == stream
            if event.gone is None:
                assert event.type == f"T{event.index}"


def test_a_deleted_stream_is_as_many_pruned_events(layouts: Layouts) -> None:
    layouts.append("Order-1", *"abc")
    layouts.streams.delete("Order-1")
    found = layouts.reader().events(0, "Order-1", 0, 3)
    assert [(event.index, event.gone) for event in found] == [(0, "pruned"), (1, "pruned"), (2, "pruned")]


# ---------------------------------------------------------------------------------------------------------------- once


def test_a_tagged_event_can_be_had_exactly_once_through_its_first_tag(layouts: Layouts) -> None:
    tags = {
        "a": ("x:1", "y:1"),
        "b": ("y:1",),
        "c": ("z:1", "y:1", "x:1"),
        "d": (),
        "e": ("y:1", "z:1"),
    }
    for kind, own in tags.items():
        layouts.tag(kind, *own)
    layouts.index()
    assert Counter(event.type for event in events_of(layouts, "dcb")) == {
        "a": 2,
        "b": 1,
        "c": 3,
        "d": 1,
        "e": 2,
    }
    once = events_of(layouts, "dcb", once=True)
    assert {event.type: event.stream for event in once} == {
        "a": "x:1",
        "b": "y:1",
        "c": "x:1",
        "d": "",
        "e": "y:1",
    }
    assert len(once) == len(tags)


def test_once_is_once_over_several_partitions_and_with_type_heads_too() -> None:
    layouts = Layouts(partitions=4, site=tag_site(type_heads=True))
    for k in range(60):
        layouts.tag(f"T{k}", *(f"group:{k % each}" for each in (3, 5, 7)))
    layouts.index()
    found = [
        item.type
        for partition in range(20_000, 20_004)
        for page in layouts.reader().read(partition, data=True, once=True)
        for item in page.items
    ]
    assert sorted(found) == sorted(f"T{k}" for k in range(60))


def test_streams_and_aggregates_are_the_same_once_or_not(layouts: Layouts) -> None:
    layouts.append("Order-1", "a")
    layouts.persist(ALICE, "a")
    layouts.index()
    for source in ("tips", "journal"):
        assert layouts.items(source, data=True, once=True) == layouts.items(source, data=True)


def test_once_is_refused_where_events_are_not_read(layouts: Layouts) -> None:
    with pytest.raises(InvalidInput, match="once"):
        layouts.reader().page(20_000, once=True)
    assert layouts.ops == []


# ---------------------------------------------------------------------------------------------------------- categories


def test_a_category_is_the_names_the_aggregates_type_or_the_tags_group(layouts: Layouts) -> None:
    for stream in ("Order-1", "OrderLine-1"):
        layouts.append(stream, "T")
    layouts.persist(ALICE, "T")
    layouts.persist(AggregateId(type="order", value="account-1"), "T")
    layouts.tag("T", "course:1")
    layouts.tag("T", "course-1:2")
    layouts.index()

    def streams(source: str, *categories: str) -> list[str]:
        page = layouts.reader().page(START[source], categories=categories)
        return [item.stream for item in page.items]

    assert streams("tips", "Order") == ["Order-1"]
    assert streams("journal", "user-account") == [str(ALICE)]
    assert streams("journal", "account") == []
    assert streams("journal", "order", "user-account") == [str(ALICE), "order-account-1"]
    assert streams("dcb", "course") == ["course:1"]
    assert streams("dcb", "course-1") == ["course-1:2"]


# ------------------------------------------------------------------------------------------------------------ requests


@pytest.mark.slow
def test_reading_on_in_a_long_tag_seeks_nothing(layouts: Layouts) -> None:
    for k in range(900):
        layouts.tag(f"T{k}", "course:1")
    layouts.index()
    reader, at = layouts.reader(), 600
    list(reader.events(20_000, "course:1", 500, at))
    start = len(layouts.ops)
    assert [event.type for event in reader.events(20_000, "course:1", at, at + 100)][:1] == ["T600"]
    assert [type(op) for op in layouts.ops[start:]] == [Query, BatchGet]


def test_an_aggregate_is_not_looked_for(layouts: Layouts) -> None:
    layouts.persist(ALICE, "a")
    layouts.index()
    reader, start = layouts.reader(), len(layouts.ops)
    assert len(reader.page(10_000, data=True).items) == 1
    assert of_table(layouts.ops[start:], "snapshot") == []


@pytest.mark.parametrize("source", START)
def test_data_without_the_store_of_the_partition_is_refused_before_anything_is_read(
    layouts: Layouts, source: str
) -> None:
    layouts.index()
    start = len(layouts.ops)
    with pytest.raises(InvalidInput, match=f"store of layout {source}"):
        FeedReader(driver=layouts.driver, table="index").page(START[source], data=True)
    assert layouts.ops[start:] == []


def test_an_aggregate_whose_end_must_be_looked_for_raises_at_an_event_that_cannot_be_read(
    layouts: Layouts,
) -> None:
    layouts.persist_elsewhere(ALICE, "Opened", "Used", "Closed")
    reader = layouts.reader()
    assert reader.end_of(START["journal"], str(ALICE), 0) == 3
    broken = {**JOURNAL.keys.key(ALICE, 2), "aid": text(str(ALICE)), "seq_nr": number(2)}
    layouts.tables.execute(Put(table="journal", item=broken))
    assert reader.end_of(START["journal"], str(ALICE), 2) == 3
    with pytest.raises(CorruptData):
        reader.end_of(START["journal"], str(ALICE), 0)
    # Care goes on with what can be read.
    mender = Mender(driver=layouts.driver, index_table="index")
    (_, journal, _) = layouts.sources
    assert mender.end_of(journal, End(str(ALICE), None, 0), 0) < 3
