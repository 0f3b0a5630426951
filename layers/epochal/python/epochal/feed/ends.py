"""Where a stream of the feed ends in its store, whatever the feed has got to."""

from __future__ import annotations

from collections.abc import Collection

from epochal.index.epochs import Gap
from epochal.index.healing import heal_journal
from epochal.layout.dcb.reading import read_heads
from epochal.layout.tips.append import read
from epochal.store.aggregates import AggregateStore
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents


def end_of_stream(store: Streams, stream: str) -> int:
    """The next index of a named stream."""
    tip = store.driver.run(read(store.table, stream))
    return 0 if tip is None else tip.version


def end_of_aggregate(store: AggregateStore, aggregate: str, since: int, types: Collection[str] = ()) -> int:
    """The index after an aggregate's last event, looked for from `since` on: a head that another library wrote does
    not tell.
    """
    heal = heal_journal(store.site, types)
    while True:
        found = store.driver.run(heal(Gap(stream=aggregate, index=since, end=None)))
        since += found.events
        if found.whole:
            return since


def end_of_tag(store: TaggedEvents, tag: str) -> int:
    """How many events a tag has had."""
    return store.driver.run(read_heads(store.site, [tag]))[tag].count
