"""What a plan costs, in DynamoDB's capacity units, before it is sent.

    write   1 unit a KB, of the larger of the item before and after; a failed condition costs as much as a write
    read    1 unit per 4 KB strongly consistent, half eventually; a query or a scan rounds the sum of its items up,
            not each

In a transaction both count twice; each index of a table is written besides.

Source: AWS, "Read/write capacity mode" and "DynamoDB item sizes and formats". A cost depends on what is stored, so
`units` takes a function that tells the item under a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from epochal.plan.effects import after, holds
from epochal.plan.ops import BatchGet, Get, Op, Put, Query, Scan, Transact, TransactGet, TransactionWrite
from epochal.plan.values import Item, Key, Units, item_size, read_units, stored_size, write_units


def refusal_units(items: Iterable[Item | None], times: int) -> Units:
    """Estimate the write units of a refused write, which DynamoDB does not report.

    By DynamoDB's rules a refused write costs the write of the stored items, as far as they came back.

    Args:
        items: the items that came back with the refusal.
        times: 2 in a transaction, else 1.
    """
    return Units(write=times * sum(write_units(stored_size(item)) for item in items))


Lookup = Callable[[str, Key], Item | None]
"""The item stored under a key of a table (for a Put: under the whole item's own key attributes), or None."""


def units(op: Op, stored: Lookup, results: Iterable[Item] = ()) -> Units:
    """Compute the capacity units of one operation on a table without indexes.

    Args:
        op: the operation.
        stored: function that returns the item that is stored under a key of a table.
        results: for a Query or a Scan, the items that it would read, which its cost depends on.
    """
    match op:
        case Get(table=table, key=key, consistent=consistent):
            return Units(read=read_units(stored_size(stored(table, key)), consistent=consistent))
        case BatchGet(table=table, keys=keys, consistent=consistent):
            return Units(
                read=sum(read_units(stored_size(stored(table, key)), consistent=consistent) for key in keys)
            )
        case TransactGet(keys=keys):
            return Units(read=sum(2 * read_units(stored_size(stored(table, key))) for table, key in keys))
        case Query(consistent=consistent) | Scan(consistent=consistent):
            return Units(read=read_units(sum(map(item_size, results)), consistent=consistent))
        case Transact(writes=writes):
            return Units(write=sum(2 * _written(write, stored) for write in writes))
        case _:
            return Units(write=_written(op, stored))


def _written(write: TransactionWrite, stored: Lookup) -> int:
    """Compute the write units of one write outside of a transaction."""
    before = stored(write.table, write.item if isinstance(write, Put) else write.key)
    item = after(write, before) if holds(write.condition, before) else before
    return write_units(max(stored_size(before), stored_size(item)))
