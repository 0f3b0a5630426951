"""Events and unfolds as answers show them: schemas and views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from epochal.http import schemas
from epochal.http.bodies import Link, shown_bodies, with_bodies
from epochal.http.components import Component
from epochal.http.event_fields import INDEX
from epochal.http.sent_events import IDS
from epochal.model.events import (
    Recorded,
    RecordedUnfold,
)
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.tokens import MAX_VERSION

if TYPE_CHECKING:
    from epochal.feed.events import FeedEvent


# No limits, since other libraries that write to the same tables have looser ones.
IDS_SHOWN: Final = {name: schemas.words() for name in IDS}

SHOWN_EVENT: Final = {
    "stream": schemas.words("The stream's name."),
    "index": INDEX,
    "type": schemas.words("Type of the event."),
}
TAGS_SHOWN: Final = {
    "id": schemas.text(
        "Id of the event. An event with tags has the same id in the streams of all its tags. "
        "Otherwise the id that the writer gave it."
    ),
    "tags": schemas.array(schemas.text("A tag."), "Tags of the event, in sorted order."),
}
EVENT: Final = Component(
    "Event",
    schemas.record(
        {**SHOWN_EVENT, "timestamp": schemas.words(), **IDS_SHOWN, **TAGS_SHOWN, **shown_bodies()},
        required=("stream", "index", "type", "timestamp"),
    ),
)
UNFOLD: Final = Component(
    "Unfold",
    schemas.record(
        {
            "version": schemas.whole(
                "Version of the stream from which the state was computed.", 0, MAX_VERSION
            ),
            "type": schemas.words("Type of the unfold."),
            "timestamp": schemas.words(),
            **shown_bodies(),
        },
        required=("version", "type", "timestamp"),
    ),
)


def event(recorded: Recorded | FeedEvent, link: Link) -> dict[str, Any]:
    """Show an event, with its bodies in the bucket as links.

    The object is built without a schema for speed, since a page has thousands of events.
    """
    return with_bodies(event_frame(recorded), recorded, link)


def event_frame(recorded: Recorded | FeedEvent) -> dict[str, Any]:
    """Return the JSON object that shows an event without its bodies."""
    frame: dict[str, Any] = {
        "stream": recorded.stream,
        "index": recorded.index,
        "type": recorded.type,
        "timestamp": recorded.timestamp,
    }
    if recorded.id:
        frame["id"] = recorded.id
        if recorded.tags or recorded.stream.startswith(TAG_STREAMS):
            frame["tags"] = list(recorded.tags)
        if not isinstance(recorded, Recorded) and recorded.home:
            frame["home"] = recorded.home
    if recorded.correlation_id is not None:
        frame["correlationId"] = recorded.correlation_id
    if recorded.causation_id is not None:
        frame["causationId"] = recorded.causation_id
    return frame


def unfold(recorded: RecordedUnfold, link: Link) -> dict[str, Any]:
    """Show an unfold, with its bodies in the bucket as links."""
    return with_bodies(unfold_frame(recorded.version, recorded.type, recorded.timestamp), recorded, link)


def unfold_frame(version: int, type_: str, timestamp: str) -> dict[str, Any]:
    """Show an unfold without its bodies."""
    return {"version": version, "type": type_, "timestamp": timestamp}
