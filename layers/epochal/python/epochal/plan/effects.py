"""What a write does to an item, and whether a condition holds: DynamoDB's semantics, as far as we use them.

The memory interpreter applies these, and the capacity figures are derived from them; the contract tests hold them to
DynamoDB Local.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any, Final

from epochal.plan.conditions import Absent, All, AnyOf, BeginsWith, Compare, Condition, Not, Present
from epochal.plan.ops import Add, Check, Delete, Extend, Put, TransactionWrite, Update
from epochal.plan.values import AttributeValue, Item

_ARITHMETIC: Final = Context(prec=300)
"""Arithmetic with so many digits that the sum of any two DynamoDB numbers is exact."""


def holds(condition: Condition | None, item: Item | None) -> bool:
    """Return whether a condition holds on a stored item; a condition of None always holds.

    Args:
        item: the stored item; None for no item.
    """
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
            content = None if item is None else item.get(name, {}).get("S")
            return content is not None and content.startswith(prefix)
        case Not(compared):
            return not holds(compared, item)
        case All(conditions):
            return all(holds(part, item) for part in conditions)
        case AnyOf(conditions):
            return any(holds(part, item) for part in conditions)


def after(write: TransactionWrite, before: Item | None) -> Item | None:
    """Return the item that a write leaves behind; None after a delete.

    Args:
        before: the item before the write; None for no item.
    """
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
    """Convert an attribute value to a Python value that compares as in DynamoDB.

    Numbers compare by size, strings by their UTF-8 bytes.
    """
    ((kind, content),) = value.items()
    if kind == "N":
        return Decimal(content)
    return content.encode("utf-8") if kind == "S" else content


def _compares(condition: Compare, stored: AttributeValue) -> bool:
    """Return whether a stored value is `=`, `<`, `<=` or `>=` a condition's value, and of the same type."""
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
    """Return the item that an update leaves behind; an absent item is created from the key."""
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
