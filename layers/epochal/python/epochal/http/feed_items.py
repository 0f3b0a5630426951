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
                "A tagged event's id, the same in the streams of all its tags; or its caller's."
            ),
            "tags": schemas.array(
                schemas.text("A tag."), "A tagged event's tags; through the first it comes exactly once."
            ),
            "home": schemas.words(
                "The stream that an event with tags was appended to: through it that comes exactly once."
            ),
            "pruned": {"const": True, "description": "The event has been pruned since it was indexed."},
            "expired": {"const": True, "description": "The event's time was over; its place stays."},
            "removed": schemas.record(
                {
                    "from": schemas.whole("Those before were gone by then."),
                    "to": schemas.whole("All events before this index are gone."),
                    "next": schemas.whole(
                        "The stream's next index then: what is before comes before in the feed."
                    ),
                },
                description="This is no event, and says that events are gone. `index` is as `to`.",
            ),
            "fault": schemas.record(
                {
                    "type": schemas.text(
                        "The problem that reading the event alone would be: `corrupt-data` or `missing-body`."
                    ),
                    "detail": schemas.text("What is wrong with what is stored."),
                },
                description="The event is there and cannot be read. Those around it can.",
            ),
        },
        required=tuple(SHOWN_EVENT),
    ),
)


def show_without_event(item: FeedItem) -> dict[str, Any]:
    """Show an item of the feed without its event, and the reason where an event was asked for."""
    frame = {"stream": item.stream, "index": item.index, "type": item.type}
    if item.omitted:
        return {**frame, "omitted": True}
    if (removal := item.removal) is not None:
        return {**frame, "removed": {"from": removal.first, "to": removal.end, "next": removal.next}}
    if item.fault is not None:
        return {**frame, "fault": fault_of(item.fault)}
    return frame if item.gone is None else {**frame, item.gone: True}
