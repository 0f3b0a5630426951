"""What each operation on the feed takes and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from epochal.http import problems
from epochal.http.feed import reading
from epochal.http.feed.schemas import CHECKPOINT
from epochal.http.openapi.description import LIMIT, MEGABYTES, Description, Perform, parameter
from epochal.http.openapi.shapes import flag, whole
from epochal.settings import MAX_WAIT_SECONDS

DESCRIPTIONS: Final[Mapping[Perform, Description]] = {
    reading.list_partitions: Description(
        summary="List the feed's partitions and how far each has got",
        description="A stream's events are all in one partition.",
        gives="Partitions",
    ),
    reading.read_feed: Description(
        summary="Read a page of the feed",
        description="A page ends with an entry of the index, so it may hold more than its limit. It ends "
        f"at {MEGABYTES} MB too; of an entry whose events are more, what has no room is omitted. A filtered page may "
        "be empty and still move on: follow `next` until `atTail`.",
        parameters=(
            parameter("path", "partition", whole("Its number.", 0, 999_999_999), required=True),
            parameter(
                "query",
                "from",
                {
                    "description": "A checkpoint, as text or as a 64-bit integer, or `tail`; left out: the beginning.",
                    "anyOf": [CHECKPOINT, {"type": "string", "pattern": "^[0-9]{1,19}$"}, {"const": "tail"}],
                },
            ),
            parameter("query", "limit", {**LIMIT, "description": "Items after which the page ends."}),
            parameter("query", "data", flag("Also the events themselves.")),
            parameter(
                "query",
                "category",
                {
                    "type": "array",
                    "items": {"type": "string", "pattern": r"^[A-Za-z0-9$_.:~@+=-]{1,512}$"},
                    "description": "Only streams of this category; may be given several times. Of tagged events below "
                    "`/events` it is `$tag-` and their group; another one with `-` is a declared type of aggregates.",
                },
            ),
            parameter(
                "query",
                "wait",
                whole(
                    "Seconds to wait at the tail for something to come. The deployment may wait fewer.",
                    0,
                    MAX_WAIT_SECONDS,
                    default=0,
                ),
            ),
        ),
        gives="FeedPage",
        fails=(problems.PARTITION_NOT_FOUND,),
    ),
}
