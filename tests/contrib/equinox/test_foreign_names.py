"""Streams as tips that other libraries named more freely than Epochal does."""

from __future__ import annotations

from epochal.plan.ops import Put
from tests.contrib.equinox.feeds import TipFeeds, head, record


def test_streams_that_other_libraries_named_more_freely_are_read_too() -> None:
    feeds = TipFeeds()
    event = {"M": {"t": {"S": "2013-01-01T00:00:00.0000000+00:00"}, "d": {"B": b"{}"}}}
    foreign = {**head("Straße/1", 1, "a"), "e": {"L": [event]}, "etag": {"S": "x"}}
    feeds.tables.execute(Put(table="tips", item=foreign))
    feeds.indexer().index([record(0, foreign)])
    (item,) = feeds.reader(feeds.streams).page(0, data=True).items
    assert item.event is not None
    assert item.event.data == b"{}"
