"""A reader in one order has the events of one append in its order, though Sekiban's heads do not tell it."""

from __future__ import annotations

import time

import pytest

from epochal.model.events import Event
from epochal.testing.feeds import MemoryStore


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("once", [True, False], ids=["once", "every"])
def test_a_reader_in_order_has_the_events_of_one_append_in_its_order(partitions: int, once: bool) -> None:
    feed = MemoryStore(options={"dcb_partitions": partitions})
    events = [
        Event(type=f"{number:03}", data=b"{}", tags=(f"t:{number % 7}", f"u:{number % 3}"))
        for number in range(20)
    ]
    feed.dcb.append(events)
    feed.index()
    pages = feed.feed.ordered(within=60, once=once, now=lambda: time.time_ns() + 120 * 10**9)
    types = [item.type for page in pages for item in page.items]
    assert types == sorted(types)
    assert len(types) == (20 if once else 40)
