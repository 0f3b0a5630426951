"""Turns operations into conversations: the requests of an operation, and the reply made from their answers.

A generator yields each request and is sent its answer. Whoever runs it transports both, blocking or not. One operation
is one request, a BatchGet at least one.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from epochal.dynamo.protocol.requests import DynamoRequest, batch_request, request_of
from epochal.plan import failures, ops
from epochal.plan.values import Item, Units

Response = dict[str, Any]


def conversation(op: ops.Op) -> Generator[DynamoRequest, Response, ops.Reply]:
    """Yield the requests of an operation, receive their answers, and return the reply."""
    if isinstance(op, ops.BatchGet):
        return (yield from _read_batch(op))
    return _parse_reply(op, (yield request_of(op)))


def _parse_reply(op: ops.Op, answer: Response) -> ops.Reply:
    """Convert the answer to a request into the reply of its operation; raise `Lost` if it is malformed."""
    match op:
        case ops.Get():
            units = _read_cost(answer, "ConsumedCapacity")
            return ops.Found(item=_optional(answer, "Item"), units=units)
        case ops.TransactGet():
            units = _read_cost(answer, "Responses")
            responses = _objects(answer["Responses"])
            if len(responses) != len(op.keys):
                raise failures.Lost(_MALFORMED)
            return ops.Together(
                items=tuple(_optional(response, "Item") for response in responses), units=units
            )
        case ops.Query(only_count=True):
            return _parse_page(answer, "Count")
        case ops.Query() | ops.Scan():
            return _parse_page(answer, "Items")
        case _:
            return ops.Done(units=Units(write=_sum_units(answer)))


def _parse_page(answer: Response, member: str) -> ops.Items:
    """Convert the answer to a query or scan into a page of items, or into one that only has a count."""
    units, last = _read_cost(answer, member), _optional(answer, "LastEvaluatedKey")
    if member != "Count":
        return ops.Items(items=tuple(_objects(answer[member])), last=last, units=units)
    if type(answer[member]) is not int:
        raise failures.Lost(_MALFORMED)
    return ops.Items(items=(), counted=answer[member], last=last, units=units)


def _read_batch(op: ops.BatchGet) -> Generator[DynamoRequest, Response, ops.Items]:
    """Read all keys of a batch, again those left out; return the items, or raise if there is no progress.

    An answer holds at most 16 MB, so DynamoDB may leave keys out.
    """
    items: list[Item] = []
    cost = Units()
    request = request_of(op)
    while True:
        answer = yield request
        cost += _read_cost(answer, "Responses")
        page = _objects((_optional(answer, "Responses") or {}).get(op.table, []))
        items += page
        unprocessed = _optional(answer, "UnprocessedKeys")
        if not unprocessed:
            return ops.Items(items=tuple(items), units=cost)
        if not page:
            raise failures.RequestNotApplied("UnprocessedKeys")
        request = batch_request(unprocessed)


def _read_cost(answer: Response, member: str) -> Units:
    """Return the read units of an answer; raise `Lost` if the answer lacks a member that it must have.

    Such an answer was cut off among its headers: boto takes it for an answer without contents, so items that exist
    would seem to be missing.
    """
    if member not in answer:
        raise failures.Lost("an answer that was cut off")
    return Units(read=_sum_units(answer))


def _sum_units(answer: Response) -> float:
    """Sum the capacity units that an answer reports; raise `Lost` if it reports them in another form."""
    consumed = answer.get("ConsumedCapacity", [])
    try:
        return float(
            sum(cost["CapacityUnits"] for cost in (consumed if isinstance(consumed, list) else [consumed]))
        )
    except (KeyError, TypeError) as error:
        raise failures.Lost(_MALFORMED) from error


_MALFORMED: Final = "an answer that is malformed"


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return a member of an answer that is a list of objects; raise `Lost` if it is not."""
    if type(value) is not list or not all(type(element) is dict for element in value):
        raise failures.Lost(_MALFORMED)
    return value


def _optional(answer: Response, name: str) -> dict[str, Any] | None:
    """Return a member of an answer that is an object, or None if it is missing; raise `Lost` if it is neither."""
    value = answer.get(name)
    if value is not None and type(value) is not dict:
        raise failures.Lost(_MALFORMED)
    return value
