"""The feed: all events of all streams, read from the index and from their stores.

The first part writes the index, the second reads the feed:

stream_records      reads what the indexer's function receives: changes of tables
append_order        puts the changes of a batch in the order of their appends
index_writer        keeps the state of partitions between calls, and writes to the index
indexer             indexes batches of changes
unreadable_records  stores records that can never be indexed, with the cause
notices             publishes how far partitions have moved

span_reader         reads the spans of a partition page by page, without events
filters             chooses spans by category and predicate
events              brings the events of all layouts in one form
history             reads events for spans from the store of each layout
stream_history      reads events of named streams, of any layout
histories           opens the history of each layout of a deployment
batch_reading       reads ranges of many streams in batches, where a layout can
hydration           reads the events for the spans of a page, several streams at the same time
page_filling        fills a page with events up to its size
results             has the pages that readers return
waiting             lets readers of one process share their looks at a partition
reader              reads a partition of the feed: by page, to the tail, or without end
latest              reads the latest items of a partition
newest              puts the newest items of several partitions in order
ordered             reads several partitions in one order, by time
whole               reads all partitions at once
conversations       reads the events of one conversation as a tree
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.feed.events import Fault as Fault
    from epochal.feed.events import FeedEvent as FeedEvent
    from epochal.feed.events import Gone as Gone
    from epochal.feed.ordered import OrderedCheckpoint as OrderedCheckpoint
    from epochal.feed.ordered import OrderedPage as OrderedPage
    from epochal.feed.ordered import Released as Released
    from epochal.feed.reader import FeedReader as FeedReader
    from epochal.feed.reader import PageOptions as PageOptions
    from epochal.feed.results import FeedItem as FeedItem
    from epochal.feed.results import FeedPage as FeedPage
    from epochal.feed.results import ListedStream as ListedStream
    from epochal.feed.results import NamedStreams as NamedStreams
    from epochal.feed.results import NewestPage as NewestPage
    from epochal.feed.results import PartitionTail as PartitionTail
    from epochal.feed.results import PlacedRemoval as PlacedRemoval
    from epochal.feed.results import SpanPage as SpanPage
    from epochal.feed.results import StreamsPage as StreamsPage

_NAMES = {
    "events": (
        "Fault",
        "FeedEvent",
        "Gone",
    ),
    "ordered": (
        "OrderedCheckpoint",
        "OrderedPage",
        "Released",
    ),
    "reader": (
        "FeedReader",
        "PageOptions",
    ),
    "results": (
        "FeedItem",
        "FeedPage",
        "ListedStream",
        "NamedStreams",
        "NewestPage",
        "PartitionTail",
        "PlacedRemoval",
        "SpanPage",
        "StreamsPage",
    ),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
