"""What each operation on aggregates takes and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from epochal.contrib.event_store_adapter.http import operations
from epochal.contrib.event_store_adapter.http.schemas import ID, SEQ_NR, TYPE
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
from epochal.http.openapi.shapes import text

_WHICH: Final = (parameter("path", "type", TYPE, required=True), parameter("path", "id", ID, required=True))
_ETAG: Final = {"ETag": text("The aggregate's exact state, for `If-Match` and `If-None-Match`.")}

DESCRIPTIONS: Final[Mapping[Perform, Description]] = {
    operations.append_to_aggregate: Description(
        summary="Append events to an aggregate, with a snapshot or without",
        description="One transaction, and one request to the store where an ETag is given. What the aggregate is "
        "expected to be stands in one place: `If-Match`, `If-None-Match: *` or `expected`.",
        parameters=(
            *_WHICH,
            header(
                "If-Match",
                'An ETag of the aggregate, a version in quotes (`"17"`), or `*` for any that exists; else 412.',
                pattern=r'(\*|"(0|[1-9]\d{0,9}(\.(0|[1-9]\d{0,9}))?)")',
            ),
            header("If-None-Match", "`*`: the aggregate must not exist; else 412.", enum=["*"]),
            IDEMPOTENCY_KEY,
        ),
        takes="AppendToAggregate",
        status=201,
        gives="AppendedToAggregate",
        headers=_ETAG,
        fails=(*TAKES_JSON, problems.VERSION_CONFLICT, problems.PRECONDITION_FAILED),
    ),
    operations.read_aggregate: Description(
        summary="Read an aggregate: its snapshot, and the events after it",
        description=f"Where the events are more than {MEGABYTES} MB the answer says in `next` where to go on reading "
        "them.",
        parameters=(*_WHICH, KNOWN_STATES),
        gives="Aggregate",
        headers={**_ETAG, **NO_CACHE},
        not_modified=True,
        fails=(problems.AGGREGATE_NOT_FOUND,),
    ),
    operations.read_aggregate_events: Description(
        summary="Read a page of an aggregate's events",
        description=f"A page ends at its limit or at {MEGABYTES} MB, and says where to go on.",
        parameters=(
            *_WHICH,
            parameter("query", "from", {**SEQ_NR, "description": "Number of the first event; left out: 1."}),
            parameter("query", "limit", {**LIMIT, "description": "Events at most."}),
        ),
        gives="AggregateEventPage",
        fails=(problems.AGGREGATE_NOT_FOUND,),
    ),
}
