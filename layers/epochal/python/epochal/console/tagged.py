"""A query of tagged events: those that match, newest first, and what a decision on it would be held to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.model.dcb import Query, QueryItem

WINDOW: Final = 50

STORES: Final = ("streams", "sekiban")
"""Whose tables they are in: those of streams, or Sekiban's."""


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The last events of all of `tags` and of any of `types`, lists with commas, in the tables that `store` names."""
    tags, types = (_listed(arguments.get(name, "")) for name in ("tags", "types"))
    name = arguments.get("store") or STORES[0]
    if name not in STORES:
        raise InvalidInput("store", f"must be one of {', '.join(STORES)}")
    values = {
        "tags": ", ".join(sorted(tags)),
        "types": ", ".join(sorted(types)),
        "stores": STORES,
        "store": name,
    }
    if not tags and not types:
        return {**values, "seen": None}
    store = deployment.tagged if name == STORES[0] else deployment.dcb
    query = Query(items=(QueryItem(types=types, tags=tags),))
    return {**values, "seen": store.read(query, limit=WINDOW, direction="backward")}


def _listed(text: str) -> frozenset[str]:
    return frozenset(filter(None, (each.strip() for each in text.split(","))))
