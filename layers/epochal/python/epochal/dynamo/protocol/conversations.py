"""Operations to conversations: the requests that an operation takes, and the reply that their answers are.

A generator yields each request and is sent its answer. Whoever runs it carries both, blocking or not. One operation is
one request, a BatchGet at least one.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from epochal.dynamo.protocol.requests import DynamoRequest, batch_request, request_of
from epochal.plan import failures, ops
from epochal.plan.values import Item, Units

Response = dict[str, Any]


def conversation(op: ops.Op) -> Generator[DynamoRequest, Response, ops.Reply]:
    """Yields the requests of an operation, is sent their answers, and returns the reply."""
    if isinstance(op, ops.BatchGet):
        return (yield from _read_batch(op))
    return _parse_reply(op, (yield request_of(op)))


def _parse_reply(op: ops.Op, answer: Response) -> ops.Reply:
    match op:
        case ops.Get():
            return ops.Found(item=answer.get("Item"), units=_read_cost(answer, "ConsumedCapacity"))
        case ops.TransactGet():
            units = _read_cost(answer, "Responses")
            return ops.Together(
                items=tuple(response.get("Item") for response in answer["Responses"]), units=units
            )
        case ops.Query(only_count=True):
            return _parse_page(answer, "Count")
        case ops.Query() | ops.Scan():
            return _parse_page(answer, "Items")
        case _:
            return ops.Done(units=Units(write=_sum_units(answer)))


def _parse_page(answer: Response, member: str) -> ops.Items:
    units, last = _read_cost(answer, member), answer.get("LastEvaluatedKey")
    if member == "Count":
        return ops.Items(items=(), counted=answer[member], last=last, units=units)
    return ops.Items(items=tuple(answer[member]), last=last, units=units)


def _read_batch(op: ops.BatchGet) -> Generator[DynamoRequest, Response, ops.Items]:
    """All of the keys: an answer holds at most 16 MB, so what was left out is asked for while there is progress."""
    items: list[Item] = []
    cost = Units()
    request = request_of(op)
    while True:
        answer = yield request
        cost += _read_cost(answer, "Responses")
        page = answer["Responses"].get(op.table, [])
        items += page
        unprocessed = answer.get("UnprocessedKeys")
        if not unprocessed:
            return ops.Items(items=tuple(items), units=cost)
        if not page:
            raise failures.NotApplied("UnprocessedKeys")
        request = batch_request(unprocessed)


def _read_cost(answer: Response, member: str) -> Units:
    """What a read cost. An answer without the `member` that every answer of its kind has was cut off among its headers:
    boto takes that for an answer without contents, so that what is there would look as if it were not.
    """
    if member not in answer:
        raise failures.Lost("an answer that was cut off")
    return Units(read=_sum_units(answer))


def _sum_units(answer: Response) -> float:
    consumed = answer.get("ConsumedCapacity", [])
    return float(
        sum(cost["CapacityUnits"] for cost in (consumed if isinstance(consumed, list) else [consumed]))
    )
