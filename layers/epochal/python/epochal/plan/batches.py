"""Operations in batches: items by key, however many they are, and requests side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from epochal.plan.limits import BATCH_KEYS, TRANSACTION_ITEMS
from epochal.plan.ops import BatchGet, Op, Several, Steps, TransactGet
from epochal.plan.values import Item, Key


def get_all(table: str, keys: Iterable[Key]) -> Steps[list[Item]]:
    """The items that exist, in no order. `keys` may have none twice."""
    wanted = tuple(keys)
    starts = range(0, len(wanted), BATCH_KEYS)
    replies = yield from side_by_side(
        BatchGet(table=table, keys=wanted[start : start + BATCH_KEYS]) for start in starts
    )
    return [item for reply in replies for item in reply.items]


def side_by_side(ops: Iterable[Op]) -> Steps[list[Any]]:
    """Replies to operations that do not depend on each other, in their order."""
    together = tuple(ops)
    if not together:
        return []
    if len(together) == 1:
        return [(yield together[0])]
    replies: list[Any] = yield Several(ops=together)
    return replies


def settled(places: Iterable[tuple[str, Key]]) -> Steps[None]:
    """Reads that wait for what is under way on these items, each by table and key; none may come twice."""
    wanted = tuple(places)
    for start in range(0, len(wanted), TRANSACTION_ITEMS):
        yield TransactGet(keys=wanted[start : start + TRANSACTION_ITEMS])
