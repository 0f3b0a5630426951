"""Operations to conversations: the requests that an operation takes, and the reply that their answers are.

A generator yields each request and is sent its answer. Whoever runs it carries both, blocking or not. One operation is
one request, a BatchGet at least one.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from epochal.dynamo.protocol.requests import DynamoRequest, asked_again, request_of
from epochal.plan import failures, ops
from epochal.plan.values import Item, Units

Answer = dict[str, Any]


def conversation(op: ops.Op) -> Generator[DynamoRequest, Answer, ops.Reply]:
    """Yields the requests of an operation, is sent their answers, and returns the reply."""
    if isinstance(op, ops.BatchGet):
        return (yield from _batch(op))
    return _reply(op, (yield request_of(op)))


def _reply(op: ops.Op, answer: Answer) -> ops.Reply:
    match op:
        case ops.Get():
            return ops.Found(item=answer.get("Item"), units=_cost(answer, "ConsumedCapacity"))
        case ops.TransactGet():
            units = _cost(answer, "Responses")
            return ops.Together(items=tuple(each.get("Item") for each in answer["Responses"]), units=units)
        case ops.Query(only_count=True):
            return _page(answer, "Count")
        case ops.Query() | ops.Scan():
            return _page(answer, "Items")
        case _:
            return ops.Done(units=Units(write=_total(answer)))


def _page(answer: Answer, wanted: str) -> ops.Items:
    units, last = _cost(answer, wanted), answer.get("LastEvaluatedKey")
    if wanted == "Count":
        return ops.Items(items=(), counted=answer[wanted], last=last, units=units)
    return ops.Items(items=tuple(answer[wanted]), last=last, units=units)


def _batch(op: ops.BatchGet) -> Generator[DynamoRequest, Answer, ops.Items]:
    """All of the keys: an answer holds at most 16 MB, so what was left out is asked for while there is progress."""
    items: list[Item] = []
    cost = Units()
    request = request_of(op)
    while True:
        answer = yield request
        cost += _cost(answer, "Responses")
        found = answer["Responses"].get(op.table, [])
        items += found
        unprocessed = answer.get("UnprocessedKeys")
        if not unprocessed:
            return ops.Items(items=tuple(items), units=cost)
        if not found:
            raise failures.NotApplied("UnprocessedKeys")
        request = asked_again(unprocessed)


def _cost(answer: Answer, member: str) -> Units:
    """What a read cost. An answer without the `member` that every answer of its kind has was cut off among its headers:
    boto takes that for an answer without contents, so that what is there would look as if it were not.
    """
    if member not in answer:
        raise failures.Lost("an answer that was cut off")
    return Units(read=_total(answer))


def _total(answer: Answer) -> float:
    consumed = answer.get("ConsumedCapacity", [])
    return float(
        sum(each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed]))
    )
