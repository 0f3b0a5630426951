"""What the indexes of a table cost with each write, by DynamoDB's rules."""

from __future__ import annotations

from epochal.plan.tables import IndexSpec, TableSpec
from epochal.plan.values import Item, item_size, write_units


def index_units(spec: TableSpec, before: Item | None, item_after: Item | None) -> int:
    """Return the write units of a table's indexes for one write, in a transaction or not.

    An entry that appears, changes or goes costs its size; one whose key changes goes and appears.
    """
    return sum(
        _entry_units(
            _projected(index, spec, before), _projected(index, spec, item_after), index.key_names(spec)
        )
        for index in spec.indexes
    )


def _entry_units(before: Item | None, item_after: Item | None, keys: tuple[str, ...]) -> int:
    if before == item_after:
        return 0
    if before is None or item_after is None or all(before[name] == item_after[name] for name in keys):
        return write_units(max(_size(before), _size(item_after)))
    return write_units(_size(before)) + write_units(_size(item_after))


def _projected(index: IndexSpec, spec: TableSpec, item: Item | None) -> Item | None:
    """Return the attributes that an index projects of an item; None if one of its keys is missing."""
    keys = index.key_names(spec)
    if item is None or any(name not in item for name in keys):
        return None
    return {name: item[name] for name in keys} if index.keys_only else item


def _size(item: Item | None) -> int:
    return 0 if item is None else item_size(item)
