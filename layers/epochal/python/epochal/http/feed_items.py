"""Items of the feed as answers show them, with or without their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from epochal.http import schemas
from epochal.http.bodies import shown_bodies
from epochal.http.components import Component
from epochal.http.events import IDS_SHOWN, SHOWN_EVENT
from epochal.http.problems import fault_of

if TYPE_CHECKING:
    from epochal.feed.results import FeedItem


FEED_ITEM: Final = Component(
    "FeedItem",
    schemas.record(
        {
            **SHOWN_EVENT,
            "timestamp": schemas.words(),
            **IDS_SHOWN,
            **shown_bodies(),
            "id": schemas.text(
                "Id of a tagged event, the same in the streams of all its tags; otherwise the id that the writer "
                "gave the event."
            ),
            "tags": schemas.array(
                schemas.text("A tag."),
                "Tags of a tagged event. It appears exactly once in the stream of its first tag.",
            ),
            "home": schemas.words(
                "Stream to which an event with tags was appended. The event appears exactly once there."
            ),
            "pruned": {
                "const": True,
                "description": "Whether the event has been pruned since it was indexed.",
            },
            "expired": {"const": True, "description": "Whether the event has expired. Its place stays."},
            "removed": schemas.record(
                {
                    "from": schemas.whole("Events before this index had been removed earlier."),
                    "to": schemas.whole("All events before this index have been removed."),
                    "next": schemas.whole(
                        "Next index of the stream at that time. Events before it come earlier in the feed."
                    ),
                },
                description="Present if this item is not an event but reports that events were removed. `index` "
                "equals `to`.",
            ),
            "fault": schemas.record(
                {
                    "type": schemas.text("Type of the problem: `corrupt-data` or `missing-body`."),
                    "detail": schemas.text("What is wrong with the stored data."),
                },
                description="Why the event cannot be read, although it exists. Other events are not affected.",
            ),
        },
        required=tuple(SHOWN_EVENT),
    ),
)


def build_item_frame(item: FeedItem) -> dict[str, Any]:
    """Return the JSON object of a feed item without its event, marked omitted, removed, faulty or gone."""
    frame = {"stream": item.stream, "index": item.index, "type": item.type}
    if item.omitted:
        return {**frame, "omitted": True}
    if (removal := item.removal) is not None:
        return {**frame, "removed": {"from": removal.first, "to": removal.end, "next": removal.next}}
    if item.fault is not None:
        return {**frame, "fault": fault_of(item.fault)}
    return frame if item.gone is None else {**frame, item.gone: True}
