"""Listings of tagged events, judged by AWS's own DynamoDB: its order of keys, its indexes, its scans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.sekiban import open_dcb_events
from epochal.contrib.sekiban.items import EVENTS, TAGS
from epochal.contrib.sekiban.listings import TagListings
from epochal.dynamo.stores import Place
from epochal.http.tag_pages import TagPages
from epochal.model.events import Event
from epochal.model.tag_answers import TagCount
from tests.support.tables import Tables

NAMES = ["u", "u:", "u: a", "u:1", "u:10", "u:2", "u:~", "u:é", "u:世", "u:🜁"]
"""Tags of one group in the order of their bytes, and ten entries of each."""

OTHERS = ["t:1", "u;", "user:1"]


@pytest.fixture(scope="module")
def listings(ddbl: Endpoint) -> Iterator[TagListings]:
    """What no test writes to."""
    with Tables(ddbl) as tables:
        place = Place(endpoint=ddbl.url)
        store = open_dcb_events(tables.create(EVENTS), tables.create(TAGS), place=place)
        for _ in range(5):
            store.append([Event(type="A", data=b"{}", tags=(*NAMES, *OTHERS)) for _ in range(2)])
        yield TagListings(store=store)


def test_a_group_is_listed_in_order_and_without_its_neighbours(listings: TagListings) -> None:
    assert listings.tags("u") == [TagCount(tag=tag, events=10) for tag in NAMES]
    assert [tag for page in listings.tag_name_pages("u", page=3) for tag in page] == NAMES


def test_pages_of_a_group_join(listings: TagListings) -> None:
    found, after = [], None
    while True:
        page = TagPages(listings=listings).tags("u", after=after, limit=3)
        found += [count.tag for count in page.tags]
        after = page.next
        if after is None:
            break

    assert found == NAMES


@pytest.mark.parametrize("limit", [1, 5, 100])
def test_pages_of_all_tags_join(listings: TagListings, limit: int) -> None:
    found, after = [], None
    while True:
        page = TagPages(listings=listings).tags(after=after, limit=limit)
        found += page.tags
        after = page.next
        if after is None:
            break

    assert sorted(found, key=lambda count: count.tag) == listings.all_tags()
    assert [count.tag for count in listings.all_tags()] == sorted([*NAMES, *OTHERS])
    assert {count.events for count in found} == {10}
    assert [(group.group, group.tags) for group in listings.groups()] == [
        ("t", 1),
        ("u", len(NAMES)),
        ("u;", 1),
        ("user", 1),
    ]
