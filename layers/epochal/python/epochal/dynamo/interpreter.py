"""Plans to boto3 calls. One operation is one request, a BatchGet at least one; nothing is retried here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from epochal.dynamo.parsing import parse_reads
from epochal.dynamo.protocol.expressions import Expressions
from epochal.dynamo.protocol.faults import failure_of, reply_to
from epochal.plan import limits
from epochal.plan.conditions import Condition
from epochal.plan.failures import Lost, NotApplied
from epochal.plan.ops import (
    BatchGet,
    Check,
    Delete,
    Done,
    Execute,
    Found,
    Get,
    Items,
    Op,
    Put,
    Query,
    Reply,
    Scan,
    Together,
    Transact,
    TransactGet,
    TransactionWrite,
    Update,
)
from epochal.plan.units import Units
from epochal.plan.values import Item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_MEASURED = {"ReturnConsumedCapacity": "TOTAL"}


def interpreter(client: DynamoDBClient) -> Execute:
    """An interpreter that performs plans on DynamoDB. Safe to share between threads, as clients are."""
    parse_reads(client)
    answered = False

    def execute(op: Op) -> Reply:
        nonlocal answered
        limits.check(op)
        try:
            reply = _perform(client, op)
        except ClientError as error:
            answered = True
            return reply_to(error, op)
        except BotoCoreError as error:
            raise failure_of(error, retries=_retries(client), answered=answered) from error
        answered = True
        return reply

    return execute


def _retries(client: Any) -> bool:
    """Whether a client may have tried more than once before it raised."""
    return bool((client.meta.config.retries or {}).get("total_max_attempts", 2) > 1)


def _perform(client: Any, op: Op) -> Reply:
    match op:
        case Transact():
            return Done(units=_written(client.transact_write_items(**_transaction(op))))
        case Put():
            return Done(units=_written(client.put_item(**_write(op), **_MEASURED)))
        case Update():
            return Done(units=_written(client.update_item(**_write(op), **_MEASURED)))
        case Delete():
            return Done(units=_written(client.delete_item(**_write(op), **_MEASURED)))
        case Check():
            raise TypeError("a Check stands only in a transaction")
        case _:
            return _answered(client, op)


def _answered(client: Any, op: Get | BatchGet | TransactGet | Query | Scan) -> Reply:
    match op:
        case Get():
            answer = client.get_item(
                TableName=op.table, Key=op.key, ConsistentRead=op.consistent, **_MEASURED
            )
            return Found(item=answer.get("Item"), units=_read(answer, "ConsumedCapacity"))
        case BatchGet():
            return _batch_get(client, op)
        case TransactGet():
            return _together(client, op)
        case Query():
            return _page(client.query(**_query(op)), "Count" if op.only_count else "Items")
        case Scan():
            return _page(client.scan(**_scan(op)), "Items")


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


def _page(answer: dict[str, Any], wanted: str) -> Items:
    units, last = _read(answer, wanted), answer.get("LastEvaluatedKey")
    if wanted == "Count":
        return Items(items=(), counted=answer[wanted], last=last, units=units)
    return Items(items=tuple(answer[wanted]), last=last, units=units)


def _batch_get(client: Any, op: BatchGet) -> Items:
    """All of the keys: an answer holds at most 16 MB, so what was left out is asked for while there is progress."""
    wanted = {op.table: {"Keys": list(op.keys), "ConsistentRead": op.consistent}}
    items: list[Item] = []
    cost = Units()
    while wanted:
        answer = client.batch_get_item(RequestItems=wanted, **_MEASURED)
        cost += _read(answer, "Responses")
        found = answer["Responses"].get(op.table, [])
        wanted = answer.get("UnprocessedKeys")
        if wanted and not found:
            raise NotApplied("UnprocessedKeys")
        items += found
    return Items(items=tuple(items), units=cost)


def _together(client: Any, op: TransactGet) -> Together:
    wanted = [{"Get": {"TableName": table, "Key": key}} for table, key in op.keys]
    answer = client.transact_get_items(TransactItems=wanted, **_MEASURED)
    units = _read(answer, "Responses")
    return Together(items=tuple(each.get("Item") for each in answer["Responses"]), units=units)


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


def _read(answer: dict[str, Any], member: str) -> Units:
    """What a read cost. An answer without the `member` that every answer of its kind has was cut off among its headers:
    boto takes that for an answer without contents, so that what is there would look as if it were not.
    """
    if member not in answer:
        raise Lost("an answer that was cut off")
    return Units(read=_total(answer))


def _written(answer: dict[str, Any]) -> Units:
    return Units(write=_total(answer))


def _total(answer: dict[str, Any]) -> float:
    consumed = answer.get("ConsumedCapacity", [])
    return float(
        sum(each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed]))
    )
