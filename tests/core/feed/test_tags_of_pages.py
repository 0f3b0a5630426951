"""Tagged events of pages as readers of the feed and reactions get them: through each of their tags, or once."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import NoReturn

import pytest

from epochal.dynamo.table_kinds import kind_of
from epochal.errors import CorruptData, DeniedBody, MissingBody, TooLarge
from epochal.feed.events import Fault
from epochal.feed.results import FeedItem
from epochal.layout.registry import source_of
from epochal.model.bodies import Claim
from epochal.model.events import Event
from epochal.model.tags import Query, QueryItem
from epochal.plan.ops import Delete
from epochal.reactions.definition import Delivery, reaction
from epochal.store.encoding import BodyCodec
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import MemoryBodies, memory_tagged_events

ID = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"


def items(feed: MemoryStore, **how: object) -> list[FeedItem]:
    feed.index()
    partitions = [each.partition for each in feed.feed.partitions() if source_of(each.partition) == "pages"]
    pages = [page for partition in partitions for page in feed.feed.read(partition, data=True, **how)]
    return [item for page in pages for item in page.items]


def event(kind: str, *tags: str, data: bytes = b"{}", **fields: str) -> Event:
    return Event(type=kind, data=data, tags=tags, **fields)


def test_a_tagged_event_comes_through_each_of_its_tags_and_once_through_its_first() -> None:
    feed = MemoryStore()
    feed.tagged.append([event("a", "x:1", "y:1"), event("b", "y:1"), event("d")])
    feed.tagged.append([event("c", "z:1", "y:1", "x:1", id=ID, meta=b'{"user":"me"}')])

    found = items(feed)
    assert Counter(item.type for item in found) == {"a": 2, "b": 1, "c": 3, "d": 1}
    once = {item.type: item for item in items(feed, once=True)}
    assert {kind: item.stream for kind, item in once.items()} == {
        "a": "$tag-x:1",
        "b": "$tag-y:1",
        "c": "$tag-x:1",
        "d": "$tag-",
    }
    shown = once["c"].event
    assert shown is not None
    assert (shown.id, shown.tags, shown.index) == (ID, ("x:1", "y:1", "z:1"), 1)
    assert shown.meta == b'{"user":"me"}'


def test_what_is_also_under_its_type_comes_no_more_often() -> None:
    feed = MemoryStore()
    memory_tagged_events(feed.tables, types=["a"], everything=True).append([event("a", "x:1")])
    assert [item.stream for item in items(feed)] == ["$tag-x:1"]


def test_the_category_of_a_tag_is_its_group_apart_from_named_streams() -> None:
    feed = MemoryStore()
    feed.tagged.append([event("a", "course:1", "student:1")])
    assert [item.stream for item in items(feed, categories={"$tag-course"})] == ["$tag-course:1"]
    assert items(feed, categories={"course"}) == []


def test_bodies_on_the_first_tags_page_or_in_the_bucket_come_with_the_event() -> None:
    feed = MemoryStore()
    noise, large = os.urandom(3_000), os.urandom(600_000)
    made = feed.tagged.append([event("a", "x:1", "y:1", data=noise), event("b", "y:1", data=large, id=ID)])
    assert made.events[1].data == large
    again = feed.tagged.append([event("a", "x:1", "y:1", data=noise, id=None), event("c", "y:1")])
    assert not again.replayed

    of_y = Query(items=(QueryItem(tags=frozenset({"y:1"})),))
    assert [each.data for each in feed.tagged.read(of_y).events] == [noise, large, noise, b"{}"]
    assert [item.event.data for item in items(feed) if item.event and item.stream == "$tag-y:1"] == [
        noise,
        large,
        noise,
        b"{}",
    ]
    kept = feed.tagged.event(ID)
    assert kept is not None
    assert kept.data == large
    only = event("b", "y:1", data=large, id="00000000-0000-4000-8000-000000000002")
    assert not feed.tagged.append([only]).replayed
    assert feed.tagged.append([only]).replayed


def test_without_a_bucket_a_body_larger_than_a_page_is_refused() -> None:
    store = replace(MemoryStore().tagged, codec=BodyCodec())
    with pytest.raises(TooLarge):
        store.append([event("b", "y:1", data=os.urandom(600_000))])


def test_a_broken_event_comes_with_its_fault_and_its_neighbours_with_their_data() -> None:
    feed = MemoryStore()
    for _ in range(3):
        feed.tagged.append([event("a", "x:1", "y:1", data=os.urandom(3_000))])
    feed.index()
    key = {"p": {"S": "$tag-x:1"}, "i": {"N": "1"}}
    feed.tables.execute(Delete(table="streams", key=key))
    found = [each for each in items(feed) if each.stream == "$tag-y:1"]
    assert [each.fault is None for each in found] == [True, False, True]


def without_bodies(monkeypatch: pytest.MonkeyPatch, error: Fault) -> None:
    """No body can be had of the bucket any more."""

    def get(_: MemoryBodies, _claim: Claim) -> NoReturn:
        raise error

    monkeypatch.setattr(MemoryBodies, "get", get)


@pytest.mark.parametrize("error", [MissingBody("bodies/1"), DeniedBody("exports/1", "no"), CorruptData("no")])
def test_a_tagged_event_whose_body_cannot_be_had_stops_itself_alone(
    monkeypatch: pytest.MonkeyPatch, error: Fault
) -> None:
    feed = MemoryStore()
    feed.tagged.append([event("a", "x:1"), event("b", "x:1", "y:1", data=os.urandom(600_000))])
    feed.tagged.append([event("c", "x:1")])
    feed.streams.append("Order-1", [event("d")])
    without_bodies(monkeypatch, error)

    shown = [("$tag-x:1", 0, None), ("$tag-x:1", 1, error), ("$tag-y:1", 0, error), ("$tag-x:1", 2, None)]
    found = [(item.stream, item.index, item.fault) for item in items(feed)]
    assert sorted(found, key=str) == sorted([*shown, ("Order-1", 0, None)], key=str)
    ordered = [item for page in feed.feed.ordered(within=0) for item in page.items]
    assert len(ordered) == len(found)
    broken = next(each for each in feed.feed.events(30_000, "$tag-x:1", 1, 2))
    assert (broken.type, broken.tags, broken.fault) == ("b", ("x:1", "y:1"), error)
    with pytest.raises(type(error)):
        items(feed, strict=True)


@pytest.mark.parametrize("in_order", [False, True])
def test_a_tagged_event_whose_body_is_missing_parks_its_stream_and_no_other(
    monkeypatch: pytest.MonkeyPatch, in_order: bool
) -> None:
    feed = MemoryStore()
    feed.tagged.append([event("a", "x:1", data=os.urandom(600_000))])
    feed.streams.append("Order-1", [event("d")])
    without_bodies(monkeypatch, MissingBody("bodies/1"))
    handled: list[str] = []

    @reaction(name="all", in_order=in_order)
    def everything(delivery: Delivery) -> None:
        handled.append(delivery.stream)

    parked = [failure.stream for ran in feed.react(everything) for failure in ran.parked]
    assert (handled, parked) == (["Order-1"], ["$tag-x:1"])


def test_an_item_of_an_events_id_is_of_a_table_of_streams() -> None:
    feed = MemoryStore()
    feed.tagged.append([event("a", "course:1", id=ID)])
    items = list(feed.tables.items("streams"))
    assert [kind_of(item) for item in items] == ["streams", "streams"]


def test_an_event_of_a_stream_comes_through_it_and_its_tags_and_once_through_the_stream() -> None:
    feed = MemoryStore()
    feed.streams.append("Student-1", [Event(type="a"), Event(type="b", tags=("x:1", "Student-1"))])

    assert sorted((item.stream, item.type) for item in items(feed)) == [
        ("$tag-Student-1", "b"),
        ("$tag-x:1", "b"),
        ("Student-1", "a"),
        ("Student-1", "b"),
    ]
    plain, tagged = sorted(items(feed, once=True), key=lambda item: item.type)
    assert [(item.stream, item.index) for item in (plain, tagged)] == [("Student-1", 0), ("Student-1", 1)]
    (through_tag,) = items(feed, categories={"$tag-x"})
    assert plain.event is not None
    assert tagged.event is not None
    assert through_tag.event is not None
    assert (plain.event.tags, plain.event.id, plain.event.home) == ((), None, "")
    assert tagged.event.tags == through_tag.event.tags == ("Student-1", "x:1")
    assert tagged.event.id == through_tag.event.id
    assert tagged.event.home == through_tag.event.home == "Student-1"
