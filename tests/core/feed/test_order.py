"""The order of the feed between streams."""

from __future__ import annotations

import pytest

from epochal.feed.results import FeedItem
from epochal.index.checkpoints import BEGINNING
from epochal.model.events import Event
from epochal.testing.feeds import MemoryStore

Where = tuple[str, int]


def where(items: tuple[FeedItem, ...]) -> list[Where]:
    return [(item.stream, item.index) for item in items]


def of_pages(feed: MemoryStore) -> list[Where]:
    found = (each.partition for each in feed.feed.partitions() if each.partition >= 30_000)
    return [place for number in found for page in feed.feed.read(number) for place in where(page.items)]


def test_what_is_indexed_together_comes_in_the_order_of_its_writes() -> None:
    feed = MemoryStore()
    feed.streams.append("Order-1", [Event(type="Placed")])
    feed.streams.append("Payment-1", [Event(type="Paid")])
    feed.streams.append("Order-1", [Event(type="Shipped")])
    feed.index()
    assert of_pages(feed) == [("Order-1", 0), ("Payment-1", 0), ("Order-1", 1)]


def test_streams_that_the_epoch_knows_and_new_ones_keep_the_order_of_their_writes() -> None:
    feed = MemoryStore()
    feed.streams.append("Order-1", [Event(type="Placed")])
    feed.index()
    feed.streams.append("Order-1", [Event(type="Paid")])
    feed.streams.append("Parcel-1", [Event(type="Packed")])
    feed.streams.append("Order-1", [Event(type="Shipped")])
    feed.streams.append("Parcel-2", [Event(type="Packed")])
    feed.index()
    assert of_pages(feed)[1:] == [("Order-1", 1), ("Parcel-1", 0), ("Order-1", 2), ("Parcel-2", 0)]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_events_are_read_in_that_order_too_however_often_a_stream_comes_in_an_entry(limit: int) -> None:
    feed = MemoryStore()
    for number in range(6):
        feed.streams.append(f"Order-{number % 2}", [Event(type="Placed", data=str(number).encode())])
    feed.index()
    page = feed.feed.page(30_000, start=BEGINNING, limit=limit, data=True)
    assert [item.event and item.event.data for item in page.items] == [b"0", b"1", b"2", b"3", b"4", b"5"]
