"""What has been made of events: states of projections by version, and read models with their place in a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.deployment import Deployment
from epochal.layout.registry import layouts_in, partition_of
from epochal.reactions.read_models import ReadModels

VERSIONS: Final = 50
"""Of a projection, on one page."""


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The versions of a `projection`; of a read `model` the live generation, and its place in a `stream`."""
    settings = deployment.settings
    name, model, stream = (arguments.get(each, "").strip() for each in ("projection", "model", "stream"))
    states = settings.projection_states_table
    versions, beyond = deployment.states.page(name, limit=VERSIONS) if name and states else ((), None)
    return {
        "projection": name,
        "versions": versions,
        "beyond": beyond,
        "states": bool(states),
        "models": bool(settings.read_models_table),
        "model": model,
        "stream": stream,
        "live": _live(deployment, model, stream) if model and settings.read_models_table else None,
    }


def _live(deployment: Deployment, name: str, stream: str) -> dict[str, Any]:
    """The live generation; how far it is in a stream, and where that ends in each layout that has it."""
    settings = deployment.settings
    model = ReadModels(driver=deployment.driver, table=settings.read_models_table).live(name)
    if not stream:
        return {"generation": model.generation, "place": None, "ends": []}
    ends = []
    for each in layouts_in(settings):
        partition = partition_of(stream, settings.partitions(each.partitions), each.base)
        end = deployment.feed.end_of(partition, stream, 0)
        if end:
            ends.append((each.name, partition, end))
    return {"generation": model.generation, "place": model.place(stream), "ends": ends}
