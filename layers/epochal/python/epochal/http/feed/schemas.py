"""Schemas of the feed: what is answered."""

from __future__ import annotations

from typing import Final

from epochal.http.openapi.shapes import Schema, array, flag, record, ref, text, whole
from epochal.http.streams.schemas import IDS_SHOWN, SHOWN_EVENT, shown_bodies

CHECKPOINT: Final = text(
    "A position in a partition of the feed, `epoch@offset`.", pattern=r"\d{1,13}@\d{1,7}", examples=["0@17"]
)

SCHEMAS: Final[dict[str, Schema]] = {
    "Partitions": record(
        {
            "partitions": array(
                record({"partition": whole("Its number."), "tail": CHECKPOINT}),
                "Every partition, and the checkpoint after its last entry.",
            )
        }
    ),
    "FeedItem": record(
        {
            **SHOWN_EVENT,
            "timestamp": {"type": "string"},
            **IDS_SHOWN,
            **shown_bodies(),
            "id": text("A tagged event's id, the same in the streams of all its tags."),
            "tags": array(text("A tag."), "A tagged event's tags; through the first it comes exactly once."),
            "pruned": {"const": True, "description": "The event has been pruned since it was indexed."},
            "expired": {"const": True, "description": "The event's time was over; its place stays."},
            "fault": record(
                {
                    "type": text(
                        "The problem that reading the event alone would be: `corrupt-data` or `missing-body`."
                    ),
                    "detail": text("What is wrong with what is stored."),
                },
                description="The event is there and cannot be read. Those around it can.",
            ),
        },
        required=tuple(SHOWN_EVENT),
    ),
    "FeedPage": record(
        {
            "partition": whole("Its number."),
            "items": array(ref("FeedItem"), "In feed order: within a stream by index, without gaps."),
            "next": CHECKPOINT,
            "atTail": flag("The index held no more."),
        }
    ),
}
