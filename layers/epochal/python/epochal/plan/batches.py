"""Operations in batches: items by key, however many they are, and requests side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from epochal.plan.limits import BATCH_KEYS, TRANSACTION_ITEMS
from epochal.plan.ops import BatchGet, Op, Several, Steps, TransactGet
from epochal.plan.values import Item, Key


def get_all(table: str, keys: Iterable[Key]) -> Steps[list[Item]]:
    """Read the items under any number of keys, in batches; return those that exist, in no order.

    Args:
        keys: keys of the items, each once.
    """
    remaining = tuple(keys)
    starts = range(0, len(remaining), BATCH_KEYS)
    replies = yield from side_by_side(
        BatchGet(table=table, keys=remaining[start : start + BATCH_KEYS]) for start in starts
    )
    return [item for reply in replies for item in reply.items]


def side_by_side(ops: Iterable[Op]) -> Steps[list[Any]]:
    """Perform operations that do not depend on each other, in parallel; return replies in their order."""
    together = tuple(ops)
    if not together:
        return []
    if len(together) == 1:
        return [(yield together[0])]
    replies: list[Any] = yield Several(ops=together)
    return replies


def settled(places: Iterable[tuple[str, Key]]) -> Steps[None]:
    """Wait until no transaction is under way on items, by reading them in transactions.

    Args:
        places: table and key of each item, each once.
    """
    remaining = tuple(places)
    for start in range(0, len(remaining), TRANSACTION_ITEMS):
        yield TransactGet(keys=remaining[start : start + TRANSACTION_ITEMS])
