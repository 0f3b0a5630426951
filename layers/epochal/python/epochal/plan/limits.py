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
"""Of the items in the response to a TransactGet, and to a Transact that is refused."""

_RESPONSE_ITEM_BYTES: Final = 4
"""What each item adds to its size there, also one that is not there: found by bisection on DynamoDB Local."""


def fits_response(items: Iterable[Item | None], most: int = RESPONSE_BYTES) -> bool:
    """Whether the response to a TransactGet, or to a Transact of which some writes are refused, has room for what is
    stored under the keys of these reads or writes.
    """
    return sum(stored_size(item) + _RESPONSE_ITEM_BYTES for item in items) <= most


def check(op: Op) -> None:
    """Raise `TooLarge`, with sizes, where a plan cannot succeed whatever is stored."""
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
    """Bytes that a write carries: of an update no more can be said before what is stored is known."""
    match op:
        case Put(item=item):
            return item_size(item)
        case Update(sets=sets):
            return sum(value_size(change.value) for change in sets)
        case _:
            return 0


def _at_most(most: int, what: str, size: int, *unit: str) -> None:
    if size > most:
        raise TooLarge(what, size, most, *unit)
