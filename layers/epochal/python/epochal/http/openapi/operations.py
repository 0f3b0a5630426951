"""What each operation of `routes` takes and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from epochal.http import problems
from epochal.http.openapi.aggregates import AGGREGATE_OPERATIONS
from epochal.http.openapi.operation import (
    IDEMPOTENCY_KEY,
    KNOWN_STATES,
    LIMIT,
    MEGABYTES,
    NO_CACHE,
    TAKES_JSON,
    Operation,
    header,
    parameter,
)
from epochal.http.openapi.projections import PROJECTION_OPERATIONS
from epochal.http.openapi.schemas import CHECKPOINT, STREAM
from epochal.http.openapi.shapes import flag, text, whole
from epochal.http.openapi.tagged import TAGGED_OPERATIONS
from epochal.model.versions import MAX_VERSION
from epochal.settings import MAX_WAIT_SECONDS

_STREAM: Final = parameter("path", "stream", STREAM, required=True)
_ETAG: Final = {"ETag": text("The stream's exact state, for `If-Match` and `If-None-Match`.")}
_IF_MATCH: Final = header(
    "If-Match",
    'An ETag of the stream, a version in quotes (`"17"`), or `*` for any stream that exists; else 412.',
    pattern=r'(\*|"(0|[1-9]\d{0,9})(\.[0-9a-f]{32}(\.\d{1,7}){5})?")',
)
_IF_NONE_MATCH_ANY: Final = header("If-None-Match", "`*`: the stream must not exist; else 412.", enum=["*"])

OPERATIONS: Final[Mapping[str, Operation]] = {
    "appendEvents": Operation(
        summary="Append events, replace unfolds, or both",
        description="One atomic write. What the stream is expected to be stands in one place: `If-Match`, "
        "`If-None-Match: *` or `expected`.",
        parameters=(
            _STREAM,
            _IF_MATCH,
            _IF_NONE_MATCH_ANY,
            IDEMPOTENCY_KEY,
        ),
        takes="Append",
        status=201,
        gives="Appended",
        headers=_ETAG,
        fails=(
            *TAKES_JSON,
            problems.VERSION_CONFLICT,
            problems.STREAM_DELETED,
            problems.PRECONDITION_FAILED,
            problems.UNDETERMINED,
        ),
    ),
    "uploadBody": Operation(
        summary="Get a URL to upload a body that is too large for a request",
        description="The upload is bound to the size and SHA-256 named here, and to the headers in the answer; 412 "
        "from the URL says that it has been uploaded already. An event then carries the `claim`. What is not claimed "
        "within a day expires.",
        takes="Body",
        status=201,
        gives="Upload",
        fails=TAKES_JSON,
    ),
    "pruneStream": Operation(
        summary="Make the first events of a stream gone, for good",
        description="At once for readers; what held the events is deleted a part at a time.",
        parameters=(_STREAM,),
        takes="Prune",
        gives="Pruned",
        fails=(*TAKES_JSON, problems.STREAM_NOT_FOUND),
    ),
    "deleteStream": Operation(
        summary="Delete a stream",
        description="Its name takes no more events, unless it is left open. Where `done` is false, send the request "
        "again, without `If-Match`.",
        parameters=(
            _STREAM,
            _IF_MATCH,
            parameter("query", "leaveOpen", flag("The stream goes on at its next index.")),
        ),
        gives="Pruned",
        fails=(problems.STREAM_NOT_FOUND, problems.STREAM_DELETED, problems.PRECONDITION_FAILED),
    ),
    "readState": Operation(
        summary="Read a stream's version and unfolds",
        description="One request of one item, whatever the stream's length.",
        parameters=(
            _STREAM,
            KNOWN_STATES,
            parameter("query", "events", flag("Also the last events, as far as the Tip carries them.")),
        ),
        gives="State",
        headers={**_ETAG, **NO_CACHE},
        not_modified=True,
        fails=(problems.STREAM_NOT_FOUND, problems.STREAM_DELETED),
    ),
    "readEvents": Operation(
        summary="Read a page of a stream's events",
        description=f"A page ends at its limit or at {MEGABYTES} MB, and says where to go on.",
        parameters=(
            _STREAM,
            parameter(
                "query",
                "from",
                whole(
                    "Index of the first event; left out: the stream's first, or backward its last.",
                    0,
                    MAX_VERSION,
                ),
            ),
            parameter("query", "limit", {**LIMIT, "description": "Events at most."}),
            parameter(
                "query",
                "direction",
                {"enum": ["forward", "backward"], "default": "forward", "description": "Which way to read."},
            ),
        ),
        gives="EventPage",
        fails=(problems.STREAM_NOT_FOUND, problems.STREAM_DELETED),
    ),
    "checkHealth": Operation(
        summary="Whether the store answers", description="One strongly consistent read.", gives="Health"
    ),
    "listPartitions": Operation(
        summary="List the feed's partitions and how far each has got",
        description="A stream's events are all in one partition.",
        gives="Partitions",
    ),
    "readFeed": Operation(
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
                    "items": {"type": "string", "pattern": r"^[A-Za-z0-9_.:~@+=]{1,512}$"},
                    "description": "Only streams of this category; may be given several times.",
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
    **AGGREGATE_OPERATIONS,
    **TAGGED_OPERATIONS,
    **PROJECTION_OPERATIONS,
}
