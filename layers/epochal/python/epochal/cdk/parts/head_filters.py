"""Filters of event source mappings: the changes of a table that concern heads, and so matter to the indexer.

Lambda applies them before it wakes the function; dropped changes cost nothing and are never seen again. So the
filters test only the attributes that make an item a head written by an append, and drop nothing that the library
would index: a head that is malformed elsewhere passes, and is set aside with its cause. They are made from the
conditions that the layouts declare (`layout.source.Source`), and mean the same.

Numbers are text here, as they are in records. Only operators that Lambda documents for filters are used.
"""

from __future__ import annotations

import json
from typing import Any

from epochal.layout.source import Source
from epochal.plan.conditions import All, BeginsWith, Compare, Condition, Not, Present


def heads_of(source: Source) -> list[str]:
    """Return filter patterns of changes to heads in a table's stream, one of which must match.

    A change matches if an append, a prune or a deletion may have written the head.
    """
    return [json.dumps(_written(condition)) for condition in _moved(source)]


def heads_sent(source: Source, table: str) -> list[str]:
    """Return filter patterns that match changes to heads, as `table` sends them to Kinesis; any may match.

    Kinesis has each change as JSON under `data`.
    """
    return [
        json.dumps({"data": {"tableName": [table], **_written(condition)}}) for condition in _moved(source)
    ]


def _moved(source: Source) -> list[Condition]:
    """Return conditions for heads that an append, a prune or a deletion may have written."""
    conditions = (source.moved, source.pruned)
    return [All((source.where, condition)) for condition in conditions if condition is not None] or [
        source.where
    ]


def _written(condition: Condition) -> dict[str, Any]:
    """Return the filter pattern of a written item that meets a condition."""
    return {"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": _image(condition)}}


def _image(condition: Condition) -> dict[str, Any]:
    """Return the part of a filter pattern that matches the new image of an item that meets a condition.

    Raises:
        ValueError: no filter can express the condition.
    """
    match condition:
        case Compare(name, "=", value):
            return {name: {kind: [content] for kind, content in value.items()}}
        case Present(name, kind) if kind:
            return {name: {kind: [{"exists": True}]}}
        case BeginsWith(name, prefix):
            return {name: {"S": [{"prefix": prefix}]}}
        case Not(Compare(name, "=", value)):
            return {
                name: {
                    kind: [{"anything-but": [content]}, {"exists": False}] for kind, content in value.items()
                }
            }
        case All(conditions):
            return {name: value for condition in conditions for name, value in _image(condition).items()}
        case _:
            raise ValueError(f"no filter has a form for {condition}")
