"""Converts operations into requests. Names and parameters are those of DynamoDB's API reference."""

from __future__ import annotations

from typing import Any, Final

from epochal.dynamo.protocol.expressions import Expressions
from epochal.lazy_dataclasses import dataclass
from epochal.plan import conditions, ops

_MEASURED: Final = {"ReturnConsumedCapacity": "TOTAL"}


@dataclass(frozen=True, slots=True)
class DynamoRequest:
    """A request to DynamoDB.

    Attributes:
        operation: name of the operation in DynamoDB's API, such as `PutItem`.
        parameters: parameters as JSON, except that binary values are bytes.
    """

    operation: str
    parameters: dict[str, Any]


def request_of(op: ops.Op) -> DynamoRequest:
    """Build the first request of an operation, usually its only one; raise `TypeError` for a lone `Check`."""
    match op:
        case ops.Transact():
            return DynamoRequest("TransactWriteItems", _transaction_parameters(op))
        case ops.Put() | ops.Update() | ops.Delete():
            return DynamoRequest(f"{type(op).__name__}Item", {**_write_parameters(op), **_MEASURED})
        case ops.Check():
            raise TypeError("a Check stands only in a transaction")
        case _:
            return _read_request(op)


def _read_request(op: ops.Get | ops.BatchGet | ops.TransactGet | ops.Query | ops.Scan) -> DynamoRequest:
    """Build the request of an operation that reads."""
    match op:
        case ops.Get():
            key = {"TableName": op.table, "Key": op.key, "ConsistentRead": op.consistent}
            return DynamoRequest("GetItem", {**key, **_MEASURED})
        case ops.BatchGet():
            return batch_request({op.table: {"Keys": list(op.keys), "ConsistentRead": op.consistent}})
        case ops.TransactGet():
            gets = [{"Get": {"TableName": table, "Key": key}} for table, key in op.keys]
            return DynamoRequest("TransactGetItems", {"TransactItems": gets, **_MEASURED})
        case ops.Query():
            return DynamoRequest("Query", _query_parameters(op))
        case ops.Scan():
            return DynamoRequest("Scan", _scan_parameters(op))


def batch_request(unprocessed: dict[str, Any]) -> DynamoRequest:
    """Build a BatchGetItem request for keys in the form in which answers list unprocessed keys."""
    return DynamoRequest("BatchGetItem", {"RequestItems": unprocessed, **_MEASURED})


def _query_parameters(op: ops.Query) -> dict[str, Any]:
    """Build the parameters of a Query request: key condition, direction, count only, and paging."""
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
        **_paging_parameters(op),
        **expressions.parameters(),
    }


def _scan_parameters(op: ops.Scan) -> dict[str, Any]:
    """Build the parameters of a Scan request: segment, filter and paging."""
    segment, total = op.segment
    expressions = Expressions()
    where = {} if op.where is None else {"FilterExpression": expressions.condition(op.where)}
    return {
        "Segment": segment,
        "TotalSegments": total,
        **where,
        **_paging_parameters(op),
        **expressions.parameters(),
    }


def _paging_parameters(op: ops.Query | ops.Scan) -> dict[str, Any]:
    """Build what queries and scans share: table, index, consistency, limit, start key, measured capacity."""
    return {
        "TableName": op.table,
        "ConsistentRead": op.consistent,
        **({"IndexName": op.index} if op.index is not None else {}),
        **({"Limit": op.limit} if op.limit is not None else {}),
        **({"ExclusiveStartKey": op.after} if op.after is not None else {}),
        **_MEASURED,
    }


def _transaction_parameters(op: ops.Transact) -> dict[str, Any]:
    """Build the parameters of a TransactWriteItems request."""
    kinds = {ops.Put: "Put", ops.Update: "Update", ops.Delete: "Delete", ops.Check: "ConditionCheck"}
    return {
        "TransactItems": [
            {kinds[type(write)]: _write_parameters(write, shown=op.shows(position))}
            for position, write in enumerate(op.writes)
        ],
        **({"ClientRequestToken": op.token} if op.token is not None else {}),
        **_MEASURED,
    }


def _write_parameters(op: ops.TransactionWrite, *, shown: bool = True) -> dict[str, Any]:
    """Build the parameters of a single write, alone or inside a transaction."""
    expressions = Expressions()
    request: dict[str, Any] = {"TableName": op.table}
    if isinstance(op, ops.Put):
        request["Item"] = op.item
    else:
        request["Key"] = op.key
    if isinstance(op, ops.Update):
        request["UpdateExpression"] = expressions.update(op)
    request.update(_condition_parameters(op.condition, expressions, shown=shown))
    request.update(expressions.parameters())
    return request


def _condition_parameters(
    condition: conditions.Condition | None, expressions: Expressions, *, shown: bool
) -> dict[str, str]:
    """Build the parameters of a condition, asking for the item that fails it if `shown`; empty for None."""
    if condition is None:
        return {}
    expression = {"ConditionExpression": expressions.condition(condition)}
    # The item that stood in the way comes back with the refusal: a conflict costs no second read.
    return {**expression, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"} if shown else expression
