"""Records of operations, and requests and responses as plain values, which need no gateway or network in tests.

A record names the function that performs the operation, and imports nothing: stacks read all records at synthesis, and
a cold start imports only the modules of its own operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY
from functools import cache, partial
from typing import Final, Literal

from epochal import extensions
from epochal.lazy_dataclasses import dataclass, field
from epochal.plugins import NATIVE, Layout, layouts

Function = Literal["append", "replay", "feed"]
Method = Literal["GET", "POST", "PUT", "DELETE"]
Scope = Literal["append", "manage", "read", "feed"]

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"

_AS_PAGES: Final = ("streams", "tagged")
"""Stores of a deployment whose names are left out of the names of their operations."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API: its route, the function that performs it, and who serves it.

    Attributes:
        path: path as API Gateway writes it, with parameters in braces.
        perform: name of the Python function that performs the operation, from which the operation's name is made.
        module: module of that function, and of `opened`, which returns what the function runs on in a deployment.
        function: Lambda function that serves the operation.
        table: kind of the table that the operation needs; empty for none. A stage may leave layouts out.
        scope: permission that a caller needs. With IAM it is a set of routes in a policy; with JWT a token must carry
            one of the scopes that the deployment maps it to.
        requests_per_second: rate limit of the operation, where one request can cost the store much more than its
            sender; None for none.
        rare: whether the store is opened at the first request instead of at a cold start: most deployments never need
            it.
        store: name of the deployment's property that holds the store, where one module serves several. It is part of
            the operation's name but for the stores in `_AS_PAGES`.
    """

    method: Method
    path: str
    perform: str
    _: KW_ONLY
    module: str
    function: Function
    scope: Scope
    table: str = ""
    requests_per_second: int | None = None
    rare: bool = False
    store: str = ""

    @property
    def name(self) -> str:
        """Name of the operation in logs, metrics and the OpenAPI document."""
        words = self.perform if self.store in ("", *_AS_PAGES) else f"{self.perform}_of_{self.store}"
        first, *rest = words.split("_")
        return first + "".join(map(str.capitalize, rest))

    @property
    def key(self) -> str:
        """Route key of the operation in API Gateway."""
        return f"{self.method} {self.path}"

    def parameters(self, path: str) -> dict[str, str] | None:
        """Match a path against the operation's; return the path's parameters, or None for no match.

        A value may be empty or hold anything but `/`.
        """
        given, wanted = path.split("/"), self.path.split("/")
        if len(given) != len(wanted):
            return None
        values: dict[str, str] = {}
        for value, part in zip(given, wanted, strict=True):
            if part.startswith("{"):
                values[part[1:-1]] = value
            elif value != part:
                return None
        return values


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of an operation, as plain values.

    Attributes:
        path: values of the path's parameters, percent-decoded once.
        query: names and values of query parameters in the order sent; a name may be repeated.
        headers: values of headers by lower-case name.
        body: body as it was sent, with any base64 of the transport decoded.
        seconds: seconds within which the request must be answered.
    """

    path: Mapping[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 25.0

    def header(self, name: str) -> str | None:
        """Return a header's value without the spaces around it; None where the header is missing."""
        value = self.headers.get(name.lower())
        return None if value is None else value.strip(" \t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response of an operation, as plain values.

    Attributes:
        status: HTTP status.
        body: JSON text; None for none.
        media: media type of the body.
        headers: values of headers by name.
        figures: metrics of the request, by name.
    """

    status: int
    body: str | None = None
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)


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


# All operations: read by the gateway, the stacks and the OpenAPI document.

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
