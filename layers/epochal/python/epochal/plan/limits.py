"""DynamoDB's limits, checked on a plan before it is sent, so that nothing too large fails late (DESIGN §5.13).

Source: AWS, "Service, account, and table quotas in Amazon DynamoDB".
"""

from __future__ import annotations

from typing import Final

from epochal.errors import TooLarge
from epochal.plan.ops import BatchGet, Op, Put, Transact, TransactGet, Update
from epochal.plan.sizes import item_size, value_size

ITEM_BYTES: Final = 400 * 1024
TRANSACTION_ITEMS: Final = 100
TRANSACTION_BYTES: Final = 4 * 1024 * 1024
PAGE_BYTES: Final = 1024 * 1024
BATCH_KEYS: Final = 100


def check(op: Op) -> None:
    """Raise `TooLarge`, with sizes, where a plan cannot succeed whatever is stored."""
    match op:
        case Put() | Update():
            _check_item(_bytes(op))
        case Transact(writes=writes):
            _check_transaction(writes)
        case BatchGet(keys=keys) if len(keys) > BATCH_KEYS:
            raise TooLarge("keys", len(keys), BATCH_KEYS, "items")
        case TransactGet(keys=keys) if len(keys) > TRANSACTION_ITEMS:
            raise TooLarge("keys", len(keys), TRANSACTION_ITEMS, "items")
        case _:
            pass


def update_bytes(op: Update) -> int:
    """Bytes of the values an update carries: no more can be said before what is stored is known."""
    return sum(value_size(change.value) for change in op.sets)


def _bytes(op: Op) -> int:
    """Bytes that a write carries."""
    match op:
        case Put(item=item):
            return item_size(item)
        case Update():
            return update_bytes(op)
        case _:
            return 0


def _check_item(size: int) -> None:
    if size > ITEM_BYTES:
        raise TooLarge("item", size, ITEM_BYTES)


def _check_transaction(writes: tuple[Op, ...]) -> None:
    if len(writes) > TRANSACTION_ITEMS:
        raise TooLarge("transaction", len(writes), TRANSACTION_ITEMS, "items")
    total = 0
    for write in writes:
        size = _bytes(write)
        _check_item(size)
        total += size
    if total > TRANSACTION_BYTES:
        raise TooLarge("transaction", total, TRANSACTION_BYTES)
