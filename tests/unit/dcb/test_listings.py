from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.errors import InvalidInput
from epochal.layout.dcb.items import Keys
from epochal.layout.dcb.reading import Site
from epochal.store.tag_listings import TagCount, TagListings
from tests.unit.dcb.world import NOW, World, event


def listings(world: World, shards: int = 1) -> TagListings:
    store = world.store()
    site = Site(events="events", tags="tags", keys=Keys(shards=shards))
    return TagListings(store=replace(store, site=site))


def fill(world: World, count: int, shards: int = 1, first: int = 0) -> list[str]:
    """Events with data 0, 1, ... a second apart; their sortable ids."""
    found = []
    for number in range(first, first + count):
        store = replace(listings(world, shards).store, now=lambda n=number: NOW + n * 10**9)
        (stored,) = store.append([event("A", "t:1", f"u:{number % 3}", data=str(number))]).events
        found.append(stored.sortable_id)
    return found


@pytest.mark.parametrize("shards", [1, 4])
def test_all_events_come_in_order_whatever_the_shards(shards: int) -> None:
    world = World()
    fill(world, 40, shards)
    assert [event.data for event in listings(world, shards).all_events()] == [str(n) for n in range(40)]


def test_raising_the_shard_count_hides_no_older_event() -> None:
    world = World()
    fill(world, 10)
    fill(world, 10, shards=4, first=10)
    assert [int(event.data) for event in listings(world, 4).all_events()] == list(range(20))
    assert listings(world, 4).count() == 20


def test_a_limit_really_limits_what_is_read() -> None:
    world = World()
    fill(world, 30)
    before = world.meter.requests
    assert [event.data for event in listings(world).all_events(max_count=3)] == ["0", "1", "2"]
    assert world.meter.requests == before + 1


def test_since_is_exclusive_everywhere() -> None:
    world = World()
    ids = fill(world, 10)
    assert [event.data for event in listings(world).all_events(since=ids[6])] == ["7", "8", "9"]
    assert [event.data for event in listings(world).tagged("t:1", since=ids[6])] == ["7", "8", "9"]
    assert [entry.index for entry in listings(world).entries("t:1", since=ids[6])] == [7, 8, 9]
    assert listings(world).count(since=ids[6]) == 3
    assert list(listings(world).all_events(since=ids[9])) == []


def test_a_tag_has_its_events_its_latest_and_its_absence() -> None:
    world = World()
    fill(world, 250)
    assert [int(event.data) for event in listings(world).tagged("t:1")] == list(range(250))
    latest = listings(world).latest("t:1")
    assert latest is not None
    assert latest.index == 249
    assert listings(world).exists("u:2")
    assert not listings(world).exists("u:9")
    assert list(listings(world).tagged("u:9")) == []


def test_tags_of_a_group_come_with_their_counts() -> None:
    world = World()
    fill(world, 7)
    assert listings(world).tags("u") == [
        TagCount(tag="u:0", events=3),
        TagCount(tag="u:1", events=2),
        TagCount(tag="u:2", events=2),
    ]
    assert listings(world).tags("nothing") == []


def test_counting_tells_how_far_it_is() -> None:
    world = World()
    fill(world, 5)
    told: list[int] = []
    assert listings(world).count(told=told.append) == 5
    assert told[-1] == 5


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="max_count"):
        listings(World()).all_events(max_count=0)
