"""What a plan does and costs, before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Context, Decimal
from typing import Any, Final

from epochal.plan.ops import (
    Absent,
    Add,
    All,
    AnyOf,
    BatchGet,
    BeginsWith,
    Check,
    Compare,
    Condition,
    Delete,
    Extend,
    Get,
    Not,
    Op,
    Present,
    Put,
    Query,
    Scan,
    Transact,
    TransactGet,
    TransactionWrite,
    Update,
)
from epochal.plan.values import AttributeValue, Item, Key, Units, item_size, read_units, write_units

# What a write does to an item, and whether a condition holds: DynamoDB's semantics, as far as we use them.
#
# The memory interpreter applies these, and the capacity figures are derived from them; the contract tests hold
# them to DynamoDB Local.

_ARITHMETIC: Final = Context(prec=300)
"""Of any two numbers that DynamoDB has, the sum is exact."""


def holds(condition: Condition | None, item: Item | None) -> bool:
    """Evaluate a condition against what is stored; None always holds."""
    match condition:
        case None:
            return True
        case Absent(name):
            return item is None or name not in item
        case Present(name):
            return item is not None and name in item
        case Compare():
            return item is not None and condition.name in item and _compares(condition, item[condition.name])
        case BeginsWith(name, prefix):
            found = None if item is None else item.get(name, {}).get("S")
            return found is not None and found.startswith(prefix)
        case Not(compared):
            return not holds(compared, item)
        case All(conditions):
            return all(holds(each, item) for each in conditions)
        case AnyOf(conditions):
            return any(holds(each, item) for each in conditions)


def after(write: TransactionWrite, before: Item | None) -> Item | None:
    """The item that a write leaves behind."""
    match write:
        case Put(item=item):
            return item
        case Update():
            return _updated(write, before)
        case Delete():
            return None
        case Check():
            return before


def comparable(value: AttributeValue) -> Any:
    """A value as Python may compare it: numbers by size, strings by their UTF-8."""
    ((kind, content),) = value.items()
    if kind == "N":
        return Decimal(content)
    return content.encode("utf-8") if kind == "S" else content


def _compares(condition: Compare, stored: AttributeValue) -> bool:
    if stored.keys() != condition.value.keys():
        return False
    left, right = comparable(stored), comparable(condition.value)
    match condition.operator:
        case "=":
            return bool(left == right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">=":
            return bool(left >= right)


def _updated(update: Update, before: Item | None) -> Item:
    item = dict(update.key if before is None else before)
    for name in update.removes:
        item.pop(name, None)
    for change in update.sets:
        if isinstance(change, Extend):
            present = item[change.name]["L"] if change.name in item else []
            item[change.name] = {"L": [*present, *change.value["L"]]}
        elif isinstance(change, Add):
            number = item.get(change.name, {"N": "0"})["N"]
            total = _ARITHMETIC.add(Decimal(number), Decimal(change.value["N"]))
            item[change.name] = {"N": f"{total.normalize(_ARITHMETIC):f}" if total else "0"}
        else:
            item[change.name] = change.value
    return item


# What a plan costs, in DynamoDB's capacity units, before it is sent.
#
#     write   1 unit a KB, of the larger of the item before and after; a failed condition costs as much as a write
#     read    1 unit per 4 KB strongly consistent, half eventually; a query or a scan rounds the sum of its items up,
#             not each
#
# In a transaction both count twice; each index of a table is written besides.
#
# Source: AWS, "Read/write capacity mode" and "DynamoDB item sizes and formats". A cost depends on what is
# stored, so `units` takes a function that tells the item under a key.

Lookup = Callable[[str, Key], Item | None]
"""The item stored under a key of a table (for a Put: under the whole item's own key attributes), or None."""


def units(op: Op, stored: Lookup, results: Iterable[Item] = ()) -> Units:
    """Units of one operation on a table without indexes.

    Args:
        op: what would be sent.
        stored: what is there now.
        results: for a Query or a Scan, the items it would read, since only they tell.
    """
    match op:
        case Get(table=table, key=key, consistent=consistent):
            return Units(read=read_units(_size(stored(table, key)), consistent=consistent))
        case BatchGet(table=table, keys=keys, consistent=consistent):
            return Units(
                read=sum(read_units(_size(stored(table, key)), consistent=consistent) for key in keys)
            )
        case TransactGet(keys=keys):
            return Units(read=sum(2 * read_units(_size(stored(table, key))) for table, key in keys))
        case Query(consistent=consistent) | Scan(consistent=consistent):
            return Units(read=read_units(sum(map(item_size, results)), consistent=consistent))
        case Transact(writes=writes):
            return Units(write=sum(2 * _written(write, stored) for write in writes))
        case _:
            return Units(write=_written(op, stored))


def _written(write: TransactionWrite, stored: Lookup) -> int:
    before = stored(write.table, write.item if isinstance(write, Put) else write.key)
    left = after(write, before) if holds(write.condition, before) else before
    return write_units(max(_size(before), _size(left)))


def _size(item: Item | None) -> int:
    return 0 if item is None else item_size(item)
