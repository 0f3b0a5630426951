"""The feed: all events of all streams, read from the index and from their stores."""

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
