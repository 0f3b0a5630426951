"""A source of streams as tips, its index and its readers in memory, with every request on record."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.port import tips_source
from epochal.feed.stream_history import StreamHistory
from epochal.feed.stream_records import Record
from epochal.layout.source import Source
from epochal.plan.values import Item
from epochal.store.streams import Streams
from tests.core.feed import feeds
from tests.core.feed.feeds import Feeds


@dataclass
class TipFeeds(Feeds):
    """Tables `tips` and `index`, a store over the one, indexers and readers over the other."""

    table: str = "tips"

    @property
    def streams(self) -> Streams:
        return memory_tips(self.tables)

    def source(self) -> Source:
        return tips_source("tips", self.partitions)

    def history(self, streams: Streams) -> StreamHistory:
        return StreamHistory(streams)


def record(number: int, image: Item) -> Record:
    """A record of the stream of the table `tips`."""
    return feeds.record(number, image, "tips")


def head(stream: str, following: int, *types: str) -> Item:
    """The image of a Tip whose latest write appended events of these types."""
    return {
        "p": {"S": stream},
        "i": {"N": "2147483647"},
        "n": {"N": str(following)},
        "a": {"N": str(len(types))},
        "c": {"L": [{"S": kind} for kind in types]},
    }
