"""A read of a few events of tags in pages reads about what holds them, whichever end it begins at."""

from __future__ import annotations

import itertools
import random
from itertools import islice
from typing import Any

import pytest

from epochal.layout.tag_streams import TagStreams
from epochal.model.events import Event
from epochal.model.tags import Query, QueryItem
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables

DIRECTIONS = ("forward", "backward")
PAGE = 600
"""Bytes that no compression makes less: a page of a kilobyte has one event of these."""

EVENTS = 200
RARE = 100


def item(*tags: str, types: str = "") -> QueryItem:
    return QueryItem(types=frozenset(types.split()), tags=frozenset(tags))


A, B = item("a"), item("b")
RARE_A = item("a", types="Rare")


def filled(events: int, size: int, **more: Any) -> TaggedEvents:
    """A store whose tags `a` and `b`, and both, have events in turn; one in the middle is rare."""
    dice = random.Random(1)
    driver = Driver(execute=MemoryTables({"streams": STREAMS}).execute, meter=Meter(), sleep=lambda _: None)
    named = Streams(driver=driver, table="streams", layout=Pages())
    store = TaggedEvents(driver=driver, site=TagStreams(table="streams"), named=named, **more)
    for number in range(events):
        tags = (("a",), ("b",), ("a", "b"))[number % 3] if size < PAGE else ("a",)
        kind = "Rare" if number == events // 2 else "T"
        store.append([Event(type=kind, data=dice.randbytes(size), tags=tags)])
    return store


@pytest.fixture(scope="module")
def large() -> TaggedEvents:
    """A tag of two hundred pages."""
    return filled(EVENTS, PAGE)


@pytest.fixture(scope="module")
def mixed() -> TaggedEvents:
    """Two tags of some dozen pages each, of a few events each."""
    return filled(75, 200)


def cost(store: TaggedEvents, *items: QueryItem, **how: Any) -> tuple[int, float, int]:
    """How many events came, for how many read units, in how many requests."""
    store, meter = store.metered()
    seen = store.read(Query(items=items), **how)
    assert seen.capacity.read == meter.units.read
    return len(seen.events), meter.units.read, meter.requests


# A read that asks for 16 pages at first, and then for 1,000 events, takes 34 units for each of the first six.
@pytest.mark.parametrize(
    ("limit", "forward", "backward"),
    [(1, 2, 2), (2, 2, 2), (5, 2, 2), (10, 3, 3), (20, 5, 5), (100, 18, 18), (EVENTS, 34, 34)],
)
def test_a_limit_reads_the_pages_that_hold_it_and_the_last_one(
    large: TaggedEvents, limit: int, forward: float, backward: float
) -> None:
    for direction, units in zip(DIRECTIONS, (forward, backward), strict=True):
        events, read, requests = cost(large, A, limit=limit, direction=direction)
        assert (events, read) == (limit, units), direction
        assert requests <= 3


@pytest.mark.parametrize("page", ["page", "page_back"])
@pytest.mark.parametrize(("limit", "units"), [(1, 2), (10, 3), (100, 18)])
def test_a_page_with_a_limit_costs_what_a_read_with_it_does(
    large: TaggedEvents, page: str, limit: int, units: float
) -> None:
    store, meter = large.metered()
    room = itertools.count(limit, -1)
    found = getattr(store, page)(Query(items=(A,)), takes=lambda _: next(room) > 0, limit=limit)
    assert len(found.events) == limit
    assert meter.units.read <= units


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_where_a_page_has_many_events_as_many_pages_are_read_as_hold_the_limit(direction: str) -> None:
    """As many pages as events are wanted would be 10 units and more."""
    store = filled(300, 200)
    after = store.read(Query(items=(A,))).events[60].position if direction == "forward" else None
    events, read, requests = cost(store, A, limit=40, after=after, direction=direction)
    assert (events, requests <= 3) == (40, True)
    assert read <= 5


def test_a_limit_after_a_position_reads_the_last_page_what_shows_the_position_and_what_holds_the_limit(
    large: TaggedEvents,
) -> None:
    (*_, fiftieth) = large.read(Query(items=(A,)), limit=50).events
    assert cost(large, A, limit=1, after=fiftieth.position) == (1, 3, 3)
    assert cost(large, A, limit=10, after=fiftieth.position) == (10, 4, 3)


@pytest.mark.parametrize(("direction", "units", "requests"), [("forward", 40, 10), ("backward", 37, 11)])
def test_a_rare_event_far_away_costs_little_more_than_all_that_lies_before_it(
    large: TaggedEvents, direction: str, units: float, requests: int
) -> None:
    events, read, sent = cost(large, RARE_A, limit=1, direction=direction)
    assert events == 1
    assert read <= units
    assert sent <= requests


QUERIES = [(A,), (A, item("b", types="Rare")), (RARE_A,), (item("a", "b"), B)]


@pytest.mark.slow
@pytest.mark.parametrize("items", QUERIES)
def test_whatever_the_limit_and_the_position_the_events_are_those_of_one_read(
    mixed: TaggedEvents, items: tuple[QueryItem, ...]
) -> None:
    query = Query(items=items)
    whole = mixed.read(query)
    starts = [None, *(event.position for event in islice(whole.events, 0, None, 15))]
    for after in starts:
        new = mixed.read(query, after=after).events
        for limit in (1, 3, 20, 1000):
            seen = mixed.read(query, after=after, limit=limit)
            assert seen.events == new[:limit]
            assert mixed.read(query, after=seen.position).events == new[limit:]
            back = mixed.read(query, after=after, limit=limit, direction="backward")
            assert back.events == tuple(reversed(new))[:limit]
            assert back.position == whole.position
