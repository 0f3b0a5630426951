"""Which kind of table an item is of: what a store looks at to know that it was handed the right one.

tips, index                p and i: names that begin with $ are the index's; records of idempotency keys are in both
journal, snapshot          pkey and skey: events have `occurred_at`, heads and copies a `version`
events, tags, projection-states, read-models     pk and sk: what the keys begin with
"""

from __future__ import annotations

import re
from typing import Final

from epochal.layout.dcb.tables import EVENTS, TAGS
from epochal.layout.journal.tables import JOURNAL, SNAPSHOT
from epochal.layout.tables import INDEX, PROJECTION_STATES, READ_MODELS
from epochal.layout.tips.key_records import PREFIX
from epochal.layout.tips.tables import TIPS
from epochal.plan.values import Item

_TENANT: Final = re.compile(r"SERVICE#[^#]*#")

_PREFIXES: Final = {"EVENT#": EVENTS, "TAG#": TAGS, "PROJECTOR#": PROJECTION_STATES}

_OF_READ_MODELS: Final = ("document", "place", "live")


def kind_of(item: Item) -> str | None:
    """The kind of table that holds such items; None where it is none of Epochal's."""
    if item.keys() >= {"p", "i"}:
        return _of_streams(item["p"].get("S", ""))
    if item.keys() >= {"pkey", "skey"}:
        return JOURNAL.kind if "occurred_at" in item else SNAPSHOT.kind if "version" in item else None
    if item.keys() >= {"pk", "sk"}:
        return _of_pairs(item["pk"].get("S", ""), item["sk"].get("S", ""))
    return None


def _of_streams(name: str) -> str | None:
    if name.startswith(PREFIX):
        return None
    return INDEX.kind if name.startswith("$") else TIPS.kind


def _of_pairs(pk: str, sk: str) -> str | None:
    plain = _TENANT.sub("", pk, count=1)
    found = next((spec.kind for prefix, spec in _PREFIXES.items() if plain.startswith(prefix)), None)
    return READ_MODELS.kind if found is None and sk in _OF_READ_MODELS else found
