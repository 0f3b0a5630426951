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
from epochal.feed.whole import CausedEvent, conversation, latest, tree
from epochal.layout.port import StoredItem, layout_of, layouts_in, partition_of, partitions_of
from epochal.model.events import TAG_STREAMS
from epochal.model.tags import Query, QueryItem
from epochal.plan.ops import Get, Scan
from epochal.plan.values import Item
from epochal.plugins import NATIVE, layouts
from epochal.read_models.asking import value_from
from epochal.read_models.documents import ReadModel, ReadModels, generations_in
from epochal.read_models.keys import ALL, DeclaredKey, head_key, read_head
from epochal.store.reading import StreamState
from epochal.store.tagged import TaggedStore

# Streams: those that were appended to lately, and the history of one, a window at a time.

RECENT: Final = 500
"""Items of each partition that the list is made of."""

WINDOW: Final = 50
"""Events of a history on one page."""


def recent(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Streams of the latest items by category, newest first; those whose name begins with `search`."""
    feed, search = deployment.feed, arguments.get("search", "")
    categories: dict[tuple[str, str], dict[str, int]] = {}
    for at in feed.partitions():
        layout, known = layout_of(at.partition).name, feed.categories(at.partition)
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
    store = layout_of(partition).plugin.streams
    found: StreamState | None = getattr(deployment, store).load(stream, fetch=False) if store else None
    return found


# One conversation, as a tree of causes.

SEARCHED: Final = 100
"""Items of each partition, unless the address asks for more."""

MOST: Final = 10_000

AROUND: Final = 25
"""Events of a stream on either side of one that is named: an append has several as a rule."""

CAUSES: Final = 20
"""That are followed back from an event."""

_PLACE: Final = re.compile(r"(?P<stream>.+)@(?P<index>[0-9]{1,15})")


def show_conversation(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The conversation that `id` names: by its correlation id, or by one of its events. `at` is an event of it, as
    `Stream@index`: it, its neighbours and its causes are read where they are, however long ago they came.
    """
    wanted, count = arguments.get("id", "").strip(), whole(arguments, "items", SEARCHED, MOST)
    at = arguments.get("at", "").strip() or wanted
    near = list(_near(deployment, at)) if wanted else []
    roots = tree(conversation(deployment.feed, wanted, count, near)) if wanted else []
    return {"id": wanted, "at": at, "items": count, "roots": roots, "more": min(10 * count, MOST)}


def _near(deployment: Deployment, name: str) -> Iterator[CausedEvent]:
    """An event with its neighbours, and so each cause of it that is named by its place."""
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


# Old streams by how their names begin: the table itself is read, some of it at each press, at a price that is told.

REQUESTS: Final = 8
"""Of a press."""


def show_found(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """What a search would take; with `layout`, a part of it: from the beginning, or from the place `after` on."""
    prefix, layout = arguments.get("search", ""), arguments.get("layout", "")
    sources = {each.name: each for each in deployment.sources}
    if layout and layout not in sources:
        raise InvalidInput("layout", f"must be one of {', '.join(sources)}")
    sizes = services.bytes_of_tables()
    values = {
        "search": prefix,
        "layout": layout,
        "tables": [(each.name, sizes.get(each.table)) for each in sources.values()],
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
    found = search_streams(deployment.driver, source, prefix, after=after, requests=REQUESTS)
    streams = [(each, source.partition_of(each)) for each in sorted(found.streams)]
    following = None if found.after is None else written_key(found.after)
    return {**values, "found": streams, "after": following, "begun": after is None}


def _whole(size: int) -> int:
    """Read units of a table of so many bytes."""
    return -(-size * PAGE_UNITS // PAGE_BYTES)


# A query of tagged events: those that match, newest first, and what a decision on it would be held to.

MATCHES: Final = 50


def show_query(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The last events of all of `tags` and of any of `types`, lists with commas, in the layout that `store` names."""
    tags, types = (_listed(arguments.get(name, "")) for name in ("tags", "types"))
    stores = {each.name: each.plugin.tagged for each in layouts() if each.plugin.tagged}
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
    return frozenset(filter(None, (each.strip() for each in text.split(","))))


# What has been made of events: states of projections by version, and read models with documents and places.


VERSIONS: Final = 50
"""Of a projection, on one page."""


def show_projections(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The versions of a `projection`, or what `show_model` does of a read `model`.

    Where neither is named, the names that stand first in the tables.
    """
    settings = deployment.settings
    wanted = ("projection", "model", "document", "stream")
    name, model, document, stream = (arguments.get(each, "").strip() for each in wanted)
    states, models = _states(deployment), settings.read_models_table
    versions, beyond = states.page(name, limit=VERSIONS) if name and states else ((), None)
    named = None if name or model else _named(deployment, states, models)
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
        "named": named,
        "shown": show_model(deployment, model, document, stream, arguments) if model and models else None,
    }


def _states(deployment: Deployment) -> Any:
    """The store of states of the plug-in that has one; None where the deployment has no table of them."""
    stores = (getattr(deployment, each.plugin.states) for each in layouts() if each.plugin.states)
    return next((each for each in stores if each.table), None)


def _named(deployment: Deployment, states: Any, models: str) -> dict[str, tuple[dict[str, list[int]], bool]]:
    """Names among the first items of each table, of read models with their generations, and whether these are all."""
    told: dict[str, tuple[str, Callable[[Iterable[Item]], dict[str, list[int]]]]] = {}
    if states is not None:
        told["states"] = (
            states.table,
            lambda items: {each: [] for each in sorted(states.projectors_in(items))},
        )
    if models:
        told["models"] = models, generations_in
    found = {}
    for kind, (table, names) in told.items():
        page = deployment.driver.ask(Scan(table=table, consistent=False, limit=LOOKED_AT))
        found[kind] = (names(page.items), page.last is None)
    return found


# Read models: a generation, how far it is in a stream, and its documents, by key and by what they are asked.

ASKED: Final = ("by", "values", "prefix", "backward")
"""What a question is made of, as its form has it."""


def show_model(
    deployment: Deployment, name: str, document: str, stream: str, arguments: Mapping[str, str]
) -> dict[str, Any]:
    """A generation, the live one where none is named; a document, how far it is in a stream, or what a key finds."""
    models = ReadModels(driver=deployment.driver, table=deployment.settings.read_models_table)
    live = models.live(name)
    generation = whole(arguments, "generation", live.generation, 2**31)
    model = models.open(name, generation)
    declared = _declared(model)
    shown: dict[str, Any] = {
        "generation": generation,
        "live": generation == live.generation,
        "declared": declared,
        "names": sorted(each for each in declared or () if each != ALL),
        "place": None,
        "ends": [],
        "found": None,
        "asked": {each: arguments.get(each, "") for each in ASKED},
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


def _declared(model: ReadModel) -> dict[str, DeclaredKey] | None:
    """What the generation is asked by; None where it was built without keys."""
    head = model.driver.ask(Get(table=model.table, key=head_key(f"{model.name}@{model.generation}"))).item
    return None if head is None or "z" in head else read_head(head)


def _place(deployment: Deployment, model: ReadModel, stream: str) -> dict[str, Any]:
    """How far it is in a stream, and where that ends in each layout."""
    settings, ends = deployment.settings, []
    for each in layouts_in(settings):
        partition = partition_of(stream, settings.partitions(each.partitions), each.base)
        end = deployment.feed.end_of(partition, stream, 0)
        if end:
            ends.append((each.name, partition, end))
    return {"place": model.place(stream), "ends": ends}


def _asked(model: ReadModel, arguments: Mapping[str, str]) -> dict[str, Any]:
    """A page of documents: of all by their keys, or by the values of a secondary key."""
    by, prefix, after = (arguments.get(each, "").strip() for each in ("by", "prefix", "after"))
    values = [value_from(each.strip()) for each in arguments.get("values", "").split(",") if each.strip()]
    how: dict[str, Any] = {"prefix": prefix, "limit": whole(arguments, "items", 50, LOOKED_AT)}
    how |= {"after": after or None, "backward": bool(arguments.get("backward"))}
    page = model.find(by, *values, **how) if by else model.list(**how)
    found = [(each.key, json.dumps(each.value).decode()) for each in page.items]
    same = {each: arguments[each] for each in ASKED if arguments.get(each)}
    on = urlencode({"model": model.name, "generation": model.generation, **same})
    return {"by": by, "found": found, "after": page.next, "on": on}


def _looked(model: ReadModel, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Keys of documents among the next items of the table, which nothing lists, and where to go on."""
    begins, after = f"{model.name}@{model.generation}#", arguments.get("after")
    start = read_key(after) if after else None
    page = model.driver.ask(Scan(table=model.table, consistent=False, limit=LOOKED_AT, after=start))
    names = (each["pk"]["S"] for each in page.items if each["sk"]["S"] == "document")
    keys = sorted(each.removeprefix(begins) for each in names if each.startswith(begins))
    return {"keys": keys, "after": None if page.last is None else written_key(page.last)}
