"""What the API answers with: events, states, pages and outcomes as JSON text.

An answer must fit what a Lambda function may return, 6 MB with every quote and backslash of its text escaped once more;
`RESPONSE_BYTES` of that are filled. A page ends where the next event would pass them. One event alone may go up to
`LARGEST`; beyond that it is given without its bodies and marked `omitted`, so that what follows it can still be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from simplejson import RawJSON

from epochal.codec.json import dumps
from epochal.feed.results import FeedItem, FeedPage
from epochal.http import bodies
from epochal.http.bodies import Link
from epochal.index.checkpoints import Checkpoint
from epochal.model.events import Recorded, RecordedUnfold
from epochal.model.outcomes import Appended
from epochal.plan.units import Units
from epochal.settings import RESPONSE_BYTES
from epochal.store.results import Page, Pruned, StreamState

LARGEST: Final = 5_500_000
"""Bytes of one event in an answer, out of the 6,291,556 of a Lambda function's."""


def appended(stream: str, outcome: Appended, units: Units) -> str:
    """The answer to an append."""
    return _text(
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
    room = _Room()
    view: dict[str, Any] = {
        "stream": found.stream,
        "version": found.version,
        "lowWater": found.low_water,
        "tipEvents": len(found.events),
        "unfolds": [room.put(_unfold(unfold, link), _unfold_frame(unfold)) for unfold in found.unfolds],
    }
    if events:
        view["events"] = [room.put(_event(event, link), _frame(event)) for event in found.events]
    return _text(view)


def page(stream: str, found: Page, link: Link) -> str:
    """A page of events; it ends earlier than `found` where the answer is full."""
    room, shown, following = _Room(), list[Any](), found.next
    for event in found.events:
        view = room.fit(_event(event, link)) if shown else room.put(_event(event, link), _frame(event))
        if view is None:
            following = event.index
            break
        shown.append(view)
    return _text(
        {
            "stream": stream,
            "version": found.version,
            "lowWater": found.low_water,
            "events": shown,
            "next": following,
        }
    )


def pruned(stream: str, outcome: Pruned) -> str:
    """The answer to a pruning or a deletion."""
    return _text(
        {
            "stream": stream,
            "lowWater": outcome.low_water,
            "deletedItems": outcome.deleted,
            "done": outcome.done,
        }
    )


def partitions(tails: Iterable[tuple[int, Checkpoint]]) -> str:
    """The feed's partitions and how far each has got."""
    return _text({"partitions": [{"partition": number, "tail": str(tail)} for number, tail in tails]})


def feed(partition: int, found: FeedPage, link: Link, *, data: bool) -> str:
    """A page of the feed. It cannot end early, so what has no room comes without its event."""
    room = _Room()
    return _text(
        {
            "partition": partition,
            "items": [_item(item, room, link, data=data) for item in found.items],
            "next": str(found.next),
            "atTail": found.at_tail,
        }
    )


class _Room:
    """How much of an answer is left."""

    def __init__(self) -> None:
        self._used = 0

    def fit(self, view: dict[str, Any]) -> Any | None:
        """The view, if it has room."""
        text = _text(view)
        size = _size(text)
        if self._used + size > RESPONSE_BYTES:
            return None
        self._used += size
        return RawJSON(text)

    def put(self, view: dict[str, Any], frame: dict[str, Any]) -> Any:
        """The view; where it has no room even in an answer of its own, its frame, marked `omitted`."""
        text = _text(view)
        size = _size(text)
        if size > (RESPONSE_BYTES - self._used if self._used else LARGEST):
            return {**frame, "omitted": True}
        self._used += size
        return RawJSON(text)


def _item(item: FeedItem, room: _Room, link: Link, *, data: bool) -> Any:
    frame = {"stream": item.stream, "index": item.index, "type": item.type}
    if not data:
        return frame
    if item.event is None:
        return {**frame, "omitted": True} if item.omitted else {**frame, "pruned": True}
    return room.put(_event(item.event, link), frame)


def _event(event: Recorded, link: Link) -> dict[str, Any]:
    return {
        **_frame(event),
        **bodies.members("data", event.data, link),
        **bodies.members("meta", event.meta, link),
    }


def _frame(event: Recorded) -> dict[str, Any]:
    """An event without its bodies."""
    frame: dict[str, Any] = {
        "stream": event.stream,
        "index": event.index,
        "type": event.type,
        "timestamp": event.timestamp,
    }
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


def _text(value: Any) -> str:
    return dumps(value).decode()


def _size(text: str) -> int:
    """Bytes of the text inside a function's answer, where it stands as a JSON string."""
    return len(json.dumps(text, ensure_ascii=False).encode())
