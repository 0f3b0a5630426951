"""An index and its heads that are made up as they are read, so that their size takes no memory."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.index.checkpoints import SERIES, TIP, epoch_stream, tip_key
from epochal.index.entries import closing_entry, write_entry
from epochal.index.tip import StoredSpan, events_attributes, write_event
from epochal.layout.changes import Span as FeedSpan
from epochal.plan.ops import BatchGet, Found, Get, Items, Op, Query, Reply, Scan
from epochal.plan.values import Item, number, text

AN_EPOCH = 100
"""Streams in each epoch, and heads in each page."""


@dataclass
class Vast:
    """`streams` streams of one event, right in every way."""

    streams: int

    def execute(self, op: Op) -> Reply:
        match op:
            case Get(key=key):
                return Found(item=self._item(key["p"]["S"]))
            case BatchGet(keys=keys):
                return Items(items=tuple({**key, "n": number(1)} for key in keys))
            case Scan(table="index"):
                return Items(items=())
            case Scan(after=after):
                first = 0 if after is None else int(after["p"]["S"].removeprefix("S-")) + 1
                names = [f"S-{at}" for at in range(first, min(first + AN_EPOCH, self.streams))]
                last = {"p": text(names[-1])} if first + AN_EPOCH < self.streams else None
                return Items(items=tuple(head(name) for name in names), last=last)
            case Query():
                return Items(items=())
        raise AssertionError(op)

    def _item(self, name: str) -> Item | None:
        if name == SERIES:
            return None
        if name.startswith("S-"):
            return head(name)
        epoch = int(name.rpartition("_")[2])
        assert name == epoch_stream(0, epoch)
        if epoch * AN_EPOCH >= self.streams:
            return None
        spans = [FeedSpan(f"S-{at}", 0, ("added",)) for at in range(epoch * AN_EPOCH, (epoch + 1) * AN_EPOCH)]
        stored = (write_entry(spans, (), ""), closing_entry(""))
        own = StoredSpan(
            base=0, events=tuple(map(write_event, stored)), types=tuple(each.type for each in stored)
        )
        return {**tip_key(name), "n": number(2), **events_attributes(own)}


def head(stream: str) -> Item:
    """The Tip of a stream of one event."""
    return {
        "p": text(stream),
        "i": number(TIP),
        "n": number(1),
        "a": number(1),
        "c": {"L": [text("added")]},
        "e": {"L": [{"M": {}}]},
    }
