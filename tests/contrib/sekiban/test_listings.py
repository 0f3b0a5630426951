from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from itertools import islice

import pytest

from epochal.contrib.sekiban.items import Keys, TagSite
from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.opening import DcbImporter
from epochal.contrib.sekiban.store import dcb_of
from epochal.errors import CorruptData, InvalidInput
from epochal.model.events import Recorded
from epochal.model.tag_answers import TagCount
from epochal.plan.ops import BatchGet, Delete, Items, Op, Put, Reply
from epochal.plan.values import number, text
from epochal.settings import Settings
from epochal.store.listings import GroupCount
from epochal.store.tagged_importer import ImportedEvent
from tests.contrib.sekiban.world import NOW, World, event


def listings(world: World, shards: int = 1) -> TagListings:
    store = world.store()
    site = TagSite(events="events", tags="tags", keys=Keys(shards=shards))
    return TagListings(store=replace(store, site=site))


def fill(world: World, count: int, shards: int = 1, first: int = 0) -> list[str]:
    """Events with data 0, 1, ... a second apart; their sortable ids."""
    found = []
    for nth in range(first, first + count):
        store = replace(listings(world, shards).store, now=lambda n=nth: NOW + n * 10**9)
        (stored,) = store.append([event("A", "t:1", f"u:{nth % 3}", data=str(nth))]).events
        found.append(stored.place)
    return found


@pytest.mark.parametrize("shards", [1, 4])
def test_all_events_come_in_order_whatever_the_shards(shards: int) -> None:
    world = World()
    fill(world, 40, shards)
    assert [event.data for event in listings(world, shards).all_events()] == [b"%d" % n for n in range(40)]


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
    assert [event.data for event in listings(world).all_events(max_count=3)] == [b"0", b"1", b"2"]
    assert world.meter.requests == before + 1


def test_since_is_exclusive_everywhere() -> None:
    world = World()
    ids = fill(world, 10)
    assert [event.data for event in listings(world).all_events(since=ids[6])] == [b"7", b"8", b"9"]
    assert [event.data for event in listings(world).tagged("t:1", since=ids[6])] == [b"7", b"8", b"9"]
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


def test_a_tag_with_many_entries_costs_a_listing_of_its_group_one_request() -> None:
    world = World()
    for nth in range(40):
        world.store().append([event("A", "u:busy") for _ in range(30)] + [event("A", f"v:{nth}")])
    for tag in ("u:a", "u:z"):
        world.store().append([event("A", tag)])
    before = world.meter.requests

    assert listings(world).tags("u") == [
        TagCount(tag="u:a", events=1),
        TagCount(tag="u:busy", events=1200),
        TagCount(tag="u:z", events=1),
    ]
    # Two pages through the index: what the first leaves of the busy tag is passed by. One for the heads.
    assert world.meter.requests == before + 3


@pytest.mark.parametrize("group", ["", ":", "u:1", "$type", "a\n"])
def test_a_malformed_group_is_refused(group: str) -> None:
    with pytest.raises(InvalidInput, match="group"):
        listings(World()).tags(group)


def test_a_tag_without_a_group_is_refused_because_no_index_could_list_it() -> None:
    with pytest.raises(InvalidInput, match="must not begin with :"):
        World().store().append([event("A", ":x")])


def test_a_group_is_not_confused_with_one_whose_name_it_begins() -> None:
    world = World()
    world.store().append([event("A", "u", "u:🜁", "u;", "u:", "user:1")])

    assert [count.tag for count in listings(world).tags("u")] == ["u", "u:", "u:🜁"]


def test_tags_of_all_groups_come_with_their_counts_and_without_the_reserved_ones() -> None:
    world = World(type_heads=True)
    world.store().append([event("A", "t:1", "plain"), event("B"), event("A", "t:1", "u:1")])

    assert listings(world).all_tags() == [
        TagCount(tag="plain", events=1),
        TagCount(tag="t:1", events=2),
        TagCount(tag="u:1", events=1),
    ]
    assert listings(world).groups() == [
        GroupCount(group="plain", tags=1),
        GroupCount(group="t", tags=1),
        GroupCount(group="u", tags=1),
    ]


def foreign_entry(world: World, tag: str, nth: int) -> None:
    """As the original library writes them: without an index in the tag, and without a head."""
    item = {
        "pk": text(f"TAG#{tag}"),
        "sk": text(f"{nth:030d}#e{nth}"),
        "tagString": text(tag),
        "tagGroup": text(tag.partition(":")[0]),
        "eventType": text("A"),
        "eventId": text(f"e{nth}"),
        "sortableUniqueId": text(f"{nth:030d}"),
        "createdAt": text("2026-01-01T00:00:00Z"),
    }
    world.tables.execute(Put(table="tags", item=item))


def test_a_tag_that_only_the_original_library_has_written_is_listed_though_nothing_counts_it() -> None:
    world = World()
    fill(world, 2)
    for nth in range(3):
        foreign_entry(world, "theirs:1", nth)

    assert TagCount(tag="theirs:1", events=0) in listings(world).all_tags()
    assert listings(world).tags("theirs") == [TagCount(tag="theirs:1", events=0)]
    assert [entry.index for entry in listings(world).entries("theirs:1")] == [None] * 3


def test_tenants_in_one_table_list_their_own_tags_only() -> None:
    world = World(keys=Keys(service="north"))
    world.store().append([event("A", "t:1")])
    other = World(keys=Keys(service="south"), tables=world.tables)
    other.store().append([event("A", "t:1"), event("A", "t:2")])
    plain = World(tables=world.tables)

    for each, expected in ((world, ["t:1"]), (other, ["t:1", "t:2"]), (plain, [])):
        assert [count.tag for count in TagListings(store=each.store()).all_tags()] == expected
        assert [count.tag for count in TagListings(store=each.store()).tags("t")] == expected


