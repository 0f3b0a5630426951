"""Which kind of table an item is of: what a store looks at to know that it was handed the right one.

A layout knows the items of its own tables. The others:

index                               p and i: names that begin with $, records of idempotency keys apart
projection-states, read-models      pk and sk: what the keys begin with, or are

An empty table is known by its name, where that is one that our stacks give: `epochal-prod-tips`.
"""

from __future__ import annotations

import re
from typing import Final

from epochal.index.stored import PREFIX
from epochal.layout.tables import ARCHIVES, INDEX, PROJECTION_STATES, READ_MODELS, store_tables
from epochal.plan.values import Item
from epochal.plugins import layouts

_STATES: Final = re.compile(r"(SERVICE#[^#]*#)?PROJECTOR#")

_OF_READ_MODELS: Final = ("document", "place", "live")


SPECS: Final = {spec.kind: spec for spec in (*store_tables(), *ARCHIVES.values(), READ_MODELS)}
"""Of every table that a store may have, by its kind."""

_NAMED: Final = re.compile(rf"epochal-(?:[a-z0-9]+-)+?(?P<kind>{'|'.join(SPECS)})")


def kind_named(table: str) -> str | None:
    """The kind that a stack's table has by its name; None where it is no stack's, or an archive, which is of the kind
    that it keeps.
    """
    found = _NAMED.fullmatch(table)
    kind = None if found is None else found["kind"]
    return None if kind in {spec.kind for spec in ARCHIVES.values()} else kind


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
