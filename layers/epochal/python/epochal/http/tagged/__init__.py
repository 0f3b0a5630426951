"""Tagged events over HTTP.

The same operations are there for those in pages, below `/events` and `/tags`, and for those in Sekiban's tables, below
`/dcb`.

    representation      events, queries, tags and outcomes: JSON to value and back
    operations          append, query, one event: each parses its request, performs it and shows the outcome
    listing             the operations that list events and tags
    schemas, described  the same for the OpenAPI document

They come with two dozen modules of their own, some 6 % of a cold start: a store without tagged events does not pay it.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.http.operation import Operation


def _on(
    store: str, table: str, *, tags: str, events: str, query: str, count: str, counts: int | None = None
) -> tuple[Operation, ...]:
    """The operations on one store, by their paths."""
    write = partial(Operation, module=f"{__name__}.operations", function="append", table=table, store=store)
    read = partial(Operation, function="replay", table=table, scope="read", store=store, rare=True)
    one = partial(read, module=f"{__name__}.operations")
    some = partial(read, module=f"{__name__}.listing")
    return (
        write("POST", events, "append_tagged", scope="append", rare=True),
        one("POST", query, "query_tagged"),
        # A path of two routes is of the first one's.
        some("GET", count, "count_tagged", requests_per_second=counts),
        one("GET", f"{events}/{{id}}", "read_tagged"),
        some("GET", events, "list_tagged"),
        # Reads through a megabyte of a table or more, whatever comes of it.
        some("GET", tags, "list_tags", requests_per_second=10),
        some("GET", f"{tags}/{{tag}}", "read_tag"),
        some("GET", f"{tags}/{{tag}}/entries", "list_entries"),
    )


OPERATIONS: Final = (
    *_on("tagged", "streams", events="/events", query="/events/query", count="/events/count", tags="/tags"),
    *_on(
        "dcb",
        "tags",
        events="/dcb/events",
        query="/dcb/query",
        count="/dcb/count",
        tags="/dcb/tags",
        # Walks an index of all events.
        counts=2,
    ),
)
