"""DynamoDB's limits, checked on a plan before it is sent, so that nothing too large fails late (DESIGN §5.13).

Source: AWS, "Service, account, and table quotas in Amazon DynamoDB".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from epochal.errors import TooLarge
from epochal.plan.ops import BatchGet, Op, Put, Transact, TransactGet, Update
from epochal.plan.values import Item, item_size, stored_size, value_size

ITEM_BYTES: Final = 400 * 1024
TRANSACTION_ITEMS: Final = 100
TRANSACTION_BYTES: Final = 4 * 1024 * 1024
PAGE_BYTES: Final = 1024 * 1024
BATCH_KEYS: Final = 100
RESPONSE_BYTES: Final = 4 * 1024 * 1024
"""Largest bytes of the items in the response to a TransactGet, or to a Transact that is refused."""

_RESPONSE_ITEM_BYTES: Final = 4
"""Bytes that each item of a response adds to its size, also an absent item: found by bisection on DynamoDB Local."""


def fits_response(items: Iterable[Item | None], most: int = RESPONSE_BYTES) -> bool:
    """Return whether the items of a transaction's reads or refused writes fit one response.

    Args:
        items: the items that are stored under the keys; None for no item.
        most: largest bytes of a response.
    """
    return sum(stored_size(item) + _RESPONSE_ITEM_BYTES for item in items) <= most


def check(op: Op) -> None:
    """Raise `TooLarge` for an operation with too many bytes or items to succeed, whatever is stored."""
    match op:
        case Put() | Update():
            _at_most(ITEM_BYTES, "item", _bytes(op))
        case Transact(writes=writes):
            _at_most(TRANSACTION_ITEMS, "transaction", len(writes), "items")
            sizes = list(map(_bytes, writes))
            for size in sizes:
                _at_most(ITEM_BYTES, "item", size)
            _at_most(TRANSACTION_BYTES, "transaction", sum(sizes))
        case BatchGet(keys=keys):
            _at_most(BATCH_KEYS, "keys", len(keys), "items")
        case TransactGet(keys=keys):
            _at_most(TRANSACTION_ITEMS, "keys", len(keys), "items")
        case _:
            pass


def _bytes(op: Op) -> int:
    """Compute the bytes that a write carries.

    The bytes of an update's item depend on what is stored, so only the changes are counted.
    """
    match op:
        case Put(item=item):
            return item_size(item)
        case Update(sets=sets):
            return sum(value_size(change.value) for change in sets)
        case _:
            return 0


def _at_most(most: int, what: str, size: int, *unit: str) -> None:
    """Raise `TooLarge` if a size is above a limit."""
    if size > most:
        raise TooLarge(what, size, most, *unit)
