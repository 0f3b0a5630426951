"""Read models: a generation, how far it is in a stream, and its documents, by key and by what they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from epochal.codec import json
from epochal.console.page import LOOKED_AT, read_key, whole, written_key
from epochal.deployment import Deployment
from epochal.layout.port import layouts_in, partition_of
from epochal.plan.ops import Get, Scan
from epochal.read_models.asking import value_from
from epochal.read_models.documents import ReadModel, ReadModels
from epochal.read_models.keys import ALL, DeclaredKey, head_key, read_head

ASKED: Final = ("by", "values", "prefix", "backward")
"""What a question is made of, as its form has it."""


def show(
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