def test_an_entry_missing_between_others_is_corruption_never_a_shorter_list() -> None:
    world = World()
    fill(world, 5)
    (gone,) = [
        item
        for item in world.tables.items("tags")
        if item.get("tagIndex") == number(2) and item["pk"] == text("TAG#t:1")
    ]
    world.tables.execute(Delete(table="tags", key={"pk": gone["pk"], "sk": gone["sk"]}))

    with pytest.raises(CorruptData, match="t:1"):
        list(listings(world).entries("t:1"))


@pytest.mark.slow
def test_events_fetched_several_batches_at_a_time_come_in_order_all_the_same() -> None:
    world = World()
    fill(world, 750)
    eager = TagListings(store=replace(world.store(), reads_at_once=3))

    assert [int(event.data) for event in eager.tagged("t:1")] == list(range(750))
    assert [int(event.data) for event in islice(eager.tagged("t:1"), 3)] == [0, 1, 2]


@pytest.mark.slow
def test_as_many_requests_are_under_way_as_the_store_was_opened_with() -> None:
    world = World()
    fill(world, 600)
    together = threading.Barrier(3, timeout=120)
    world.before = lambda op: together.wait() if isinstance(op, BatchGet) else None
    eager = TagListings(store=replace(world.store(), reads_at_once=3))

    assert len(list(eager.tagged("t:1"))) == 600


@pytest.mark.slow
def test_reading_tells_how_far_it_is() -> None:
    world = World()
    ids = fill(world, 1_100)
    all_told: list[int] = []
    tag_told: list[int] = []

    list(listings(world).all_events(progress=all_told.append))
    list(listings(world).tagged("t:1", since=ids[849], progress=tag_told.append))

    assert all_told == [500, 1000, 1100]
    assert tag_told == [100, 200, 250]


def test_counting_tells_how_far_it_is() -> None:
    world = World()
    fill(world, 5)
    told: list[int] = []
    assert listings(world).count(progress=told.append) == 5
    assert told[-1] == 5


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="max_count"):
        listings(World()).all_events(max_count=0)


def test_two_tags_whose_writers_clocks_are_behind_never_get_one_id() -> None:
    world = World()
    world.store(NOW + 10**9).append([event("A", "t:1", "t:2")])
    behind = world.store(NOW)
    found = [behind.append([event("A", tag)]).events[0].place for tag in ("t:1", "t:2", "t:1", "t:2")]

    assert len(set(found)) == len(found)
    assert found[0] < found[2]
    assert found[1] < found[3]


def with_equal_ids(world: World) -> None:
    """Seven events of tags of their own, of which no more than three have an id: as other libraries may write them."""
    history = [
        ImportedEvent(
            event=event("A", f"t:{nth}", id_=str(uuid.UUID(int=nth)), data=str(nth)),
            timestamp="2026-01-01T00:00:00Z",
            place=str(f"{(nth + 1) // 3:030d}"),
        )
        for nth in range(7)
    ]
    for each in history:
        DcbImporter(store=world.store()).run([each])


@pytest.mark.parametrize("count", range(1, 9))
def test_reading_on_from_a_cut_loses_no_event_of_an_equal_id(count: int) -> None:
    world = World()
    with_equal_ids(world)
    found, since = list[Recorded](), None
    while part := list(listings(world).all_events(since=since, max_count=count)):
        assert len(part) >= min(count, 7 - len(found))
        found += part
        since = part[-1].place

    assert sorted(int(each.data) for each in found) == list(range(7))


def test_partitions_are_asked_side_by_side_and_their_events_come_in_order() -> None:
    world = World()
    fill(world, 60, shards=3)
    together = threading.Barrier(4, timeout=120)
    asked: list[Op] = []

    def meet(op: Op) -> None:
        asked.append(op)
        if len(asked) <= 4:
            together.wait()

    world.before = meet
    eager = listings(world, 3)
    eager = TagListings(store=replace(eager.store, reads_at_once=4))

    assert [int(each.data) for each in eager.all_events(page=5)] == list(range(60))
    asked.clear()
    assert eager.count() == 60


def test_of_each_partition_at_most_one_page_more_is_read_than_is_wanted() -> None:
    world = World()
    fill(world, 60, shards=3)
    eager = TagListings(store=replace(listings(world, 3).store, reads_at_once=4))
    before = world.meter.requests
    found = eager.all_events(page=2)
    next(found)
    del found

    assert world.meter.requests - before <= 2 * 4


def test_counting_brings_no_event_over_the_wire() -> None:
    world = World()
    ids = fill(world, 40, shards=3)
    brought: list[Reply] = []
    execute = world.execute

    def noted(op: Op) -> Reply:
        brought.append(execute(op))
        return brought[-1]

    store = listings(world, 3).store
    counting = TagListings(store=replace(store, driver=replace(store.driver, execute=noted)))

    assert (counting.count(), counting.count(since=ids[9])) == (40, 30)
    assert all(isinstance(reply, Items) and not reply.items for reply in brought)


def test_a_deployment_with_write_shards_reads_them_side_by_side_and_one_without_has_no_threads() -> None:
    driver = World().store().driver
    for shards, at_once in ((1, 1), (4, 4)):
        settings = Settings.of(events_table="events", tags_table="tags", write_shards=shards)
        assert dcb_of(settings, driver).reads_at_once == at_once
