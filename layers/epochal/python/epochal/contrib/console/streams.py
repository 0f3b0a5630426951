"""Looking at events: streams, their histories, conversations, searches, queries of tags, and what was made of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from epochal.care.stream_search import PAGE_BYTES, PAGE_UNITS, search_streams
from epochal.codec import json
from epochal.contrib.console.page import LOOKED_AT, Services, read_key, whole, written_key
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.feed.conversations import CausedEvent, conversation, tree
from epochal.feed.latest import latest
from epochal.layout.registry import layout_of, layouts_in, partition_of, partitions_of
from epochal.layout.stored_items import StoredItem
from epochal.model.stream_names import TAG_STREAMS
from epochal.model.tags import Query, QueryItem
from epochal.plan.ops import Get, Scan
from epochal.plan.values import Item
from epochal.plugins import NATIVE, layouts
from epochal.read_models.asking import value_from
from epochal.read_models.documents import ReadModel, ReadModels, generations_in
from epochal.read_models.generation_heads import head_key, read_head
from epochal.read_models.keys import ALL, DeclaredKey
from epochal.store.reading import StreamState
from epochal.store.tagged import TaggedStore

# Streams: those with recent appends, and the history of one stream, a page at a time.

RECENT: Final = 500
"""Items of each partition that are read for the list of streams."""

WINDOW: Final = 50
"""Events of a history on one page."""


def recent(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the streams of the latest feed items by layout and category, newest first.

    With `search`, only streams whose names begin with this text.
    """
    feed, search = deployment.feed, arguments.get("search", "")
    categories: dict[tuple[str, str], dict[str, int]] = {}
    for tail in feed.partitions():
        layout, categories_of_partition = layout_of(tail.partition).name, feed.categories(tail.partition)
        for item in reversed(latest(feed, tail, RECENT)):
            if item.stream.startswith(search):
                streams = categories.setdefault((layout, categories_of_partition.of(item.stream)), {})
                streams.setdefault(item.stream, tail.partition)
    return {"search": search, "categories": categories, "places": places(deployment, search), "read": RECENT}


