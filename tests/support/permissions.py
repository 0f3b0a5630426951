"""What AWS asks for an operation, and what a layout says that a function does."""

from __future__ import annotations

from epochal.layout.port import Port
from epochal.plan import ops
from epochal.settings import Settings

Allowed = set[tuple[str, str]]
"""Actions, and what they are on: a table, or an index of it."""


def on(resource: str, *actions: str, service: str = "dynamodb") -> Allowed:
    return {(f"{service}:{action}", resource) for action in actions}


def actions(op: ops.Op) -> Allowed:
    """Return the actions and resources that AWS requires for an operation."""
    match op:
        case ops.Transact(writes=writes):
            return {pair for each in writes for pair in actions(each)}
        case ops.TransactGet(keys=keys):
            return {pair for table, _ in keys for pair in on(table, "GetItem")}
        case ops.Query(table=table, index=str(index)):
            return on(f"{index} of {table}", "Query")
        case ops.Query(table=table) | ops.Scan(table=table):
            return on(table, type(op).__name__)
        case ops.Check(table=table):
            return on(table, "ConditionCheckItem")
        case _:
            return on(op.table, f"{type(op).__name__}Item")


def allowed(port: Port, function: str) -> Allowed:
    """Return what the layout grants the function on tables that are named by their kinds."""
    found: Allowed = set()
    for each in port.access(Settings()).get(function, ()):
        found |= on(f"{each.index} of {each.table.kind}" if each.index else each.table.kind, *each.actions)
    return found
