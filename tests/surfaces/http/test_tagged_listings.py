"""Listings of tagged events as pages: of a tag from any event on, of everything, of tags and groups."""

from __future__ import annotations

from random import Random

import pytest

from epochal.errors import InvalidInput
from epochal.http import tag_pages
from epochal.http.tag_pages import TagPages
from epochal.model.events import Event, Recorded
from epochal.model.tag_answers import TagCount
from epochal.pages.reading import query
from epochal.pages.tags.entries import stream_of
from epochal.pages.tags.listing import begin_read_after
from epochal.store.listings import GroupCount, TaggedListings
from epochal.testing.stores import memory_streams, memory_tables, memory_tagged_events

LONG = 60
"""Events of 2 KB: a tag that has so many has some twenty pages."""


def event(*tags: str, kind: str = "A", data: str = "{}") -> Event:
    return Event(type=kind, data=data.encode(), tags=tags)


def noise(number: int) -> str:
    """Text that does not compress."""
    return f'"{Random(number).randbytes(1_000).hex()}"'


@pytest.fixture(scope="module")
def long() -> tuple[TaggedListings, list[Recorded]]:
    """A tag of several pages, and everything, beside streams of the same table."""
    tables = memory_tables()
    memory_streams(tables).append("Cart-1", [Event(type="Added")])
    store = memory_tagged_events(tables, everything=True)
    made = [store.append([event("t:1", data=noise(number))]).events[0] for number in range(LONG)]
    store.append([event("t:2"), event("other", "u:1")])
    return TaggedListings(store=store), made


@pytest.mark.slow
def test_a_tag_is_listed_after_any_of_its_events(
    long: tuple[TaggedListings, list[Recorded]],
) -> None:
    listings, made = long
    pages = listings.store.driver.ask(query(listings.store.site.table, stream_of("t:1"), 0, LONG)).items
    assert len(pages) > 10
    for number, each in enumerate(made):
        found = list(listings.tagged("t:1", since=each.place, page=3))
        assert [one.id for one in found] == [one.id for one in made[number + 1 :]]
    assert list(listings.tagged("t:1")) == list(listings.tagged("t:1", since="0" * 30)) == made
    assert list(listings.tagged("t:1", since="9" * 30)) == []


def test_who_follows_the_end_of_a_tag_asks_once(
    long: tuple[TaggedListings, list[Recorded]],
) -> None:
    listings, made = long
    before = listings.store.driver.meter.requests
    assert list(listings.tagged("t:1", since=made[-1].place)) == []
    assert listings.store.driver.meter.requests - before == 1


def test_an_event_in_the_middle_is_found_in_few_requests(
    long: tuple[TaggedListings, list[Recorded]],
) -> None:
    listings, made = long
    for each in made:
        before = listings.store.driver.meter.requests
        listings.store.driver.run(begin_read_after(listings.store.site, "t:1", each.place))
        assert listings.store.driver.meter.requests - before <= 12


def test_everything_is_listed_and_counted_where_it_has_a_stream(
    long: tuple[TaggedListings, list[Recorded]],
) -> None:
    listings, made = long
    found = list(listings.all_events())
    assert [each.place for each in found] == sorted(each.place for each in found)
    assert len(found) == LONG + 2 == listings.count()
    for number in (0, 7, LONG - 1):
        since = made[number].place
        assert listings.count(since=since) == LONG + 1 - number
        assert list(listings.all_events(since=since, max_count=2)) == found[number + 1 : number + 3]


def test_without_such_a_stream_everything_is_refused_with_where_to_find_it() -> None:
    listings = TaggedListings(store=memory_tagged_events())
    for ask in (listings.all_events, listings.count):
        with pytest.raises(InvalidInput, match="or read the feed"):
            ask()


def test_the_latest_event_of_a_tag_is_one_request(
    long: tuple[TaggedListings, list[Recorded]],
) -> None:
    listings, made = long
    before = listings.store.driver.meter.requests
    latest = listings.latest("t:1")
    assert listings.store.driver.meter.requests - before == 1
    assert latest is not None
    assert (latest.event_id, latest.index) == (made[-1].id, LONG - 1)
    assert listings.latest("t:9") is None
    assert not listings.exists("t:9")
    assert [each.index for each in listings.entries("t:1")] == list(range(LONG))


def test_tags_come_with_their_counts_however_many_pages_they_have_and_no_stream_is_among_them(
    long: tuple[TaggedListings, list[Recorded]],
) -> None:
    listings, _ = long
    assert listings.all_tags() == [
        TagCount(tag="other", events=1),
        TagCount(tag="t:1", events=LONG),
        TagCount(tag="t:2", events=1),
        TagCount(tag="u:1", events=1),
    ]
    assert listings.groups() == [
        GroupCount(group="other", tags=1),
        GroupCount(group="t", tags=2),
        GroupCount(group="u", tags=1),
    ]
    assert [each.tag for each in listings.tags("t")] == ["t:1", "t:2"]
    assert [each.tag for each in listings.tags("other")] == ["other"]
    assert listings.tags("oth") == []


@pytest.mark.parametrize("parts", [4, 1_024])
@pytest.mark.parametrize("limit", [1, 2, 1_000])
@pytest.mark.parametrize("group", [None, "t"])
def test_pages_of_tags_join(
    long: tuple[TaggedListings, list[Recorded]],
    monkeypatch: pytest.MonkeyPatch,
    parts: int,
    limit: int,
    group: str | None,
) -> None:
    monkeypatch.setattr(tag_pages, "PARTS", parts)
    listings, _ = long
    pages, found, after = TagPages(listings=listings), list[TagCount](), None
    while True:
        page = pages.tags(group, after=after, limit=limit)
        found += page.tags
        after = page.next
        if after is None:
            break
    assert sorted(found, key=lambda each: each.tag) == (
        listings.all_tags() if group is None else listings.tags(group)
    )


@pytest.mark.parametrize("bad", ["", "a:b", "$type"])
def test_what_is_no_group_is_refused(bad: str) -> None:
    listings = TaggedListings(store=memory_tagged_events())
    with pytest.raises(InvalidInput, match="group"):
        listings.tags(bad)
    with pytest.raises(InvalidInput, match="group"):
        TagPages(listings=listings).tags(bad, limit=1)


@pytest.mark.parametrize("limit", [1, 2, LONG - 1, LONG])
def test_a_page_of_a_tag_has_as_many_events_as_were_asked_for_and_no_more(
    long: tuple[TaggedListings, list[Recorded]], limit: int
) -> None:
    listings, made = long
    page = TagPages(listings=listings).tagged("t:1", limit=limit)
    assert [each.id for each in page.items] == [each.id for each in made[:limit]]
    assert page.next == (made[limit - 1].place if limit < LONG else None)
