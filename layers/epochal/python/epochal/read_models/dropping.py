"""Deleting a generation of a read model: all of its items, a bounded part of the table in each call.

The table is scanned, since the places of streams are in no list. The head says first that the generation is being
dropped, so that nothing is asked of a half, and goes last.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.model.kinds import must_be
from epochal.plan.ops import AnyOf, BeginsWith, Delete, Scan, Set, Steps, Update, side_by_side
from epochal.plan.values import Item, Key, number, text
from epochal.read_models.keys import head_key

LOOKED_AT: Final = 1_000
"""Items of the table that a call reads at most."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What one call has deleted.

    Attributes:
        items: how many.
        next: the `after` of the call that follows; None once all is gone.
    """

    items: int
    next: str | None = None


def drop(table: str, model: str, after: str | None) -> Steps[Dropped]:
    """Delete the generation's items among the next ones of the table."""
    start = None if after is None else _read(after)
    if start is None:
        yield Update(table=table, key=head_key(model), sets=(Set("z", number(1)),))
    own = AnyOf((BeginsWith("pk", f"{model}#"), BeginsWith("pk", f"{model}/")))
    page = yield Scan(table=table, where=own, limit=LOOKED_AT, after=start)
    yield from side_by_side(Delete(table=table, key=_key(each)) for each in page.items)
    if page.last is not None:
        return Dropped(len(page.items), _written(page.last))
    yield Delete(table=table, key=head_key(model))
    return Dropped(len(page.items))


def _key(item: Item) -> Key:
    return {"pk": item["pk"], "sk": item["sk"]}


def _written(last: Key) -> str:
    return urlsafe_b64encode(json.dumps([last["pk"]["S"], last["sk"]["S"]])).decode()


def _read(after: str) -> Key:
    must_be(str, after, "after", "a continuation: `next` of the call before")
    try:
        partition, sort = json.loads(b64decode(after, altchars=b"-_", validate=True))
        return {"pk": text(partition + ""), "sk": text(sort + "")}
    except (binascii.Error, ValueError, TypeError) as error:
        raise InvalidInput("after", "is no continuation") from error
