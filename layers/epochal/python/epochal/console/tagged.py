"""A query of tagged events: those that match, newest first, and what a decision on it would be held to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.deployment import Deployment
from epochal.model.dcb import Query, QueryItem

WINDOW: Final = 50


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The last events of all of `tags` and of any of `types`; both are lists with commas."""
    tags, types = (_listed(arguments.get(name, "")) for name in ("tags", "types"))
    if not tags and not types:
        return {"tags": "", "types": "", "seen": None}
    query = Query(items=(QueryItem(types=types, tags=tags),))
    seen = deployment.dcb.read(query, limit=WINDOW, direction="backward")
    return {"tags": ", ".join(sorted(tags)), "types": ", ".join(sorted(types)), "seen": seen}


def _listed(text: str) -> frozenset[str]:
    return frozenset(filter(None, (each.strip() for each in text.split(","))))
