"""Streams: those that were appended to lately, and the history of one, a window at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.console.show import whole
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.feed.categories import categories_of
from epochal.feed.latest import latest
from epochal.layout.registry import layout_of, layouts_in, partition_of, partitions_of
from epochal.model.names import TAG_STREAMS
from epochal.model.storage import StoredItem
from epochal.store.results import StreamState

RECENT: Final = 500
"""Items of each partition that the list is made of."""

WINDOW: Final = 50
"""Events of a history on one page."""


def recent(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Streams of the latest items by category, newest first; those whose name begins with `search`."""
    feed, search = deployment.feed, arguments.get("search", "")
    categories: dict[tuple[str, str], dict[str, int]] = {}
    for at in feed.partitions():
        layout, known = layout_of(at.partition).name, categories_of(at.partition, feed.types)
        for item in reversed(latest(feed, at, RECENT)):
            if item.stream.startswith(search):
                named = categories.setdefault((layout, known.of(item.stream)), {})
                named.setdefault(item.stream, at.partition)
    return {"search": search, "categories": categories, "places": places(deployment, search), "read": RECENT}


def history(deployment: Deployment, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A window of a stream's events, from index `from` on; without it, the last ones. With `stored`, its items too."""
    partition, stream = arguments["partition"], arguments["stream"]
    if partition not in partitions_of(deployment.settings):
        raise InvalidInput("partition", f"must be one that the deployment has, not {partition}")
    feed = deployment.feed
    end = feed.end_of(partition, stream, 0)
    first = min(whole(arguments, "from", max(0, end - WINDOW), 2**53), end)
    events = list(feed.events(partition, stream, first, min(first + WINDOW, end)))
    return {
        "partition": partition,
        "layout": layout_of(partition).name,
        "stream": stream,
        "end": end,
        "first": first,
        "events": events,
        "earlier": max(0, first - WINDOW) if first else None,
        "later": first + WINDOW if first + WINDOW < end else None,
        "state": _state(deployment, partition, stream),
        "offered": layout_of(partition).port.stored_items is not None,
        "stored": _stored(deployment, partition, stream, first, first + len(events))
        if "stored" in arguments
        else None,
    }


def _stored(
    deployment: Deployment, partition: int, stream: str, first: int, end: int
) -> tuple[StoredItem, ...]:
    layout = layout_of(partition)
    read = layout.port.stored_items
    if read is None:
        raise InvalidInput("stored", f"is not told of {layout.name}")
    table = deployment.settings.value(layout.table)
    return deployment.driver.run(read(table, stream, first, end)) if end > first else ()


def places(deployment: Deployment, name: str) -> list[tuple[str, int]]:
    """Where a stream of that very name is or would be, in each layout: a name tells its partition."""
    if not name:
        return []
    return [
        (each.name, partition_of(name, deployment.settings.partitions(each.partitions), each.base))
        for each in layouts_in(deployment.settings)
    ]


def _state(deployment: Deployment, partition: int, stream: str) -> StreamState | None:
    """The head of a named stream; other layouts' states are no unfolds, and streams of tags have none."""
    if stream.startswith(TAG_STREAMS):
        return None
    store = {"streams": "streams", "tips": "tips"}.get(layout_of(partition).table.removesuffix("_table"))
    found: StreamState | None = getattr(deployment, store).load(stream, fetch=False) if store else None
    return found
