"""Operations to requests: their names and parameters, as DynamoDB's API reference has them. One operation is one
request, a BatchGet at least one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from epochal.dynamo.protocol.expressions import Expressions
from epochal.plan.ops import (
    BatchGet,
    Check,
    Condition,
    Delete,
    Get,
    Op,
    Put,
    Query,
    Scan,
    Transact,
    TransactGet,
    TransactionWrite,
    Update,
)

_MEASURED: Final = {"ReturnConsumedCapacity": "TOTAL"}


@dataclass(frozen=True, slots=True)
class DynamoRequest:
    """A request to DynamoDB.

    Attributes:
        operation: as DynamoDB names it: `PutItem`.
        parameters: JSON but for binary values, which are bytes.
    """

    operation: str
    parameters: dict[str, Any]


def request_of(op: Op) -> DynamoRequest:
    """The request that an operation is, or begins with."""
    match op:
        case Transact():
            return DynamoRequest("TransactWriteItems", _transaction(op))
        case Put():
            return DynamoRequest("PutItem", {**_write(op), **_MEASURED})
        case Update():
            return DynamoRequest("UpdateItem", {**_write(op), **_MEASURED})
        case Delete():
            return DynamoRequest("DeleteItem", {**_write(op), **_MEASURED})
        case Check():
            raise TypeError("a Check stands only in a transaction")
        case _:
            return _read(op)


def _read(op: Get | BatchGet | TransactGet | Query | Scan) -> DynamoRequest:
    match op:
        case Get():
            key = {"TableName": op.table, "Key": op.key, "ConsistentRead": op.consistent}
            return DynamoRequest("GetItem", {**key, **_MEASURED})
        case BatchGet():
            return asked_again({op.table: {"Keys": list(op.keys), "ConsistentRead": op.consistent}})
        case TransactGet():
            wanted = [{"Get": {"TableName": table, "Key": key}} for table, key in op.keys]
            return DynamoRequest("TransactGetItems", {"TransactItems": wanted, **_MEASURED})
        case Query():
            return DynamoRequest("Query", _query(op))
        case Scan():
            return DynamoRequest("Scan", _scan(op))


def asked_again(unprocessed: dict[str, Any]) -> DynamoRequest:
    """The request for the items of these keys, as an answer names those that it left out."""
    return DynamoRequest("BatchGetItem", {"RequestItems": unprocessed, **_MEASURED})


def _query(op: Query) -> dict[str, Any]:
    expressions = Expressions()
    name, value = op.partition
    keys = f"{expressions.name(name)} = {expressions.value(value)}"
    if op.sort is not None:
        sort, low, high = op.sort
        bounds = f"{expressions.value(low)} AND {expressions.value(high)}"
        keys += f" AND {expressions.name(sort)} BETWEEN {bounds}"
    return {
        "KeyConditionExpression": keys,
        "ScanIndexForward": op.forward,
        **({"Select": "COUNT"} if op.only_count else {}),
        **_paging(op),
        **expressions.parameters(),
    }


def _scan(op: Scan) -> dict[str, Any]:
    segment, total = op.segment
    expressions = Expressions()
    where = {} if op.where is None else {"FilterExpression": expressions.condition(op.where)}
    return {"Segment": segment, "TotalSegments": total, **where, **_paging(op), **expressions.parameters()}


def _paging(op: Query | Scan) -> dict[str, Any]:
    return {
        "TableName": op.table,
        "ConsistentRead": op.consistent,
        **({"IndexName": op.index} if op.index is not None else {}),
        **({"Limit": op.limit} if op.limit is not None else {}),
        **({"ExclusiveStartKey": op.after} if op.after is not None else {}),
        **_MEASURED,
    }


def _transaction(op: Transact) -> dict[str, Any]:
    kinds = {Put: "Put", Update: "Update", Delete: "Delete", Check: "ConditionCheck"}
    return {
        "TransactItems": [{kinds[type(write)]: _write(write)} for write in op.writes],
        **({"ClientRequestToken": op.token} if op.token is not None else {}),
        **_MEASURED,
    }


def _write(op: TransactionWrite) -> dict[str, Any]:
    expressions = Expressions()
    request: dict[str, Any] = {"TableName": op.table}
    if isinstance(op, Put):
        request["Item"] = op.item
    else:
        request["Key"] = op.key
    if isinstance(op, Update):
        request["UpdateExpression"] = expressions.update(op)
    request.update(_condition(op.condition, expressions))
    request.update(expressions.parameters())
    return request


def _condition(condition: Condition | None, expressions: Expressions) -> dict[str, str]:
    if condition is None:
        return {}
    # The item that stood in the way comes back with the refusal: a conflict costs no second read.
    return {
        "ConditionExpression": expressions.condition(condition),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
