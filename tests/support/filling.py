"""A store with many events in it: one long stream, some hundred short ones, and tags."""

from __future__ import annotations

from epochal import Event
from epochal.testing.feeds import MemoryStore


def fill(feed: MemoryStore, events: int) -> None:
    """Append a number of events, nearly all to `Long-1`, and index them."""
    for number in range(events // 100):
        feed.streams.append("Long-1", [Event(type="Noted", data=b'{"number":%d}' % number)] * 95)
        feed.streams.append(f"Short-{number % 97}", [Event(type="Noted", data=b"{}")] * 4)
        feed.tagged.append([Event(type="Enrolled", data=b"{}", tags=(f"course:c{number % 7}",))])
        if number % 5 == 0:
            feed.index()
    feed.index()
