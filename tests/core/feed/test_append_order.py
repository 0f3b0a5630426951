"""Events of one append come in the order of the append, whichever tags they have."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import pytest

from epochal.feed.results import FeedItem
from epochal.model.events import Event
from epochal.testing.feeds import MemoryStore
from tests.support.examples import seeds

PAGES = 30_000


def numbered(number: int, *tags: str) -> Event:
    """An event that knows its number in its append."""
    return Event(type=f"{number:03}", data=b"{}", tags=tags)


def first_order(items: Sequence[FeedItem]) -> list[str]:
    """The types of items in order, each once."""
    return list(dict.fromkeys(item.type for item in items))


def test_events_of_one_append_to_several_tags_keep_their_order() -> None:
    feed = MemoryStore()
    tags = ["a:1", "a:1", "b:1", "b:1", "b:1", "a:1"]
    feed.tagged.append([numbered(number, tag) for number, tag in enumerate(tags)])
    feed.index()
    page = feed.feed.page(PAGES)
    assert [(item.stream, item.type) for item in page.items] == [
        (f"$tag-{tag}", f"{number:03}") for number, tag in enumerate(tags)
    ]


def test_an_event_with_several_tags_comes_through_all_of_them_before_the_next() -> None:
    feed = MemoryStore()
    feed.tagged.append([numbered(0, "a:1", "b:1"), numbered(1, "b:1"), numbered(2, "a:1", "c:1")])
    feed.index()
    items = feed.feed.page(PAGES).items
    assert [item.type for item in items] == ["000", "000", "001", "002", "002"]


def test_events_of_one_append_to_streams_and_tags_keep_their_order() -> None:
    feed = MemoryStore()
    feed.streams.append("Course-1", [numbered(0, "x:1"), numbered(1), numbered(2, "y:1"), numbered(3, "x:1")])
    feed.index()
    items = feed.feed.page(PAGES).items
    assert first_order(items) == ["000", "001", "002", "003"]
    assert [item.type for item in items] == sorted(item.type for item in items)


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("once", [True, False], ids=["once", "every"])
def test_a_reader_in_order_has_the_events_of_one_append_in_its_order(partitions: int, once: bool) -> None:
    feed = MemoryStore(options={"pages_partitions": partitions})
    feed.tagged.append([numbered(number, f"t:{number % 7}", f"u:{number % 3}") for number in range(40)])
    feed.index()
    pages = feed.feed.ordered(within=60, once=once, now=lambda: time.time_ns() + 120 * 10**9)
    items = [item for page in pages for item in page.items]
    types = [item.type for item in items]
    assert types == sorted(types)
    assert len(types) == (40 if once else 80)


@pytest.mark.parametrize("partitions", [1, 4])
def test_the_newest_have_the_events_of_one_append_in_its_order_backward(partitions: int) -> None:
    feed = MemoryStore(options={"pages_partitions": partitions})
    feed.tagged.append([numbered(number, f"t:{number % 7}", f"u:{number % 3}") for number in range(40)])
    feed.index()
    types = [item.type for item in feed.feed.newest(100).items]
    assert types == sorted(types, reverse=True)


@seeds(30, 6)
def test_appends_of_any_tags_keep_their_orders_however_they_are_indexed(seed: int) -> None:
    rng, feed = random.Random(seed), MemoryStore()
    number = 0
    for _ in range(rng.randint(1, 6)):
        count = rng.randint(1, 9)
        tags = [rng.sample(["a:1", "b:1", "c:1", "d:1"], rng.randint(1, 3)) for _ in range(count)]
        feed.tagged.append([numbered(number + place, *own) for place, own in enumerate(tags)])
        number += count
        if rng.random() < 0.5:
            feed.index()
    feed.index()
    items = feed.feed.page(PAGES, limit=10_000).items
    assert first_order(items) == [f"{each:03}" for each in range(number)]
    per_stream: dict[str, list[int]] = {}
    for item in items:
        per_stream.setdefault(item.stream, []).append(item.index)
    assert all(indices == [*range(len(indices))] for indices in per_stream.values())
