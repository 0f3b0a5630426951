"""Filters of event source mappings: which changes of a table are of heads, and so matter to the indexer or, in the
index, to the notifier.

Lambda compares them before it wakes the function; what they drop costs nothing and is never seen again. So they
look only at what makes an item a head that an append wrote, and drop nothing that the library would index: a head
that is malformed elsewhere gets through, and is set aside with its cause. They are made of the conditions that the
layouts state (`layout.port.Source`), and mean the same.

Numbers are text here, as they are in records. Only operators that Lambda documents for filters are used.
"""

from __future__ import annotations

import json
from typing import Any

from epochal.index.stored import EPOCHS, WHERE
from epochal.layout.port import Source
from epochal.plan.ops import All, BeginsWith, Compare, Condition, Not, Present


def heads_of(source: Source) -> str:
    """A head of the source's feed was written, and maybe by an append."""
    return json.dumps(_written(_moved(source)))


def heads_sent(source: Source, table: str) -> str:
    """The same of what `table` sent to Kinesis, where it is JSON under `data`."""
    return json.dumps({"data": {"tableName": [table], **_written(_moved(source))}})


def epochs() -> str:
    """The Tip of an epoch was written: a partition of the feed has moved.

    Marks, states of consumer groups and the series are in the same table, and move no partition.
    """
    return json.dumps(_written(All((BeginsWith("p", EPOCHS), WHERE))))


def _moved(source: Source) -> Condition:
    return source.where if source.moved is None else All((source.where, source.moved))


def _written(condition: Condition) -> dict[str, Any]:
    return {"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": _image(condition)}}


def _image(condition: Condition) -> dict[str, Any]:
    """The part of a pattern that a new image meets where the condition holds."""
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
            return {name: value for each in conditions for name, value in _image(each).items()}
        case _:
            raise ValueError(f"no filter has a form for {condition}")
