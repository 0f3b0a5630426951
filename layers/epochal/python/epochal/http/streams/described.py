"""What each operation on streams takes and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from epochal.http import problems
from epochal.http.openapi.description import (
    IDEMPOTENCY_KEY,
    KNOWN_STATES,
    LIMIT,
    MEGABYTES,
    NO_CACHE,
    TAKES_JSON,
    Description,
    Perform,
    header,
    parameter,
)
from epochal.http.openapi.shapes import flag, text, whole
from epochal.http.streams import reading, several, writing
from epochal.http.streams.schemas import STREAM
from epochal.model.versions import MAX_VERSION

_STREAM: Final = parameter("path", "stream", STREAM, required=True)
_ETAG: Final = {"ETag": text("The stream's exact state, for `If-Match` and `If-None-Match`.")}
_IF_MATCH: Final = header(
    "If-Match",
    'An ETag of the stream, a version in quotes (`"17"`), or `*` for any stream that exists; else 412.',
    pattern=r'(\*|"(0|[1-9]\d{0,9})(\.[0-9a-f]{32}(\.\d{1,7}){5}(\.\d{1,10}(\.[0-9a-f]{32})?)?)?")',
)
_IF_NONE_MATCH_ANY: Final = header("If-None-Match", "`*`: the stream must not exist; else 412.", enum=["*"])

DESCRIPTIONS: Final[Mapping[Perform, Description]] = {
    writing.append_events: Description(
        summary="Append events, replace unfolds, or both",
        description="One atomic write. What the stream is expected to be stands in one place: `If-Match`, "
        "`If-None-Match: *` or `expected`.",
        parameters=(_STREAM, _IF_MATCH, _IF_NONE_MATCH_ANY, IDEMPOTENCY_KEY),
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
    several.append_all: Description(
        summary="Append to several streams, all or nothing",
        description="One transaction. Each append is what `POST /streams/{stream}/events` takes, with its stream. "
        f"With an `Idempotency-Key` at most {several.MAX_APPENDS - 1}. `If-Match` and `If-None-Match` are refused.",
        parameters=(IDEMPOTENCY_KEY,),
        takes="AppendAll",
        status=201,
        gives="AllAppended",
        fails=(*TAKES_JSON, problems.VERSION_CONFLICT, problems.STREAM_DELETED, problems.UNDETERMINED),
    ),
    writing.upload_body: Description(
        summary="Get a URL to upload a body that is too large for a request",
        description="The upload is bound to the size and SHA-256 named here, and to the headers in the answer; 412 "
        "from the URL says that it has been uploaded already. An event then carries the `claim`. What is not claimed "
        "within a day expires.",
        takes="Body",
        status=201,
        gives="Upload",
        fails=TAKES_JSON,
    ),
    writing.prune_stream: Description(
        summary="Make the first events of a stream gone, for good",
        description="At once for readers; what held the events is deleted a part at a time.",
        parameters=(_STREAM,),
        takes="Prune",
        gives="Pruned",
        fails=(*TAKES_JSON, problems.STREAM_NOT_FOUND),
    ),
    writing.delete_stream: Description(
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
    reading.read_state: Description(
        summary="Read a stream's version and unfolds",
        description="One request of one item, whatever the stream's length.",
        parameters=(
            _STREAM,
            KNOWN_STATES,
            parameter(
                "query", "events", flag("Also the last events, as far as the stream's head carries them.")
            ),
        ),
        gives="State",
        headers={**_ETAG, **NO_CACHE},
        not_modified=True,
        fails=(problems.STREAM_NOT_FOUND, problems.STREAM_DELETED),
    ),
    reading.read_events: Description(
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
}
