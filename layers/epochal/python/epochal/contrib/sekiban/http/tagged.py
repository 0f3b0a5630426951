"""The operations on tagged events, on those in Sekiban's tables, which keep who did it and when an event may go."""

from __future__ import annotations

from epochal.contrib.sekiban import store
from epochal.contrib.sekiban.http.shapes import APPEND_HERE, sent_event
from epochal.deployment import Deployment
from epochal.http import problems
from epochal.http.operation import Request, Response
from epochal.http.shapes import IDEMPOTENCY_KEY, QueryString, operation
from epochal.http.tagged import (
    APPENDED,
    Tagged,
    count_tagged,
    list_entries,
    list_tagged,
    list_tags,
    query_tagged,
    read_tag,
    read_tagged,
)
from epochal.http.tagged import append_tagged as appends

__all__ = [
    "append_tagged",
    "count_tagged",
    "list_entries",
    "list_tagged",
    "list_tags",
    "opened",
    "query_tagged",
    "read_tag",
    "read_tagged",
]


def opened(deployment: Deployment, _store: str) -> Tagged:
    """The tagged events of a deployment in Sekiban's tables."""
    return Tagged(store=store.opened(deployment), link=deployment.bucket.links.download, event_of=sent_event)


@operation(
    "Append tagged events, unless what they were decided on has changed",
    "As `POST /events` does, to Sekiban's tables.",
    parameters=(IDEMPOTENCY_KEY,),
    takes=APPEND_HERE,
    status=201,
    gives=APPENDED,
    fails=(problems.CONDITION_FAILED,),
)
def append_tagged(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """Append events, unless one that matches a query has been appended since a position."""
    return appends(tagged, request)
