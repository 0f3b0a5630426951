"""Streams as JSON and back: events and unfolds of a request, and what is answered.

    {"type": "Moved", "data": {"to": "EWR"}, "meta": {"by": "ops"}, "timestamp": "2013-01-01T10:00:00Z",
     "correlationId": "c-1", "causationId": "e-7"}

The body is `data` (any JSON, null included; stored as compact UTF-8 with its numbers exact), or `data64` (any bytes, in
base64), or `claim` (already uploaded, see `POST /bodies`), or none. `meta` and `meta64` likewise.

A page ends where the next event has no room (`answer_size`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from epochal.http import bodies, problems
from epochal.http.answer_size import AnswerSize, capacity
from epochal.http.bodies import Link
from epochal.http.fields import MAX_TYPE_BYTES, Node, json_body, moment, only_one, optional_id, required
from epochal.http.performers import consumed
from epochal.http.preconditions import etag
from epochal.http.problems import Problem
from epochal.model.events import Body, Event, Recorded, RecordedUnfold, Unfold
from epochal.model.outcomes import Appended, Conflict
from epochal.plan.units import Units
from epochal.store.results import Page, Pruned, StreamState

if TYPE_CHECKING:
    from epochal.feed.results import FeedEvent

MAX_EVENTS: Final = 1_000
MAX_UNFOLDS: Final = 100
"""More of either than an item of 400 KB holds at a usual size; what does not fit is refused by its bytes."""

UNFOLD_FIELDS: Final = ("type", "data", "data64", "claim", "meta", "meta64", "timestamp")
EVENT_FIELDS: Final = (*UNFOLD_FIELDS, "correlationId", "causationId")


def event_of(node: Node) -> Event:
    """An event to append; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(EVENT_FIELDS)
    return Event(
        type=_type(node, fields),
        data=_body(fields, "data", "data64", "claim"),
        meta=_body(fields, "meta", "meta64"),
        timestamp=_timestamp(fields),
        correlation_id=optional_id(fields, "correlationId"),
        causation_id=optional_id(fields, "causationId"),
    )


def unfold_of(node: Node) -> Unfold:
    """An unfold to store; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(UNFOLD_FIELDS)
    return Unfold(
        type=_type(node, fields),
        data=_body(fields, "data", "data64", "claim"),
        meta=_body(fields, "meta", "meta64"),
        timestamp=_timestamp(fields),
    )


def appended(stream: str, outcome: Appended, units: Units) -> dict[str, Any]:
    """The answer to an append."""
    return {
        "stream": stream,
        "first": outcome.first,
        "version": outcome.version,
        "replayed": outcome.replayed,
        "capacity": capacity(units),
    }


def state(found: StreamState, link: Link, *, events: bool) -> dict[str, Any]:
    """A stream's head, with the events that it carries if wanted."""
    shown = found.events if events else ()
    # A head has hundreds of events, all of which are shown; names that JSON has to escape can be most of an answer.
    answer = AnswerSize([*map(_unfold_frame, found.unfolds), *map(event_frame, shown)])
    view: dict[str, Any] = {
        "stream": found.stream,
        "version": found.version,
        "lowWater": found.low_water,
        "headEvents": len(found.events),
        "unfolds": [answer.put(unfold(each, link), _unfold_frame(each)) for each in found.unfolds],
    }
    if events:
        view["events"] = [answer.put(event(each, link), event_frame(each)) for each in shown]
    return view


def page(stream: str, found: Page, link: Link) -> dict[str, Any]:
    """A page of events; it ends earlier than `found` where the answer is full."""
    answer, shown, following = AnswerSize(), list[Any](), found.next
    for each in found.events:
        view = answer.fit(event(each, link)) if shown else answer.put(event(each, link), event_frame(each))
        if view is None:
            following = each.index
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
    return view


def pruned(stream: str, outcome: Pruned) -> dict[str, Any]:
    """The answer to a pruning or a deletion."""
    return {
        "stream": stream,
        "lowWater": outcome.low_water,
        "deletedItems": outcome.deleted,
        "done": outcome.done,
    }


def event(found: Recorded | FeedEvent, link: Link) -> dict[str, Any]:
    """An event, its bodies in the bucket as links."""
    return {
        **event_frame(found),
        **bodies.members("data", found.data, link),
        **bodies.members("meta", found.meta, link),
    }


def event_frame(found: Recorded | FeedEvent) -> dict[str, Any]:
    """An event without its bodies."""
    frame: dict[str, Any] = {
        "stream": found.stream,
        "index": found.index,
        "type": found.type,
        "timestamp": found.timestamp,
    }
    if not isinstance(found, Recorded) and found.id is not None:
        frame |= {"id": found.id, "tags": list(found.tags)}
    if found.correlation_id is not None:
        frame["correlationId"] = found.correlation_id
    if found.causation_id is not None:
        frame["causationId"] = found.causation_id
    return frame


def unfold(found: RecordedUnfold, link: Link) -> dict[str, Any]:
    """An unfold, its bodies in the bucket as links."""
    return {
        **_unfold_frame(found),
        **bodies.members("data", found.data, link),
        **bodies.members("meta", found.meta, link),
    }


def _unfold_frame(found: RecordedUnfold) -> dict[str, Any]:
    return {"version": found.version, "type": found.type, "timestamp": found.timestamp}


def _type(node: Node, fields: Mapping[str, Node]) -> str:
    return required(node, fields, "type").text(MAX_TYPE_BYTES)


def _body(fields: Mapping[str, Node], *names: str) -> Body:
    given = only_one(fields, *names)
    if given is None:
        return b""
    if names[0] in fields:
        return json_body(given)
    return given.base64() if names[1] in fields else bodies.uploaded(given)


def _timestamp(fields: Mapping[str, Node]) -> str | None:
    return moment(fields["timestamp"]) if "timestamp" in fields else None


def refused(stream: str, conflict: Conflict, units: Units, *, in_header: bool) -> Problem:
    """A write that did not find the stream as expected: 412 for a header's expectation, 409 for the body's."""
    figures = {"Conflicts": 1.0, **consumed(units)}
    if conflict.deleted:
        return deleted(stream, conflict.version, figures)
    members: dict[str, Any] = {"stream": stream, "version": conflict.version}
    return Problem(
        problems.PRECONDITION_FAILED if in_header else problems.VERSION_CONFLICT,
        f"{stream} is at version {conflict.version}",
        headers={} if conflict.token is None else {"ETag": etag(conflict.token)},
        figures=figures,
        **members,
    )


def deleted(stream: str, version: int, figures: Mapping[str, float]) -> Problem:
    """The stream carries a tombstone, at the version that it was deleted at."""
    return Problem(
        problems.STREAM_DELETED,
        f"{stream} was deleted at version {version} and takes no more events",
        figures=figures,
        stream=stream,
        version=version,
    )


def not_found(stream: str) -> Problem:
    """There is no such stream."""
    return Problem(problems.STREAM_NOT_FOUND, f"{stream} has no events", stream=stream)
