"""Which kind of table an item is of: what a store looks at to know that it was handed the right one.

A layout knows the items of its own tables. The others:

index                               p and i: names that begin with $, records of idempotency keys apart
projection-states, read-models      pk and sk: what the keys begin with, or are
"""

from __future__ import annotations

import re
from typing import Final

from epochal.index.stored import PREFIX
from epochal.layout.registry import layouts
from epochal.layout.tables import INDEX, PROJECTION_STATES, READ_MODELS
from epochal.plan.values import Item

_STATES: Final = re.compile(r"(SERVICE#[^#]*#)?PROJECTOR#")

_OF_READ_MODELS: Final = ("document", "place", "live")


def kind_of(item: Item) -> str | None:
    """The kind of table that holds such items; None where it is none of Epochal's."""
    found = (each.port.kind_of(item) for each in layouts())
    return next(filter(None, found), None) or _of_no_layout(item)


def _of_no_layout(item: Item) -> str | None:
    if item.keys() >= {"p", "i"}:
        name = item["p"].get("S", "")
        return INDEX.kind if name.startswith("$") and not name.startswith(PREFIX) else None
    if item.keys() >= {"pk", "sk"}:
        if _STATES.match(item["pk"].get("S", "")):
            return PROJECTION_STATES.kind
        return READ_MODELS.kind if item["sk"].get("S") in _OF_READ_MODELS else None
    return None
