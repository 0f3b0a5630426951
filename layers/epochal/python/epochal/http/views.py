"""What the API answers with: events, states, pages and outcomes as JSON text.

A page ends where the next event has no room (`room`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simplejson import RawJSON

from epochal.feed.results import FeedEvent, FeedItem, FeedPage
from epochal.http import bodies
from epochal.http.answer_size import Room, sent_size, text_of
from epochal.http.bodies import Link
from epochal.http.problems import fault_of
from epochal.index.checkpoints import Checkpoint
from epochal.model.events import Recorded, RecordedUnfold
from epochal.model.outcomes import Appended
from epochal.model.spans import ITEM_BYTES, name_bytes
from epochal.plan.units import Units
from epochal.store.results import Page, Pruned, StreamState


def appended(stream: str, outcome: Appended, units: Units) -> str:
    """The answer to an append."""
    return text_of(
        {
            "stream": stream,
            "first": outcome.first,
            "version": outcome.version,
            "replayed": outcome.replayed,
            "capacity": {"read": units.read, "write": units.write},
        }
    )


def state(found: StreamState, link: Link, *, events: bool) -> str:
    """A stream's Tip, with the events that it carries if wanted."""
    shown = found.events if events else ()
    # A Tip has hundreds of events, all of which are shown; names that JSON has to escape can be most of an answer.
    room = Room([*map(_unfold_frame, found.unfolds), *map(_frame, shown)])
    view: dict[str, Any] = {
        "stream": found.stream,
        "version": found.version,
        "lowWater": found.low_water,
        "tipEvents": len(found.events),
        "unfolds": [room.put(_unfold(unfold, link), _unfold_frame(unfold)) for unfold in found.unfolds],
    }
    if events:
        view["events"] = [room.put(_event(event, link), _frame(event)) for event in shown]
    return text_of(view)


def page(stream: str, found: Page, link: Link) -> str:
    """A page of events; it ends earlier than `found` where the answer is full."""
    room, shown, following = Room(), list[Any](), found.next
    for event in found.events:
        view = room.fit(_event(event, link)) if shown else room.put(_event(event, link), _frame(event))
        if view is None:
            following = event.index
            break
        shown.append(view)
    view = {
        "stream": stream,
        "version": found.version,
        "lowWater": found.low_water,
        "events": shown,
        "next": following,
    }
    if found.hole is not None:
        view["hole"] = {"first": found.hole.first, "end": found.hole.end}
    return text_of(view)


def pruned(stream: str, outcome: Pruned) -> str:
    """The answer to a pruning or a deletion."""
    return text_of(
        {
            "stream": stream,
            "lowWater": outcome.low_water,
            "deletedItems": outcome.deleted,
            "done": outcome.done,
        }
    )


def partitions(tails: Iterable[tuple[int, Checkpoint]]) -> str:
    """The feed's partitions and how far each has got."""
    return text_of({"partitions": [{"partition": number, "tail": str(tail)} for number, tail in tails]})


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
        text = self._texts[item.stream, item.index] = text_of(_event(item.event, self._link))
        return sent_size(text)

    def view(self, item: FeedItem) -> Any:
        """An item that was measured."""
        if item.event is not None:
            return RawJSON(self._texts[item.stream, item.index])
        frame = {"stream": item.stream, "index": item.index, "type": item.type}
        if item.omitted:
            return {**frame, "omitted": True}
        if item.fault is not None:
            return {**frame, "fault": fault_of(item.fault)}
        return frame if item.gone is None else {**frame, item.gone: True}


def feed(partition: int, found: FeedPage, shown: FeedItems) -> str:
    """A page of the feed, whose items were measured when they were read."""
    return text_of(
        {
            "partition": partition,
            "items": [shown.view(item) for item in found.items],
            "next": str(found.next),
            "atTail": found.at_tail,
        }
    )


def _event(event: Recorded | FeedEvent, link: Link) -> dict[str, Any]:
    return {
        **_frame(event),
        **bodies.members("data", event.data, link),
        **bodies.members("meta", event.meta, link),
    }


def _frame(event: Recorded | FeedEvent) -> dict[str, Any]:
    """An event without its bodies."""
    frame: dict[str, Any] = {
        "stream": event.stream,
        "index": event.index,
        "type": event.type,
        "timestamp": event.timestamp,
    }
    if isinstance(event, FeedEvent) and event.id is not None:
        frame |= {"id": event.id, "tags": list(event.tags)}
    if event.correlation_id is not None:
        frame["correlationId"] = event.correlation_id
    if event.causation_id is not None:
        frame["causationId"] = event.causation_id
    return frame


def _unfold(unfold: RecordedUnfold, link: Link) -> dict[str, Any]:
    return {
        **_unfold_frame(unfold),
        **bodies.members("data", unfold.data, link),
        **bodies.members("meta", unfold.meta, link),
    }


def _unfold_frame(unfold: RecordedUnfold) -> dict[str, Any]:
    return {"version": unfold.version, "type": unfold.type, "timestamp": unfold.timestamp}
