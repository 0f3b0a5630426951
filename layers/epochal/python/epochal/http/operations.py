"""Every operation of the API, those of plug-ins too: read by the gateway, the stacks and the OpenAPI document."""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.http.operation import Function, Operation
from epochal.plugins import parts

_streams: Final = partial(Operation, module="epochal.http.streams")
_feed: Final = partial(Operation, module="epochal.http.feed", function="feed", scope="feed")


def _on_streams(streams: str, *, rare: bool = False) -> tuple[Operation, ...]:
    """The operations on the streams of one store, whose path begins with its name."""
    write = partial(_streams, function="append", table=streams, store=streams, rare=rare)
    read = partial(_streams, function="replay", scope="read", table=streams, store=streams, rare=rare)
    one = f"/{streams}/{{stream}}"
    return (
        write("POST", f"{one}/events", "append_events", scope="append"),
        write("POST", f"{one}/prune", "prune_stream", scope="manage"),
        write("DELETE", one, "delete_stream", scope="manage"),
        read("GET", one, "read_state"),
        read("GET", f"{one}/events", "read_events"),
    )


STREAMS: Final = (
    *_on_streams("streams"),
    _streams(
        "POST",
        "/streams",
        "append_all",
        function="append",
        scope="append",
        table="streams",
        store="streams",
    ),
    *_on_streams("tips", rare=True),
    # Each lets its caller store `max_upload_bytes` for a day or two.
    _streams(
        "POST",
        "/bodies",
        "upload_body",
        function="append",
        scope="append",
        requests_per_second=10,
        store="streams",
    ),
)


def _on_tagged(
    store: str, table: str, *, tags: str, events: str, query: str, count: str, counts: int | None = None
) -> tuple[Operation, ...]:
    """The operations on one store of tagged events, by their paths. They come with two dozen modules of their own, some
    6 % of a cold start: a store without tagged events does not pay it.
    """
    on = partial(Operation, module="epochal.http.tagged", table=table, store=store, rare=True)
    read = partial(on, function="replay", scope="read")
    return (
        on("POST", events, "append_tagged", function="append", scope="append"),
        read("POST", query, "query_tagged"),
        # A path of two routes is of the first one's.
        read("GET", count, "count_tagged", requests_per_second=counts),
        read("GET", f"{events}/{{id}}", "read_tagged"),
        read("GET", events, "list_tagged"),
        # Reads through a megabyte of a table or more, whatever comes of it.
        read("GET", tags, "list_tags", requests_per_second=10),
        read("GET", f"{tags}/{{tag}}", "read_tag"),
        read("GET", f"{tags}/{{tag}}/entries", "list_entries"),
    )


TAGGED: Final = (
    *_on_tagged(
        "tagged", "streams", events="/events", query="/events/query", count="/events/count", tags="/tags"
    ),
    *_on_tagged(
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
_states: Final = partial(Operation, module="epochal.http.projections", rare=True)

PROJECTIONS: Final = (
    _states("GET", "/projections/{name}", "list_projection_states", function="replay", scope="read"),
    _states("GET", "/projections/{name}/{version}", "read_projection_state", function="replay", scope="read"),
    _states(
        "PUT", "/projections/{name}/{version}", "write_projection_state", function="append", scope="append"
    ),
    _states(
        "DELETE",
        "/projections/{name}/{version}",
        "delete_projection_state",
        function="append",
        scope="manage",
    ),
)
HEALTH: Final = Operation(
    "GET",
    "/health",
    "check_health",
    module="epochal.http.health",
    function="replay",
    scope="read",
    rare=True,
)
FEED: Final = (
    _feed("GET", "/feed", "list_partitions"),
    # Each may wait for `feed_wait_seconds`: with five, these are at most 300 invocations at once, of an account's
    # usual 1,000. A page has thousands of events, so nobody needs many a second.
    _feed("GET", "/feed/{partition}", "read_feed", requests_per_second=50),
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    *STREAMS,
    *(each for package in parts("operations") for each in package.OPERATIONS),
    *TAGGED,
    *PROJECTIONS,
    HEALTH,
    *FEED,
)


def operations_of(function: Function) -> tuple[Operation, ...]:
    """The operations that one function serves."""
    return tuple(operation for operation in OPERATIONS if operation.function == function)
