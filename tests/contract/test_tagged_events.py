"""Conditions on tags, judged by AWS's own DynamoDB."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from epochal.dynamo.stores import Place, open_tagged_events
from epochal.layout.dcb.append import Rejected, Written
from epochal.layout.tables import EVENTS, TAGS
from epochal.model.dcb import Query, QueryItem, TaggedEvent
from epochal.store.tag_listings import TagListings
from epochal.store.tagged import TaggedEvents
from tests.support.tables import Tables

BOTH = Query(
    items=(
        QueryItem(types=frozenset({"Subscribed"}), tags=frozenset({"course:1"})),
        QueryItem(types=frozenset({"Subscribed"}), tags=frozenset({"student:7"})),
    )
)
SUBSCRIBED = TaggedEvent(type="Subscribed", data="{}", tags=("course:1", "student:7"))


@pytest.fixture
def store(ddbl_tables: Tables) -> TaggedEvents:
    place = Place(endpoint=ddbl_tables.endpoint.url)
    return open_tagged_events(ddbl_tables.create(EVENTS), ddbl_tables.create(TAGS), place=place)


@pytest.mark.parametrize("racers", [2, 16, 64])
def test_of_racers_with_one_position_exactly_one_commits(store: TaggedEvents, racers: int) -> None:
    store.append([TaggedEvent(type="Renamed", data="{}", tags=("course:1",))])
    seen = store.read(BOTH)
    barrier = Barrier(racers)

    def race(_: int) -> Written | Rejected:
        barrier.wait()
        return store.append([SUBSCRIBED], fail_if=BOTH, after=seen.position)

    with ThreadPoolExecutor(racers) as pool:
        answers = list(pool.map(race, range(racers)))
    assert sum(isinstance(answer, Written) for answer in answers) == 1
    assert len(store.read(BOTH).events) == 1


def test_appends_without_condition_lose_nothing_and_keep_each_tag_in_order(store: TaggedEvents) -> None:
    def append(number: int) -> None:
        answer = store.append(
            [TaggedEvent(type="Counted", data=str(number), tags=("all:1", f"third:{number % 3}"))]
        )
        assert isinstance(answer, Written)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(40)))
    listings = TagListings(store=store)
    found = list(listings.tagged("all:1"))
    assert sorted(int(event.data) for event in found) == list(range(40))
    assert [entry.index for entry in listings.entries("all:1")] == list(range(40))
    ids = [event.sortable_id for event in found]
    assert ids == sorted(set(ids))
    assert [count.events for count in listings.tags("third")] == [14, 13, 13]
    assert [event.id for event in listings.all_events()] == [event.id for event in found]


def test_with_type_heads_conditions_need_no_tags(store: TaggedEvents) -> None:
    everywhere = replace(store, site=replace(store.site, type_heads=True))
    by_type = Query(items=(QueryItem(types=frozenset({"Opened"})),))
    opened = TaggedEvent(type="Opened", data="{}")
    assert isinstance(everywhere.append([opened], fail_if=by_type), Written)
    assert isinstance(everywhere.append([opened], fail_if=by_type), Rejected)
