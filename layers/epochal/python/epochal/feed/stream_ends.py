"""Where a stream of the feed ends in its store, whatever the feed has got to."""

from __future__ import annotations

from epochal.errors import InvalidInput
from epochal.feed.reader import FeedReader
from epochal.layout.dcb.reading import read_heads
from epochal.layout.journal.port import heal_journal
from epochal.layout.port import Gap
from epochal.layout.registry import source_of
from epochal.layout.tips.reading import load_tip
from epochal.store.aggregates import AggregateStore
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedEvents


def end_of(reader: FeedReader, partition: int, stream: str, since: int) -> int:
    """The index after the last event that a stream's store holds by now; it is at least `since`.

    Raises:
        InvalidInput: the reader was not given the store of the partition's source.
    """
    match source_of(partition):
        case "tips" if reader.streams is not None:
            found = _end_of_stream(reader.streams, stream)
        case "journal" if reader.aggregates is not None:
            found = _end_of_aggregate(reader.aggregates, stream, since)
        case "dcb" if reader.tagged is not None:
            found = _end_of_tag(reader.tagged, stream)
        case source:
            raise InvalidInput("data", f"needs a reader that was given the store of {source}")
    return max(found, since)


def _end_of_stream(store: Streams, stream: str) -> int:
    """The next index of a named stream."""
    tip = store.driver.run(load_tip(store.table, stream))
    return 0 if tip is None else tip.version


def _end_of_aggregate(store: AggregateStore, aggregate: str, since: int) -> int:
    """The index after an aggregate's last event, looked for from `since` on: a head that another library wrote does
    not tell.
    """
    heal = heal_journal(store.site)
    while True:
        found = store.driver.run(heal(Gap(stream=aggregate, index=since, end=None)))
        since += found.events
        if found.whole:
            return since


def _end_of_tag(store: TaggedEvents, tag: str) -> int:
    """How many events a tag has had."""
    return store.driver.run(read_heads(store.site, [tag]))[tag].count
