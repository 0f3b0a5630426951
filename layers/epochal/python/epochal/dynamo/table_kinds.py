"""Checks once, before a store's first request to a table, that the table is of the right kind.

    index       the stream that every index begins with is there, which is one read by key
    others      the first item that tells its kind, if there is any, is of the kind; and that stream is not there

Tables of several kinds have the same keys; one with other keys is refused by DynamoDB itself. An empty table passes,
unless it has the name of a stack's table of another kind, and so does one that the caller may not look at. Deployed
functions do not look: their tables come from the stack.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from epochal.errors import InvalidInput, Refused, WrongTable
from epochal.index.checkpoints import SERIES, tip_key
from epochal.layout.key_records import PREFIX
from epochal.layout.tables import INDEX, READ_MODELS, TIMERS, archives, every_table
from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import Execute, Found, Get, Items, Op, Reply, Scan, tables_of
from epochal.plan.tables import TableSpec
from epochal.plan.values import Item
from epochal.plugins import layouts

# Which kind of table an item is of: what a store looks at to know that it was handed the right one.
#
# A layout knows the items of its own tables. The others:
#
# index                               p and i: names that begin with $, records of idempotency keys apart
# read-models                         pk and sk: what the second is
# timers                              p and s, with tags at most: p is the number of a shard
#
# An empty table is known by its name, where that is one that our stacks give: `epochal-prod-tips`.


_OF_READ_MODELS: Final = ("document", "place", "live")


@cache
def specs() -> dict[str, TableSpec]:
    """Return the specification of every table that a store may have, by its kind.

    It loads every layout.
    """
    return {spec.kind: spec for spec in every_table()}


def kind_named(table: str) -> str | None:
    """Return the kind of table in a name of a stack's form; None for any other name, and for archives.

    An archive is of the kind that it keeps.
    """
    match = re.fullmatch(rf"epochal-(?:[a-z0-9]+-)+?(?P<kind>{'|'.join(specs())})", table)
    kind = None if match is None else match["kind"]
    return None if kind in {spec.kind for spec in archives()} else kind


def kind_of(item: Item) -> str | None:
    """Return the kind of table that holds items like this one; None if it is not one of Epochal's."""
    kinds = (layout.port.kind_of(item) for layout in layouts())
    return next(filter(None, kinds), None) or _kind_by_keys(item)


def _kind_by_keys(item: Item) -> str | None:
    """Return the kind of table that an item's keys show: index, read models or timers; None for others."""
    if item.keys() >= {"p", "i"}:
        name = item["p"].get("S", "")
        return INDEX.kind if name.startswith("$") and not name.startswith(PREFIX) else None
    if item.keys() >= {"pk", "sk"}:
        return READ_MODELS.kind if item["sk"].get("S") in _OF_READ_MODELS else None
    if {*TIMERS.keys} <= item.keys() <= {*TIMERS.keys, "t"}:
        return TIMERS.kind if item["p"].get("S", "").isdigit() else None
    return None


_KEYS: Final = tip_key(SERIES)
_SAMPLE: Final = 10
"""Items: records of idempotency keys tell nothing of their table, and any of them may come first."""


def distinct(**tables: str) -> None:
    """Raise `InvalidInput` if one table is named for two purposes; argument names are the purposes."""
    purposes: dict[str, str] = {}
    for purpose, table in tables.items():
        if table and table in purposes:
            raise InvalidInput(purpose, f"must be another table than {purposes[table]}: both are {table}")
        purposes[table] = purpose


def with_table_checks(execute: Execute, kinds: Mapping[str, str]) -> Execute:
    """Wrap an interpreter so that it checks the kind of each table before the first operation on it.

    Args:
        kinds: kind that each table must have, by its name.
    """
    unchecked = set(kinds)

    def perform(op: Op) -> Reply:
        """Check the operation's tables that are not checked yet, then perform it."""
        for table in unchecked and unchecked.intersection(tables_of(op)):
            _check_table(execute, table, kinds[table])
            unchecked.discard(table)
        try:
            return execute(op)
        except WrongTable as error:
            expected = [kinds[table] for table in error.table.split(", ") if table in kinds]
            raise WrongTable(error.table, " and ".join(expected)) from error

    return perform


def _check_table(execute: Execute, table: str, kind: str) -> None:
    """Raise `WrongTable` if a table's items or its name show that it is of another kind."""
    try:
        actual = _find_kind(execute, table, kind)
    except Refused:
        return
    except Lost as error:
        # A read that got no answer has written nothing: the operation that waits for it has not been tried.
        raise RequestNotApplied(error.cause) from error
    except WrongTable as error:
        raise WrongTable(table, kind) from error
    # Nothing in it tells. Where both are empty, swapped tables of a stage would each take the other's streams.
    actual = actual or kind_named(table)
    if actual not in (kind, None):
        raise WrongTable(table, kind, actual or "")


def _find_kind(execute: Execute, table: str, kind: str) -> str | None:
    """Read a few items of a table, and return the kind of table they belong to; None if they do not tell."""
    if kind == INDEX.kind and _is_index(execute, table):
        return INDEX.kind
    reply = execute(Scan(table=table, limit=_SAMPLE, consistent=False))
    items = reply.items if isinstance(reply, Items) else ()
    for item in items:
        if match := kind_of(item):
            # Streams that have strayed into an index do not make it a table of streams.
            strayed = kind != INDEX.kind and item.keys() >= set(INDEX.keys) and _is_index(execute, table)
            return INDEX.kind if strayed else match
    return None


def _is_index(execute: Execute, table: str) -> bool:
    """Return whether a table contains the stream that every index begins with."""
    reply = execute(Get(table=table, key=_KEYS, consistent=False))
    return isinstance(reply, Found) and reply.item is not None
