"""Pages of listings: bounded, and together the whole, without gap or overlap."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.sekiban import listings as tag_listings
from epochal.contrib.sekiban.items import Keys
from epochal.contrib.sekiban.listings import TagListings
from epochal.errors import InvalidInput
from epochal.http import tag_pages
from epochal.http.tag_pages import DatedPage, TagPage, TagPages
from epochal.model.outcomes import Appended, Conflict
from epochal.plan.ops import Op, Put, Query, Scan
from epochal.plan.values import text
from tests.contrib.sekiban.world import NOW, World, event, query


def place_of(content: object) -> str:
    raw = json.dumps(content, ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def pages(world: World) -> TagPages:
    return TagPages(listings=TagListings(store=world.store()))


def fill(world: World, count: int, data: str = "{}") -> list[str]:
    """Events of ten tags of two groups, a second apart; their ids."""
    found = []
    for nth in range(count):
        store = replace(world.store(), now=lambda n=nth: NOW + n * 10**9)
        (stored,) = store.append([event("A", "t:1", f"u:{nth % 9}", data=data)]).events
        found.append(stored.id)
    return found


def all_of(page: Callable[..., DatedPage[Any]]) -> list[list[Any]]:
    found = [page(since=None)]
    while found[-1].next is not None:
        found.append(page(since=found[-1].next))
    return [list(each.items) for each in found]


def all_tags_of(page: Callable[..., TagPage]) -> list[list[str]]:
    found = [page(after=None)]
    while found[-1].next is not None:
        found.append(page(after=found[-1].next))
    return [[count.tag for count in each.tags] for each in found]


@pytest.mark.parametrize("limit", [1, 4, 10, 25, 1000])
@pytest.mark.parametrize("shards", [1, 3])
def test_pages_of_dated_things_are_full_and_join(limit: int, shards: int) -> None:
    world = World(keys=Keys(shards=shards))
    ids = fill(world, 25)

    for found in (
        [
            [e.id for e in page]
            for page in all_of(lambda since: pages(world).all_events(since=since, limit=limit))
        ],
        [
            [e.id for e in page]
            for page in all_of(lambda since: pages(world).tagged("t:1", since=since, limit=limit))
        ],
        [
            [entry.event_id for entry in page]
            for page in all_of(lambda since: pages(world).entries("t:1", since=since, limit=limit))
        ],
    ):
        assert [id_ for page in found for id_ in page] == ids
        assert {len(page) for page in found[:-1]} <= {limit}
        assert found[-1]


def test_a_page_ends_at_four_megabytes() -> None:
    world = World()
    fill(world, 20, data='"' + "x" * 390_000 + '"')

    found = all_of(lambda since: pages(world).all_events(since=since, limit=1000))

    assert [len(page) for page in found] == [10, 10]


@pytest.mark.slow
def test_a_page_reads_little_more_than_it_holds() -> None:
    world = World()
    fill(world, 400, data='"' + "x" * 4_000 + '"')
    before = world.meter.units.read

    pages(world).all_events(limit=10)

    assert world.meter.units.read - before <= 7


def test_a_page_never_ends_between_events_of_one_sortable_id() -> None:
    """The next page goes on after an id: the rest of its events would be missed."""
    world = World()
    items = [dict(item) for _ in [fill(world, 2)] for item in world.tables.items("events")]
    for nth in range(3):
        twin = {**items[0], "pk": text(f"EVENT#twin{nth}"), "sk": text(f"EVENT#twin{nth}")}
        world.tables.execute(Put(table="events", item={**twin, "eventId": text(f"twin{nth}")}))

    found = all_of(lambda since: pages(world).all_events(since=since, limit=2))

    assert [len(page) for page in found] == [4, 1]


@pytest.mark.parametrize("limit", [1, 2, 4, 9, 10, 1000])
def test_pages_of_tags_are_full_and_join(limit: int) -> None:
    world = World()
    fill(world, 25)
    of_group = all_tags_of(lambda after: pages(world).tags("u", after=after, limit=limit))
    of_all = all_tags_of(lambda after: pages(world).tags(after=after, limit=limit))

    assert [tag for page in of_group for tag in page] == [f"u:{nth}" for nth in range(9)]
    assert sorted(tag for page in of_all for tag in page) == ["t:1", *(f"u:{nth}" for nth in range(9))]
    for found in (of_group, of_all):
        assert {len(page) for page in found[:-1]} <= {limit}
    assert {count.tag: count.events for count in pages(world).tags("u", limit=2).tags} == {"u:0": 3, "u:1": 3}


def test_a_tag_of_the_original_library_alone_stands_in_one_page_however_many_entries_it_has() -> None:
    world = World()
    fill(world, 3)
    for nth in range(30):
        key = {"pk": text("TAG#theirs"), "sk": text(f"{nth:030d}#e")}
        world.tables.execute(Put(table="tags", item=key))

    found = all_tags_of(lambda after: pages(world).tags(after=after, limit=1))

    assert sorted(tag for page in found for tag in page) == ["t:1", "theirs", "u:0", "u:1", "u:2"]


def pad(world: World, name: str, count: int) -> None:
    """Heads of tags that nobody lists, of 390 KB each."""
    for nth in range(count):
        item = {"pk": text(f"{name}{nth}"), "sk": text("#"), "pad": text("x" * 390_000)}
        world.tables.execute(Put(table="tags", item=item))


def scans_of(world: World) -> list[Scan]:
    scans: list[Scan] = []
    world.before = lambda op: scans.append(op) if isinstance(op, Scan) else None
    return scans


def test_a_page_of_all_tags_takes_a_bounded_number_of_requests() -> None:
    world = World()
    fill(world, 9)
    pad(world, "TAG#$x", 9)
    scans = scans_of(world)
    asked, found, after = [], list[str](), None
    while True:
        page = pages(world).tags(limit=4, after=after)
        asked.append(len(scans))
        scans.clear()
        found += [count.tag for count in page.tags]
        after = page.next
        if after is None:
            break

    assert sorted(found) == ["t:1", *(f"u:{nth}" for nth in range(9))]
    assert max(asked) <= 64 + 3
    assert asked[0] == 1, "a table of more than a request is read in parts from the first page on"


def test_a_page_of_a_table_with_large_parts_reads_one_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tag_pages, "PARTS", 4)
    world = World()
    pad(world, "TAG#$x", 60)
    scans = scans_of(world)
    page = pages(world).tags(limit=10)
    scans.clear()
    page = pages(world).tags(limit=10, after=page.next)

    assert {scan.segment for scan in scans} == {(0, 4)}
    assert page.next is not None


def test_a_page_of_many_small_parts_reads_a_megabyte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_pages, "PARTS", 256)
    world = World()
    pad(world, "TAG#$x", 60)
    place, read = pages(world).tags(limit=10).next, []
    while place is not None:
        before = world.meter.units.read
        place = pages(world).tags(limit=10, after=place).next
        read.append(world.meter.units.read - before)

    assert len(read) >= 20
    assert max(read) <= tag_pages.READ_UNITS + 3 * 48


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 1000])
def test_where_a_listing_goes_on_shows_nothing_of_other_tenants_nor_of_the_systems_tags(limit: int) -> None:
    world = World(keys=Keys(service="north"), type_heads=True)
    fill(world, 9)
    pad(world, "SERVICE#secret#TAG#secret:", 9)
    places, found = list[str](), list[str]()
    page = pages(world).tags(limit=limit)
    while page.next is not None:
        places.append(page.next)
        found += [count.tag for count in page.tags]
        page = pages(world).tags(limit=limit, after=page.next)

    assert sorted([*found, *(count.tag for count in page.tags)]) == ["t:1", *(f"u:{n}" for n in range(9))]
    assert places
    for place in places:
        shown = base64.urlsafe_b64decode(place + "=" * (-len(place) % 4)).decode()
        assert "secret" not in shown
        assert "$" not in shown


@pytest.mark.parametrize(
    "after",
    [
        "",
        "!",
        *map(
            place_of, ({}, ["", ""], [1, 2], None, ["TAG#t:1", "#"], [1, 1, ""], [2, 0, ""], [1024, 1024, ""])
        ),
        *map(place_of, ([1, -1, ""], [1, 0, "$all"], [1, 0, 5], [True, 0, ""], [1, 0, "", 1])),
    ],
)
def test_a_place_that_no_page_named_is_refused(after: str) -> None:
    with pytest.raises(InvalidInput, match="after"):
        pages(World()).tags(after=after, limit=1)


def test_a_tag_of_another_group_is_no_place_to_go_on_after() -> None:
    with pytest.raises(InvalidInput, match="after"):
        pages(World()).tags("u", after="t:1", limit=1)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_limits_are_1_to_1000(limit: int) -> None:
    found = pages(World())
    for ask in (found.all_events, found.tags):
        with pytest.raises(InvalidInput, match="limit"):
            ask(limit=limit)
    for ask in (found.tagged, found.entries):
        with pytest.raises(InvalidInput, match="limit"):
            ask("t:1", limit=limit)


def test_pages_of_a_tenant_show_no_other_even_from_a_place_that_another_was_given() -> None:
    world = World(keys=Keys(service="north"))
    fill(world, 9)
    other = World(keys=Keys(service="south"), tables=world.tables)
    other.store().append([event("A", "own:1")])

    place = pages(world).tags(limit=1).next
    found = [pages(other).tags(after=after, limit=1000).tags for after in (None, place)]

    assert [count.tag for count in found[0]] == ["own:1"]
    assert {count.tag for count in found[1]} <= {"own:1"}


@pytest.mark.parametrize("service", ["TAG", "x-TAG", "EVENT", "ALL_EVENTS", "SERVICE", "PROJECTOR"])
def test_a_tenant_may_have_the_name_of_a_mark_in_keys(service: str) -> None:
    world = World(keys=Keys(service=service))
    ids = fill(world, 2)
    asked = query(("", "t:1"))
    seen = world.store().read(asked)

    assert [each.id for each in seen.events] == ids
    assert isinstance(world.store().try_append([event("A", "t:1")], fail_if=asked), Conflict)
    assert isinstance(world.store().append([event("A", "t:1")], fail_if=asked, after=seen.position), Appended)
    listings = TagListings(store=world.store())
    assert [(count.tag, count.events) for count in listings.all_tags()] == [
        ("t:1", 3),
        ("u:0", 1),
        ("u:1", 1),
    ]
    assert listings.all_tags() == [*listings.tags("t"), *listings.tags("u")]
    assert [each.id for each in listings.all_events()][:2] == ids


def test_a_page_of_a_groups_tags_that_ends_at_its_requests_goes_on_where_it_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tag_pages, "QUERIES", 2)
    monkeypatch.setattr(tag_listings, "PAGE", 3)
    world = World()
    fill(world, 60)
    asked: list[Op] = []
    world.before = asked.append
    found = []
    after = None
    while True:
        asked.clear()
        page = pages(world).tags("u", after=after, limit=1000)
        assert sum(isinstance(op, Query) for op in asked) <= 2
        found += [count.tag for count in page.tags]
        after = page.next
        if after is None:
            break
    assert found == [f"u:{number}" for number in range(9)]
