"""All operations of the API, which the gateway, the stacks and the OpenAPI document read.

A record holds the function that performs the operation. A cold start reads all records, and must import only the
modules of its own operations, so the functions of records are deferred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from epochal import extensions
from epochal.deferred import DeferredModule
from epochal.http.operation import Operation, Perform
from epochal.plugins import NATIVE, Layout, entries, layouts

if TYPE_CHECKING:
    from epochal.http import bulk_appends, feed, groups, health, several, streams, tagged, whole_feed
    from epochal.settings import Settings
else:
    bulk_appends = DeferredModule("epochal.http.bulk_appends")
    feed = DeferredModule("epochal.http.feed")
    groups = DeferredModule("epochal.http.groups")
    health = DeferredModule("epochal.http.health")
    several = DeferredModule("epochal.http.several")
    streams = DeferredModule("epochal.http.streams")
    tagged = DeferredModule("epochal.http.tagged")
    whole_feed = DeferredModule("epochal.http.whole_feed")


class TaggedPerformers(Protocol):
    """A module whose functions perform the operations on one store of tagged events."""

    @property
    def opened(self) -> Callable[..., Any]:
        """Return what the operations run on in a deployment."""

    @property
    def append_tagged(self) -> Perform:
        """Append tagged events."""

    @property
    def query_tagged(self) -> Perform:
        """Read the events that match a query."""

    @property
    def count_tagged(self) -> Perform:
        """Count events."""

    @property
    def read_tagged(self) -> Perform:
        """Read an event."""

    @property
    def list_tagged(self) -> Perform:
        """List events."""

    @property
    def list_tags(self) -> Perform:
        """List tags."""

    @property
    def read_tag(self) -> Perform:
        """Read a tag."""

    @property
    def list_entries(self) -> Perform:
        """List the entries of a tag."""


def tagged_operations(
    store: str,
    table: str,
    *,
    tags: str,
    events: str,
    query: str,
    count: str,
    counts: int | None = None,
    performers: TaggedPerformers,
) -> tuple[Operation, ...]:
    """Return the operations on a store of tagged events; all of them open at their first request.

    They import two dozen modules, some 6 % of a cold start, which a store without tagged events saves.

    Args:
        store: name of the deployment's property that holds the store.
        table: kind of the table that the store needs.
        tags: path of the list of tags.
        events: path of the list of events, and of appends.
        query: path of queries.
        count: path of the count of events.
        counts: rate limit of counts, in requests per second; None for none.
        performers: module that performs the operations.
    """
    on = partial(Operation, opened=performers.opened, table=table, store=store, rare=True)
    read = partial(on, function="replay", scope="read")
    return (
        on("POST", events, performers.append_tagged, function="append", scope="append"),
        read("POST", query, performers.query_tagged),
        # Where two routes match a path, the first one wins.
        read("GET", count, performers.count_tagged, requests_per_second=counts),
        read("GET", f"{events}/{{id}}", performers.read_tagged),
        read("GET", events, performers.list_tagged),
        # Each request reads a megabyte of a table or more, however few tags it finds.
        read("GET", tags, performers.list_tags, requests_per_second=10),
        read("GET", f"{tags}/{{tag}}", performers.read_tag),
        read("GET", f"{tags}/{{tag}}/entries", performers.list_entries),
    )


def stream_operations(store: str, table: str, *, rare: bool = False) -> tuple[Operation, ...]:
    """Return the operations on the streams of one store, whose paths begin with the store's name.

    Args:
        store: name of the deployment's property that holds the store.
        table: kind of the table that the store needs.
        rare: whether the store is opened at the first request instead of at a cold start.
    """
    served = partial(Operation, opened=streams.opened)
    write = partial(served, function="append", table=table, store=store, rare=rare)
    read = partial(served, function="replay", scope="read", table=table, store=store, rare=rare)
    one = f"/{store}/{{stream}}"
    return (
        write("POST", f"{one}/events", streams.append_events, scope="append"),
        write("POST", f"{one}/prune", streams.prune_stream, scope="manage"),
        write("DELETE", one, streams.delete_stream, scope="manage"),
        read("GET", one, streams.read_state),
        read("GET", f"{one}/events", streams.read_events),
        *(
            operation
            for module in extensions.parts("operations")
            for operation in module.of_streams(store, table)
        ),
    )


_feed: Final = partial(Operation, opened=feed.opened, function="feed", scope="feed")
_whole: Final = partial(_feed, opened=whole_feed.opened, rare=True)
_groups: Final = partial(Operation, opened=groups.opened, function="feed", rare=True)


_SEVERAL: Final = (
    Operation(
        "POST",
        "/streams",
        several.append_all,
        opened=several.opened,
        rare=True,
        function="append",
        scope="append",
        table="streams",
        store="streams",
    ),
    Operation(
        "POST",
        "/appends",
        bulk_appends.append_each,
        opened=bulk_appends.opened,
        function="append",
        scope="append",
        table="streams",
        store="streams",
        rare=True,
    ),
    # Each request lets its caller store `max_upload_bytes` for a day or two.
    Operation(
        "POST",
        "/bodies",
        streams.upload_body,
        opened=streams.opened,
        function="append",
        scope="append",
        requests_per_second=10,
        store="streams",
    ),
)


_TAGGED: Final = tagged_operations(
    "tagged",
    "streams",
    events="/events",
    query="/events/query",
    count="/events/count",
    tags="/tags",
    performers=tagged,
)
_HEALTH: Final = Operation(
    "GET",
    "/health",
    health.check_health,
    opened=health.opened,
    function="replay",
    scope="read",
    rare=True,
)
_FEED: Final = (
    _whole("GET", "/streams", whole_feed.list_streams, requests_per_second=10),
    _feed("GET", "/feed", feed.list_partitions),
    # Each request may wait for `feed_wait_seconds`: with five, that is at most 420 invocations at once, of an account's
    # usual 1,000. A page has thousands of events, so nobody needs many a second. The first matching route wins.
    _whole("GET", "/feed/newest", whole_feed.read_newest, requests_per_second=50),
    _whole("GET", "/feed/position", whole_feed.read_position, requests_per_second=10),
    _whole("POST", "/feed/ordered", whole_feed.read_ordered, requests_per_second=10),
    _feed("GET", "/feed/{partition}", feed.read_feed, requests_per_second=50),
    _groups("GET", "/groups/{group}", groups.read_group, scope="feed"),
    _groups("POST", "/groups/{group}", groups.steer_group, scope="manage"),
)


def _brought_by(layout: Layout) -> Iterator[Operation]:
    """Yield the operations that a layout adds: those on its streams and those of its plug-in."""
    if layout.name != NATIVE and layout.plugin.streams:
        kind = layout.table.removesuffix("_table").replace("_", "-")
        yield from stream_operations(layout.plugin.streams, kind, rare=True)
    if layout.plugin.operations is not None:
        yield from layout.plugin.operations()


@cache
def operations() -> tuple[Operation, ...]:
    """Return every operation of the API, those of layouts and optional packages included."""
    return _operations_on(layouts())


def operations_in(settings: Settings) -> tuple[Operation, ...]:
    """Return a deployment's operations: all but those of layouts that have no table in its settings.

    The plug-ins of these layouts are not imported.
    """
    return _operations_on(layout for layout in entries() if settings.value(layout.table) and layout.is_there)


def _operations_on(layouts: Iterable[Layout]) -> tuple[Operation, ...]:
    """Return the operations of the API on these layouts; those on the native layout are always among them."""
    brought = (operation for layout in layouts for operation in _brought_by(layout))
    optional = (operation for module in extensions.parts("operations") for operation in module.OPERATIONS)
    native = stream_operations("streams", "streams")
    return (*native, *_SEVERAL, *_TAGGED, *optional, *brought, _HEALTH, *_FEED)


def operations_of_layout(name: str) -> tuple[Operation, ...]:
    """Return the operations of a layout; for the native layout, those that no other layout adds."""
    brought = {layout.name: tuple(_brought_by(layout)) for layout in layouts()}
    if name != NATIVE:
        return brought[name]
    brought_operations = {operation for group in brought.values() for operation in group}
    return tuple(operation for operation in operations() if operation not in brought_operations)
