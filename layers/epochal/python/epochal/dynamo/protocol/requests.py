"""Operations to requests: their names and parameters, as DynamoDB's API reference has them. One operation is one
request, a BatchGet at least one.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from epochal.plan.ops import (
    Absent,
    Add,
    All,
    AnyOf,
    BatchGet,
    BeginsWith,
    Change,
    Check,
    Compare,
    Condition,
    Delete,
    Done,
    Found,
    Get,
    Items,
    Lost,
    Not,
    NotApplied,
    Op,
    Present,
    Put,
    Query,
    Reply,
    Scan,
    Set,
    Together,
    Transact,
    TransactGet,
    TransactionWrite,
    Update,
)
from epochal.plan.values import AttributeValue, Item, Units, text

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


# Conditions and updates to DynamoDB's expression language.
#
# Every name and value goes through a placeholder, so no stored name can meet a reserved word, and no value is ever
# part of an expression's text.


class Expressions:
    """Placeholders of one request, gathered while its expressions are written."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, AttributeValue] = {}

    def parameters(self) -> dict[str, Any]:
        """`ExpressionAttributeNames` and `...Values`, each left out when empty, as DynamoDB demands."""
        found: dict[str, Any] = {}
        if self._names:
            found["ExpressionAttributeNames"] = {mark: name for name, mark in self._names.items()}
        if self._values:
            found["ExpressionAttributeValues"] = self._values
        return found

    def condition(self, condition: Condition) -> str:
        """The text of a condition."""
        match condition:
            case Absent(name):
                return f"attribute_not_exists({self.name(name)})"
            case Present(name):
                return f"attribute_exists({self.name(name)})"
            case Compare(name, operator, value):
                return f"{self.name(name)} {operator} {self.value(value)}"
            case BeginsWith(name, prefix):
                return f"begins_with({self.name(name)}, {self.value(text(prefix))})"
            case Not(compared):
                return f"NOT ({self.condition(compared)})"
            case All((only,)) | AnyOf((only,)):
                return self.condition(only)  # DynamoDB refuses redundant parentheses
            case All(conditions):
                return " AND ".join(f"({self.condition(each)})" for each in conditions)
            case AnyOf(conditions):
                return " OR ".join(f"({self.condition(each)})" for each in conditions)

    def update(self, update: Update) -> str:
        """The text of an update."""
        text = "SET " + ", ".join(self._change(change) for change in update.sets) if update.sets else ""
        if update.removes:
            text += " REMOVE " + ", ".join(self.name(name) for name in update.removes)
        return text.strip()

    def name(self, name: str) -> str:
        """The placeholder of a name."""
        return self._names.setdefault(name, f"#{len(self._names)}")

    def value(self, value: AttributeValue) -> str:
        """A placeholder for a value."""
        mark = f":{len(self._values)}"
        self._values[mark] = value
        return mark

    def _change(self, change: Change) -> str:
        name = self.name(change.name)
        if isinstance(change, Set):
            return f"{name} = {self.value(change.value)}"
        if isinstance(change, Add):
            present = f"if_not_exists({name}, {self.value({'N': '0'})})"
            return f"{name} = {present} + {self.value(change.value)}"
        present = f"if_not_exists({name}, {self.value({'L': []})})"
        return f"{name} = list_append({present}, {self.value(change.value)})"


# Operations to conversations: the requests that an operation takes, and the reply that their answers are.
#
# A generator yields each request and is sent its answer. Whoever runs it carries both, in whatever way: blocking or
# not.

Answer = dict[str, Any]


def conversation(op: Op) -> Generator[DynamoRequest, Answer, Reply]:
    """Yields the requests of an operation, is sent their answers, and returns the reply."""
    if isinstance(op, BatchGet):
        return (yield from _batch(op))
    return _reply(op, (yield request_of(op)))


def _reply(op: Op, answer: Answer) -> Reply:
    match op:
        case Get():
            return Found(item=answer.get("Item"), units=_cost(answer, "ConsumedCapacity"))
        case TransactGet():
            units = _cost(answer, "Responses")
            return Together(items=tuple(each.get("Item") for each in answer["Responses"]), units=units)
        case Query(only_count=True):
            return _page(answer, "Count")
        case Query() | Scan():
            return _page(answer, "Items")
        case _:
            return Done(units=Units(write=_total(answer)))


def _page(answer: Answer, wanted: str) -> Items:
    units, last = _cost(answer, wanted), answer.get("LastEvaluatedKey")
    if wanted == "Count":
        return Items(items=(), counted=answer[wanted], last=last, units=units)
    return Items(items=tuple(answer[wanted]), last=last, units=units)


def _batch(op: BatchGet) -> Generator[DynamoRequest, Answer, Items]:
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
            return Items(items=tuple(items), units=cost)
        if not found:
            raise NotApplied("UnprocessedKeys")
        request = asked_again(unprocessed)


def _cost(answer: Answer, member: str) -> Units:
    """What a read cost. An answer without the `member` that every answer of its kind has was cut off among its headers:
    boto takes that for an answer without contents, so that what is there would look as if it were not.
    """
    if member not in answer:
        raise Lost("an answer that was cut off")
    return Units(read=_total(answer))


def _total(answer: Answer) -> float:
    consumed = answer.get("ConsumedCapacity", [])
    return float(
        sum(each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed]))
    )
