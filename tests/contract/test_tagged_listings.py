"""Listings of tagged events through the indexes and by tag, on DynamoDB Local and in memory."""

from __future__ import annotations

import pytest

from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.store import DcbEvents
from epochal.model.outcomes import Appended
from epochal.model.tags import Query
from tests.contract.tagged import OpensDcb, asks, event


@pytest.fixture
def layout() -> str:
    """Sekiban's tables alone: they have indexes."""
    return "dcb"


@pytest.mark.parametrize("shards", [1, 3])
def test_all_events_come_in_order_in_pages_and_from_any_place(opened: OpensDcb, shards: int) -> None:
    store = opened(shards=shards)
    listings = TagListings(store=store)
    wanted = []
    for number in range(25):
        answer = store.append([event("Counted", f"n:{number}", data=str(number))])
        wanted += [each.place for each in answer.events]
    assert [each.place for each in listings.all_events()] == sorted(wanted)
    middle = sorted(wanted)[9]
    assert [each.place for each in listings.all_events(since=middle, max_count=4)] == sorted(wanted)[10:14]
    assert listings.count(since=middle) == 15


def test_raising_the_shards_of_the_index_hides_no_event(opened: OpensDcb) -> None:
    for shards in (1, 4):
        store = opened(shards=shards)
        for number in range(10):
            store.append([event("Counted", data=str(number))])
    assert len(list(TagListings(store=opened(shards=4)).all_events())) == 20


def test_tenants_share_tables_and_see_only_their_own(opened: OpensDcb) -> None:
    one, two = opened(service="one"), opened(service="two")
    one.append([event("A", "t:1"), event("A", "t:2")])
    two.append([event("B", "t:1")])
    assert [each.type for each in TagListings(store=two).all_events()] == ["B"]
    assert [count.tag for count in TagListings(store=one).tags("t")] == ["t:1", "t:2"]
    assert [count.events for count in TagListings(store=two).tags("t")] == [1]
    assert isinstance(two.append([event("B", "t:2")], fail_if=Query(items=(asks("", "t:2"),))), Appended)


def test_the_latest_entry_of_a_tag_and_whether_it_exists(store: DcbEvents) -> None:
    listings = TagListings(store=store)
    assert not listings.exists("t:1")
    assert listings.latest("t:1") is None
    store.append([event("A", "t:1"), event("B", "t:1")])
    latest = listings.latest("t:1")
    assert latest is not None
    assert (latest.event_type, latest.index) == ("B", 1)
