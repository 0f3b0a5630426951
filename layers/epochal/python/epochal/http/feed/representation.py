"""The feed as JSON: partitions, items and pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simplejson import RawJSON

from epochal.feed.results import FeedItem, FeedPage
from epochal.http.answer_size import sent_size, text_of
from epochal.http.bodies import Link
from epochal.http.problems import fault_of
from epochal.http.streams.representation import event
from epochal.index.checkpoints import Checkpoint
from epochal.model.spans import ITEM_BYTES, name_bytes


def partitions(tails: Iterable[tuple[int, Checkpoint]]) -> dict[str, Any]:
    """The feed's partitions and how far each has got."""
    return {"partitions": [{"partition": number, "tail": str(tail)} for number, tail in tails]}


def bare(item: FeedItem) -> dict[str, Any]:
    """An item without an event, and why it has none if one was asked for."""
    frame = {"stream": item.stream, "index": item.index, "type": item.type}
    if item.omitted:
        return {**frame, "omitted": True}
    if item.fault is not None:
        return {**frame, "fault": fault_of(item.fault)}
    return frame if item.gone is None else {**frame, item.gone: True}


class FeedItems:
    """Items of a page of the feed as they are shown; events are rendered once, to be measured and to be sent."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._texts: dict[tuple[str, int], str] = {}

    def size_of(self, item: FeedItem) -> int:
        """Bytes of an item in the answer; of one without an event about, since there are many of these."""
        if item.event is None:
            fault = 0 if item.fault is None else len(text_of(fault_of(item.fault)))
            return ITEM_BYTES + name_bytes(item.stream) + name_bytes(item.type) + fault
        text = self._texts[item.stream, item.index] = text_of(event(item.event, self._link))
        return sent_size(text)

    def view(self, item: FeedItem) -> Any:
        """An item that was measured."""
        return bare(item) if item.event is None else RawJSON(self._texts[item.stream, item.index])


def feed(partition: int, found: FeedPage, shown: FeedItems) -> dict[str, Any]:
    """A page of the feed, whose items were measured when they were read."""
    return {
        "partition": partition,
        "items": [shown.view(item) for item in found.items],
        "next": str(found.next),
        "atTail": found.at_tail,
    }
