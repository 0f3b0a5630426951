"""All operations of the API, which the gateway, the stacks and the OpenAPI document read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Final

from epochal import extensions
from epochal.http.operation import Function, Operation
from epochal.plugins import NATIVE, Layout, layouts


def tagged_operations(
    store: str,
    table: str,
    *,
    tags: str,
    events: str,
    query: str,
    count: str,
    counts: int | None = None,
    module: str = "epochal.http.tagged",
) -> tuple[Operation, ...]:
    """Return the operations on one store of tagged events, which all are rare.

    They import two dozen modules, some 6 % of a cold start, which a store without tagged events saves.

    Args:
        store: name of the deployment's property that holds the store.
        table: kind of the table that the store needs.
        tags: path of the list of tags.
        events: path of the list of events, and of appends.
        query: path of queries.
        count: path of the count of events.
        counts: rate limit of counts, in requests per second; None for none.
        module: module that performs the operations.
    """
    on = partial(Operation, module=module, table=table, store=store, rare=True)
    read = partial(on, function="replay", scope="read")
    return (
        on("POST", events, "append_tagged", function="append", scope="append"),
        read("POST", query, "query_tagged"),
        # Where two routes match a path, the first one wins.
        read("GET", count, "count_tagged", requests_per_second=counts),
        read("GET", f"{events}/{{id}}", "read_tagged"),
        read("GET", events, "list_tagged"),
        # Each request reads a megabyte of a table or more, however few tags it finds.
        read("GET", tags, "list_tags", requests_per_second=10),
        read("GET", f"{tags}/{{tag}}", "read_tag"),
        read("GET", f"{tags}/{{tag}}/entries", "list_entries"),
    )


def stream_operations(streams: str, table: str, *, rare: bool = False) -> tuple[Operation, ...]:
    """Return the operations on the streams of one store, whose paths begin with the store's name.

    Args:
        streams: name of the deployment's property that holds the store.
        table: kind of the table that the store needs.
        rare: whether the store is opened at the first request instead of at a cold start.
    """
    served = partial(Operation, module="epochal.http.streams")
    write = partial(served, function="append", table=table, store=streams, rare=rare)
    read = partial(served, function="replay", scope="read", table=table, store=streams, rare=rare)
    one = f"/{streams}/{{stream}}"
    return (
        write("POST", f"{one}/events", "append_events", scope="append"),
        write("POST", f"{one}/prune", "prune_stream", scope="manage"),
        write("DELETE", one, "delete_stream", scope="manage"),
        read("GET", one, "read_state"),
        read("GET", f"{one}/events", "read_events"),
        *(each for module in extensions.parts("operations") for each in module.of_streams(streams, table)),
    )


_streams: Final = partial(Operation, module="epochal.http.streams")
_feed: Final = partial(Operation, module="epochal.http.feed", function="feed", scope="feed")
_whole: Final = partial(_feed, module="epochal.http.whole_feed", rare=True)
_groups: Final = partial(Operation, module="epochal.http.groups", function="feed", rare=True)


_SEVERAL: Final = (
    Operation(
        "POST",
        "/streams",
        "append_all",
        module="epochal.http.several",
        rare=True,
        function="append",
        scope="append",
        table="streams",
        store="streams",
    ),
    Operation(
        "POST",
        "/appends",
        "append_each",
        module="epochal.http.several",
        function="append",
        scope="append",
        table="streams",
        store="streams",
        rare=True,
    ),
    # Each request lets its caller store `max_upload_bytes` for a day or two.
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


_TAGGED: Final = tagged_operations(
    "tagged", "streams", events="/events", query="/events/query", count="/events/count", tags="/tags"
)
_HEALTH: Final = Operation(
    "GET", "/health", "check_health", module="epochal.http.health", function="replay", scope="read", rare=True
)
_FEED: Final = (
    _whole("GET", "/streams", "list_streams", requests_per_second=10),
    _feed("GET", "/feed", "list_partitions"),
    # Each request may wait for `feed_wait_seconds`: with five, that is at most 420 invocations at once, of an account's
    # usual 1,000. A page has thousands of events, so nobody needs many a second. The first matching route wins.
    _whole("GET", "/feed/newest", "read_newest", requests_per_second=50),
    _whole("GET", "/feed/position", "read_position", requests_per_second=10),
    _whole("POST", "/feed/ordered", "read_ordered", requests_per_second=10),
    _feed("GET", "/feed/{partition}", "read_feed", requests_per_second=50),
    _groups("GET", "/groups/{group}", "read_group", scope="feed"),
    _groups("POST", "/groups/{group}", "steer_group", scope="manage"),
)


def _brought_by(layout: Layout) -> Iterator[Operation]:
    """Yield the operations that a layout adds: those on its streams and those of its plug-in."""
    if layout.name != NATIVE and layout.plugin.streams:
        kind = layout.table.removesuffix("_table").replace("_", "-")
        yield from stream_operations(layout.plugin.streams, kind, rare=True)
    if (package := layout.part("operations")) is not None:
        yield from package.OPERATIONS


@cache
def operations() -> tuple[Operation, ...]:
    """Return every operation of the API, those of layouts and optional packages included."""
    brought = (each for layout in layouts() for each in _brought_by(layout))
    optional = (each for module in extensions.parts("operations") for each in module.OPERATIONS)
    streams = stream_operations("streams", "streams")
    return (*streams, *_SEVERAL, *_TAGGED, *optional, *brought, _HEALTH, *_FEED)


def operations_of_layout(name: str) -> tuple[Operation, ...]:
    """Return the operations of a layout; for the native layout, those that no other layout adds."""
    brought = {each.name: tuple(_brought_by(each)) for each in layouts()}
    if name != NATIVE:
        return brought[name]
    others = {operation for each in brought.values() for operation in each}
    return tuple(operation for operation in operations() if operation not in others)


def operations_of(function: Function) -> tuple[Operation, ...]:
    """Return the operations that one Lambda function serves."""
    return tuple(operation for operation in operations() if operation.function == function)
