"""Fields that requests and answers about events have in common: their schemas and limits."""

from __future__ import annotations

from typing import Final

from epochal.http import schemas
from epochal.model.events import (
    MAX_TAG_BYTES,
)
from epochal.model.tokens import MAX_VERSION
from epochal.plan.limits import TRANSACTION_ITEMS

MAX_EVENTS: Final = 1_000
MAX_UNFOLDS: Final = 100
"""Most events or unfolds of an append: more than an item of 400 KB holds at usual sizes. Larger appends are refused by
their bytes."""

MAX_NAMED: Final = TRANSACTION_ITEMS
"""Most items of a query, types and tags of an item, and heads that fence a query: the limit of one transaction."""

MAX_POSITION_BYTES: Final = 1024 * 1024

TAG: Final = schemas.text(
    "Printable text that does not begin with `$`; what precedes the first `:` is its group.",
    most=MAX_TAG_BYTES,
    pattern=r"[^$:\x00-\x1f\x7f][^\x00-\x1f\x7f]*",
    examples=["course:1"],
)
POSITION: Final = schemas.text(
    "What a read has seen: opaque, to be sent back as it is.", most=MAX_POSITION_BYTES
)
CONDITION: Final = {
    "failIf": schemas.ref("EventQuery"),
    "after": {
        **POSITION,
        "description": "Only matching events beyond this position refuse the append. If left out, any matching "
        "event does.",
    },
}
INDEX: Final = schemas.whole("Index within the stream, counted from 0.", 0, MAX_VERSION)

OMITTED: Final = {
    "const": True,
    "description": "Whether the bodies are left out because the answer is too large. Read the event by itself.",
}
