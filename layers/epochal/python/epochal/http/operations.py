"""Every operation of the API, those of plug-ins too: read by the gateway, the stacks and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from epochal.http.operation import Function, Operation, stream_operations, tagged_operations
from epochal.plugins import NATIVE, Layout, layouts

_streams: Final = partial(Operation, module="epochal.http.streams")
_feed: Final = partial(Operation, module="epochal.http.feed", function="feed", scope="feed")
_whole: Final = partial(_feed, module="epochal.http.whole_feed", rare=True)
_groups: Final = partial(Operation, module="epochal.http.groups", function="feed", rare=True)


STREAMS: Final = (
    *stream_operations("streams", "streams"),
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
        module="epochal.http.batches",
        function="append",
        scope="append",
        table="streams",
        store="streams",
        rare=True,
    ),
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


_timers: Final = partial(Operation, module="epochal.http.timers", table="streams", store="tagged", rare=True)
TAGGED: Final = (
    *tagged_operations(
        "tagged", "streams", events="/events", query="/events/query", count="/events/count", tags="/tags"
    ),
    _timers("POST", "/timers/query", "read_tag_timers", function="replay", scope="read"),
    _timers("POST", "/timers/cancel", "cancel_tag_timer", function="append", scope="append"),
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
    _whole("GET", "/streams", "list_streams", requests_per_second=10),
    _feed("GET", "/feed", "list_partitions"),
    # Each may wait for `feed_wait_seconds`: with five, these are at most 420 invocations at once, of an account's
    # usual 1,000. A page has thousands of events, so nobody needs many a second. A path of two routes is of the first.
    _whole("GET", "/feed/newest", "read_newest", requests_per_second=50),
    _whole("GET", "/feed/position", "read_position", requests_per_second=10),
    _whole("POST", "/feed/ordered", "read_ordered", requests_per_second=10),
    _feed("GET", "/feed/{partition}", "read_feed", requests_per_second=50),
    _groups("GET", "/groups/{group}", "read_group", scope="feed"),
    _groups("POST", "/groups/{group}", "steer_group", scope="manage"),
)


def _brought_by(layout: Layout) -> Iterator[Operation]:
    if layout.name != NATIVE and layout.plugin.streams:
        kind = layout.table.removesuffix("_table").replace("_", "-")
        yield from stream_operations(layout.plugin.streams, kind, rare=True)
    if (package := layout.part("operations")) is not None:
        yield from package.OPERATIONS


OPERATIONS: Final[tuple[Operation, ...]] = (
    *STREAMS,
    *TAGGED,
    *(each for layout in layouts() for each in _brought_by(layout)),
    HEALTH,
    *FEED,
)


def operations_of(function: Function) -> tuple[Operation, ...]:
    """The operations that one function serves."""
    return tuple(operation for operation in OPERATIONS if operation.function == function)