def history(deployment: Deployment, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page of a stream's events from index `from` on, or else the last ones.

    With `stored`, the page also has the table's items of these events.

    Raises:
        InvalidInput: the deployment has no such partition.
    """
    partition, stream = arguments["partition"], arguments["stream"]
    if partition not in partitions_of(deployment.settings):
        raise InvalidInput("partition", f"must be a partition of this deployment, not {partition}")
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
    """Read the items of a stream's table that hold the events from `first` to before `end`.

    Raises:
        InvalidInput: the layout cannot show its items.
    """
    layout = layout_of(partition)
    read = layout.port.stored_items
    if read is None:
        raise InvalidInput("stored", f"is not available for the layout {layout.name}")
    table = deployment.settings.value(layout.table)
    return deployment.driver.run(read(table, stream, first, end)) if end > first else ()


def places(deployment: Deployment, name: str) -> list[tuple[str, int]]:
    """Return for each layout its name and the partition in which a stream of this name belongs.

    A name determines its partition, whether the stream exists or not.
    """
    if not name:
        return []
    return [
        (layout.name, partition_of(name, deployment.settings.partitions(layout.partitions), layout.base))
        for layout in layouts_in(deployment.settings)
    ]


def _state(deployment: Deployment, partition: int, stream: str) -> StreamState | None:
    """Load the head of a named stream; None for streams of tags, and for layouts without heads."""
    if stream.startswith(TAG_STREAMS):
        return None
    store = layout_of(partition).plugin.streams
    if not store:
        return None
    state: StreamState | None = getattr(deployment, store).load(stream, fetch=False, events=False)
    return state


# One conversation, as a tree of causes.

SEARCHED: Final = 100
"""Items of each partition that are searched for a conversation, unless the address asks for more."""

MOST: Final = 10_000

AROUND: Final = 25
"""Events of a stream that are read on either side of a named event: an append often has several."""

CAUSES: Final = 20
"""Causes that are followed back from an event, at most."""

_PLACE: Final = re.compile(r"(?P<stream>.+)@(?P<index>[0-9]{1,15})")


def show_conversation(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return a conversation as trees of causes, by its correlation id or one of its events in `id`.

    `at` is an event of it, as `Stream@index`: the event, its neighbours and its causes are read by their places,
    however old they are.
    """
    correlation_id, count = arguments.get("id", "").strip(), whole(arguments, "items", SEARCHED, MOST)
    event_id = arguments.get("at", "").strip() or correlation_id
    near = list(_near(deployment, event_id)) if correlation_id else []
    roots = tree(conversation(deployment.feed, correlation_id, count, near)) if correlation_id else []
    return {
        "id": correlation_id,
        "at": event_id,
        "items": count,
        "roots": roots,
        "more": min(10 * count, MOST),
    }


def _near(deployment: Deployment, name: str) -> Iterator[CausedEvent]:
    """Yield the event `Stream@index` with its neighbours, and the same for its causes, one by one.

    A cause is followed where it is named by its place.
    """
    followed = set[str]()
    while (place := _PLACE.fullmatch(name)) and name not in followed and len(followed) <= CAUSES:
        followed.add(name)
        cause, index = "", int(place["index"])
        for _, partition in places(deployment, place["stream"]):
            end = deployment.feed.end_of(partition, place["stream"], 0)
            first, last = max(0, index - AROUND), min(end, index + AROUND)
            for event in (
                deployment.feed.events(partition, place["stream"], first, last) if first < last else ()
            ):
                yield CausedEvent(partition, event)
                if event.index == index:
                    cause = event.causation_id or ""
        name = cause


# Search for old streams by prefix: each press of the button scans a part of the table, at a cost that is shown.

REQUESTS: Final = 8
"""Requests that a press of the search button makes, at most."""


def show_found(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the cost of a search for streams by prefix; with `layout`, a page of its results.

    The page is read from the beginning of the layout's table, or after the key `after`.

    Raises:
        InvalidInput: the deployment has no such layout, or `after` is no key.
    """
    prefix, layout = arguments.get("search", ""), arguments.get("layout", "")
    sources = {origin.name: origin for origin in deployment.sources}
    if layout and layout not in sources:
        raise InvalidInput("layout", f"must be one of {', '.join(sources)}")
    sizes = services.bytes_of_tables()
    values = {
        "search": prefix,
        "layout": layout,
        "tables": [(origin.name, sizes.get(origin.table)) for origin in sources.values()],
        "units": REQUESTS * PAGE_UNITS,
        "megabytes": REQUESTS,
        "whole": _whole,
        "found": None,
        "besides": "the sizes of tables" if sizes else "",
    }
    if not layout:
        return values
    source = sources[layout]
    after = read_key(arguments["after"]) if "after" in arguments else None
    page = search_streams(deployment.driver, source, prefix, after=after, requests=REQUESTS)
    streams = [(stream, source.partition_of(stream)) for stream in sorted(page.streams)]
    following = None if page.after is None else written_key(page.after)
    return {**values, "found": streams, "after": following, "begun": after is None}


def _whole(size: int) -> int:
    """Return the read units of a scan of a table of `size` bytes."""
    return -(-size * PAGE_UNITS // PAGE_BYTES)


# A query of tagged events: the matching events, newest first, and the append condition of a decision on them.

MATCHES: Final = 50


def show_query(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the last events that have all `tags` and any of `types`, newest first.

    Both are lists with commas; `store` names the layout.

    Raises:
        InvalidInput: the layout has no tagged events.
    """
    tags, types = (_listed(arguments.get(name, "")) for name in ("tags", "types"))
    stores = {layout.name: layout.plugin.tagged for layout in layouts() if layout.plugin.tagged}
    name = arguments.get("store") or NATIVE
    if name not in stores:
        raise InvalidInput("store", f"must be one of {', '.join(stores)}")
    values = {
        "tags": ", ".join(sorted(tags)),
        "types": ", ".join(sorted(types)),
        "stores": list(stores),
        "store": name,
    }
    if not tags and not types:
        return {**values, "seen": None}
    store: TaggedStore = getattr(deployment, stores[name])
    query = Query(items=(QueryItem(types=types, tags=tags),))
    return {**values, "seen": store.read(query, limit=MATCHES, direction="backward")}


def _listed(text: str) -> frozenset[str]:
    """Split a text at its commas into a set of words."""
    return frozenset(filter(None, (part.strip() for part in text.split(","))))


# States made of events: states of projections by version, and read models with documents and checkpoints.


VERSIONS: Final = 50
"""Versions of a projection on one page."""


def show_projections(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the versions of a `projection`, or a read `model` as `show_model` returns it.

    Where neither is named, the names that stand first in the tables are returned.
    """
    settings = deployment.settings
    names = ("projection", "model", "document", "stream")
    name, model, document, stream = (arguments.get(argument, "").strip() for argument in names)
    states, models = _states(deployment), settings.read_models_table
    versions, beyond = states.page(name, limit=VERSIONS) if name and states else ((), None)
    projectors = None if name or model else _named(deployment, states, models)
    return {
        "projection": name,
        "versions": versions,
        "beyond": beyond,
        "states": states is not None,
        "models": bool(models),
        "model": model,
        "document": document,
        "stream": stream,
        "looked": LOOKED_AT,
        "named": projectors,
        "shown": show_model(deployment, model, document, stream, arguments) if model and models else None,
    }


def _states(deployment: Deployment) -> Any:
    """Return the store of projection states; None where the deployment has no table of them."""
    stores = (getattr(deployment, layout.plugin.states) for layout in layouts() if layout.plugin.states)
    return next((store for store in stores if store.table), None)


def _named(deployment: Deployment, states: Any, models: str) -> dict[str, tuple[dict[str, list[int]], bool]]:
    """Scan the first items of each table for names of projections and of read models.

    Returns for each kind the names with their generations, and whether these are all.
    """
    kinds: dict[str, tuple[str, Callable[[Iterable[Item]], dict[str, list[int]]]]] = {}
    if states is not None:
        kinds["states"] = (
            states.table,
            lambda items: {projector: [] for projector in sorted(states.projectors_in(items))},
        )
    if models:
        kinds["models"] = models, generations_in
    projectors = {}
    for kind, (table, names) in kinds.items():
        page = deployment.driver.ask(Scan(table=table, consistent=False, limit=LOOKED_AT))
        projectors[kind] = (names(page.items), page.last is None)
    return projectors


# Read models: a generation, its checkpoint in a stream, and its documents, by key and by secondary keys.

ASKED: Final = ("by", "values", "prefix", "backward")
"""Arguments of a query for documents, as the form names them."""


def show_model(
    deployment: Deployment, name: str, document: str, stream: str, arguments: Mapping[str, str]
) -> dict[str, Any]:
    """Return a document of a read model, its checkpoint in a stream, or a page of documents.

    The generation is the live one where the arguments name none.
    """
    models = ReadModels(driver=deployment.driver, table=deployment.settings.read_models_table)
    live = models.live(name)
    generation = whole(arguments, "generation", live.generation, 2**31)
    model = models.open(name, generation)
    declared = _declared(model)
    shown: dict[str, Any] = {
        "generation": generation,
        "live": generation == live.generation,
        "declared": declared,
        "names": sorted(key for key in declared or () if key != ALL),
        "place": None,
        "ends": [],
        "found": None,
        "asked": {key: arguments.get(key, "") for key in ASKED},
        "keys": None,
    }
    if document:
        value = model.get(document)
        shown["value"] = None if value is None else json.dumps(value)
    elif not stream:
        shown |= _looked(model, arguments) if declared is None else _asked(model, arguments)
    if stream:
        shown |= _place(deployment, model, stream)
    return shown


def _declared(model: ReadModel[Any]) -> dict[str, DeclaredKey] | None:
    """Read the declared keys of a generation; None where the generation was built without keys."""
    head = model.driver.ask(Get(table=model.table, key=head_key(f"{model.name}@{model.generation}"))).item
    return None if head is None or "z" in head else read_head(head)


def _place(deployment: Deployment, model: ReadModel[Any], stream: str) -> dict[str, Any]:
    """Return how far a read model has read a stream, and the end of the stream in each layout."""
    settings, ends = deployment.settings, []
    for layout in layouts_in(settings):
        partition = partition_of(stream, settings.partitions(layout.partitions), layout.base)
        end = deployment.feed.end_of(partition, stream, 0)
        if end:
            ends.append((layout.name, partition, end))
    return {"place": model.place(stream), "ends": ends}


def _asked(model: ReadModel[Any], arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of a read model's documents, by their keys or by values of a secondary key."""
    by, prefix, after = (arguments.get(name, "").strip() for name in ("by", "prefix", "after"))
    values = [value_from(value.strip()) for value in arguments.get("values", "").split(",") if value.strip()]
    how: dict[str, Any] = {"prefix": prefix, "limit": whole(arguments, "items", 50, LOOKED_AT)}
    how |= {"after": after or None, "backward": bool(arguments.get("backward"))}
    page = model.find(by, *values, **how) if by else model.list(**how)
    documents = [(item.key, json.dumps(item.value).decode()) for item in page.items]
    same = {name: arguments[name] for name in ASKED if arguments.get(name)}
    on = urlencode({"model": model.name, "generation": model.generation, **same})
    return {"by": by, "found": documents, "after": page.next, "on": on}


def _looked(model: ReadModel[Any], arguments: Mapping[str, str]) -> dict[str, Any]:
    """Scan a page of the read models' table for keys of documents; return them and the next key.

    No index lists the documents of a generation without keys.
    """
    begins, after = f"{model.name}@{model.generation}#", arguments.get("after")
    start = read_key(after) if after else None
    page = model.driver.ask(Scan(table=model.table, consistent=False, limit=LOOKED_AT, after=start))
    names = (item["pk"]["S"] for item in page.items if item["sk"]["S"] == "document" and "d" in item)
    keys = sorted(name.removeprefix(begins) for name in names if name.startswith(begins))
    return {"keys": keys, "after": None if page.last is None else written_key(page.last)}
