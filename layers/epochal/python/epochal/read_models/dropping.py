"""Deleting a generation of a read model: all of its items, a bounded part of the table in each call.

The table is scanned, since the places of streams are in no list. The head says first that the generation is being
dropped, so that no query reads half of it, and goes last.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, urlsafe_b64encode
from typing import Final

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be
from epochal.plan.batches import side_by_side
from epochal.plan.conditions import AnyOf, BeginsWith
from epochal.plan.ops import Delete, Scan, Set, Steps, Update
from epochal.plan.values import Item, Key, number, text
from epochal.read_models.generation_heads import head_key

LOOKED_AT: Final = 1_000
"""Items of the table that a call reads at most."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """The result of one call of `ReadModels.drop`, which deletes a part of a generation.

    Attributes:
        items: number of items that the call deleted.
        next: value for `after` of the next call; None once everything is deleted.
    """

    items: int
    next: str | None = None


def drop(table: str, model: str, after: str | None) -> Steps[Dropped]:
    """Delete a generation's items among the table's next 1,000; return how many, and where to continue.

    The first call marks the generation's head as being dropped, and the last one deletes it.
    """
    start = None if after is None else _read(after)
    if start is None:
        yield Update(table=table, key=head_key(model), sets=(Set("z", number(1)),))
    own = AnyOf((BeginsWith("pk", f"{model}#"), BeginsWith("pk", f"{model}/")))
    page = yield Scan(table=table, where=own, limit=LOOKED_AT, after=start)
    yield from side_by_side(Delete(table=table, key=_key(item)) for item in page.items)
    if page.last is not None:
        return Dropped(len(page.items), _written(page.last))
    yield Delete(table=table, key=head_key(model))
    return Dropped(len(page.items))


def _key(item: Item) -> Key:
    """Return the key of an item."""
    return {"pk": item["pk"], "sk": item["sk"]}


def _written(last: Key) -> str:
    """Encode a continuation."""
    return urlsafe_b64encode(json.dumps([last["pk"]["S"], last["sk"]["S"]])).decode()


def _read(after: str) -> Key:
    """Decode a continuation; raise `InvalidInput` if it is malformed."""
    must_be(str, after, "after", "a continuation: `next` of the call before")
    try:
        partition, sort = json.loads(b64decode(after, altchars=b"-_", validate=True))
        return {"pk": text(partition + ""), "sk": text(sort + "")}
    except (binascii.Error, ValueError, TypeError) as error:
        raise InvalidInput("after", "is no continuation") from error
