"""What has been made of events: states of projections by version, and read models with documents and places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from epochal.codec import json
from epochal.console.streams import read_key, written_key
from epochal.deployment import Deployment
from epochal.layout.registry import layouts_in, partition_of
from epochal.plan.ops import Scan
from epochal.plan.values import Item, Key
from epochal.plugins import layouts
from epochal.reactions.read_models import ReadModel, ReadModels, names_in

VERSIONS: Final = 50
"""Of a projection, on one page."""

LOOKED_AT: Final = 200
"""Items of a table that are read to find names, or documents: nothing lists them."""


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The versions of a `projection`; of a read `model` its documents, or one `document`, and its place in a `stream`.

    Where neither is named, the names that stand first in the tables.
    """
    settings = deployment.settings
    wanted = ("projection", "model", "document", "stream")
    name, model, document, stream = (arguments.get(each, "").strip() for each in wanted)
    states, models = _states(deployment), settings.read_models_table
    versions, beyond = states.page(name, limit=VERSIONS) if name and states else ((), None)
    asked = bool(name or model)
    after = read_key(arguments["after"]) if "after" in arguments else None
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
        "named": None if asked else _named(deployment, states, models),
        "live": _live(deployment, model, document, stream, after) if model and models else None,
    }


def _states(deployment: Deployment) -> Any:
    """The store of states of the plug-in that has one; None where the deployment has no table of them."""
    stores = (getattr(deployment, each.plugin.states) for each in layouts() if each.plugin.states)
    return next((each for each in stores if each.table), None)


def _named(deployment: Deployment, states: Any, models: str) -> dict[str, tuple[list[str], bool]]:
    """Names among the first items of each table, and whether these are all."""
    told: dict[str, tuple[str, Callable[[Iterable[Item]], set[str]]]] = {}
    if states is not None:
        told["states"] = states.table, states.projectors_in
    if models:
        told["models"] = models, names_in
    found = {}
    for kind, (table, names) in told.items():
        page = deployment.driver.ask(Scan(table=table, consistent=False, limit=LOOKED_AT))
        found[kind] = (sorted(names(page.items)), page.last is None)
    return found


def _live(deployment: Deployment, name: str, document: str, stream: str, after: Key | None) -> dict[str, Any]:
    """The live generation; its documents, and how far it is in a stream, and where that ends in each layout."""
    settings = deployment.settings
    model = ReadModels(driver=deployment.driver, table=settings.read_models_table).live(name)
    live: dict[str, Any] = {"generation": model.generation, "place": None, "ends": [], "keys": None}
    if document:
        value = model.get(document)
        live["value"] = None if value is None else json.dumps(value)
    elif not stream:
        live["keys"], last = _documents(model, after)
        live["after"] = None if last is None else written_key(last)
    if stream:
        live["place"] = model.place(stream)
        for each in layouts_in(settings):
            partition = partition_of(stream, settings.partitions(each.partitions), each.base)
            end = deployment.feed.end_of(partition, stream, 0)
            if end:
                live["ends"].append((each.name, partition, end))
    return live


def _documents(model: ReadModel, after: Key | None) -> tuple[list[str], Key | None]:
    """Keys of documents among the next items of the table, and where to go on; None at its end."""
    begins = f"{model.name}@{model.generation}#"
    page = model.driver.ask(Scan(table=model.table, consistent=False, limit=LOOKED_AT, after=after))
    found = (each["pk"]["S"] for each in page.items if each["sk"]["S"] == "document")
    return sorted(each.removeprefix(begins) for each in found if each.startswith(begins)), page.last
