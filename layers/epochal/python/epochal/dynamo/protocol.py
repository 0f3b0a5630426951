"""DynamoDB's JSON protocol, pure: operations to requests, requests to bytes, and what is answered to what it means.

An operation's names and parameters are as DynamoDB's API reference has them. One operation is one request, a BatchGet
at least one.
"""

from __future__ import annotations

import json
import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Generator, Mapping
from http import HTTPStatus
from itertools import compress
from typing import Any, Final
from zlib import crc32

from epochal.errors import InvalidRequest, MissingTable, Refused, WrongTable
from epochal.lazy_dataclasses import dataclass, replace
from epochal.plan import ops
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


def request_of(op: ops.Op) -> DynamoRequest:
    """The request that an operation is, or begins with."""
    match op:
        case ops.Transact():
            return DynamoRequest("TransactWriteItems", _transaction(op))
        case ops.Put() | ops.Update() | ops.Delete():
            return DynamoRequest(f"{type(op).__name__}Item", {**_write(op), **_MEASURED})
        case ops.Check():
            raise TypeError("a Check stands only in a transaction")
        case _:
            return _read(op)


def _read(op: ops.Get | ops.BatchGet | ops.TransactGet | ops.Query | ops.Scan) -> DynamoRequest:
    match op:
        case ops.Get():
            key = {"TableName": op.table, "Key": op.key, "ConsistentRead": op.consistent}
            return DynamoRequest("GetItem", {**key, **_MEASURED})
        case ops.BatchGet():
            return asked_again({op.table: {"Keys": list(op.keys), "ConsistentRead": op.consistent}})
        case ops.TransactGet():
            wanted = [{"Get": {"TableName": table, "Key": key}} for table, key in op.keys]
            return DynamoRequest("TransactGetItems", {"TransactItems": wanted, **_MEASURED})
        case ops.Query():
            return DynamoRequest("Query", _query(op))
        case ops.Scan():
            return DynamoRequest("Scan", _scan(op))


def asked_again(unprocessed: dict[str, Any]) -> DynamoRequest:
    """The request for the items of these keys, as an answer names those that it left out."""
    return DynamoRequest("BatchGetItem", {"RequestItems": unprocessed, **_MEASURED})


def _query(op: ops.Query) -> dict[str, Any]:
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


def _scan(op: ops.Scan) -> dict[str, Any]:
    segment, total = op.segment
    expressions = Expressions()
    where = {} if op.where is None else {"FilterExpression": expressions.condition(op.where)}
    return {"Segment": segment, "TotalSegments": total, **where, **_paging(op), **expressions.parameters()}


def _paging(op: ops.Query | ops.Scan) -> dict[str, Any]:
    return {
        "TableName": op.table,
        "ConsistentRead": op.consistent,
        **({"IndexName": op.index} if op.index is not None else {}),
        **({"Limit": op.limit} if op.limit is not None else {}),
        **({"ExclusiveStartKey": op.after} if op.after is not None else {}),
        **_MEASURED,
    }


def _transaction(op: ops.Transact) -> dict[str, Any]:
    kinds = {ops.Put: "Put", ops.Update: "Update", ops.Delete: "Delete", ops.Check: "ConditionCheck"}
    return {
        "TransactItems": [
            {kinds[type(write)]: _write(write, shown=op.shows(position))}
            for position, write in enumerate(op.writes)
        ],
        **({"ClientRequestToken": op.token} if op.token is not None else {}),
        **_MEASURED,
    }


def _write(op: ops.TransactionWrite, *, shown: bool = True) -> dict[str, Any]:
    expressions = Expressions()
    request: dict[str, Any] = {"TableName": op.table}
    if isinstance(op, ops.Put):
        request["Item"] = op.item
    else:
        request["Key"] = op.key
    if isinstance(op, ops.Update):
        request["UpdateExpression"] = expressions.update(op)
    request.update(_condition(op.condition, expressions, shown=shown))
    request.update(expressions.parameters())
    return request


def _condition(condition: ops.Condition | None, expressions: Expressions, *, shown: bool) -> dict[str, str]:
    if condition is None:
        return {}
    written = {"ConditionExpression": expressions.condition(condition)}
    # The item that stood in the way comes back with the refusal: a conflict costs no second read.
    return {**written, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"} if shown else written


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
        names = {mark: name for name, mark in self._names.items()}
        found = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": self._values}
        return {name: marks for name, marks in found.items() if marks}

    def condition(self, condition: ops.Condition) -> str:
        """The text of a condition."""
        match condition:
            case ops.Absent(name):
                return f"attribute_not_exists({self.name(name)})"
            case ops.Present(name):
                return f"attribute_exists({self.name(name)})"
            case ops.Compare(name, operator, value):
                return f"{self.name(name)} {operator} {self.value(value)}"
            case ops.BeginsWith(name, prefix):
                return f"begins_with({self.name(name)}, {self.value(text(prefix))})"
            case ops.Not(compared):
                return f"NOT ({self.condition(compared)})"
            case ops.All((only,)) | ops.AnyOf((only,)):
                return self.condition(only)  # DynamoDB refuses redundant parentheses
            case ops.All(conditions):
                return " AND ".join(f"({self.condition(each)})" for each in conditions)
            case ops.AnyOf(conditions):
                return " OR ".join(f"({self.condition(each)})" for each in conditions)

    def update(self, update: ops.Update) -> str:
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

    def _change(self, change: ops.Change) -> str:
        name = self.name(change.name)
        if isinstance(change, ops.Set):
            return f"{name} = {self.value(change.value)}"
        if isinstance(change, ops.Add):
            present = f"if_not_exists({name}, {self.value({'N': '0'})})"
            return f"{name} = {present} + {self.value(change.value)}"
        present = f"if_not_exists({name}, {self.value({'L': []})})"
        return f"{name} = list_append({present}, {self.value(change.value)})"


# Operations to conversations: the requests that an operation takes, and the reply that their answers are.
#
# A generator yields each request and is sent its answer. Whoever runs it carries both, in whatever way: blocking or
# not.

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
            raise ops.NotApplied("UnprocessedKeys")
        request = asked_again(unprocessed)


def _cost(answer: Answer, member: str) -> Units:
    """What a read cost. An answer without the `member` that every answer of its kind has was cut off among its headers:
    boto takes that for an answer without contents, so that what is there would look as if it were not.
    """
    if member not in answer:
        raise ops.Lost("an answer that was cut off")
    return Units(read=_total(answer))


def _total(answer: Answer) -> float:
    consumed = answer.get("ConsumedCapacity", [])
    return float(
        sum(each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed]))
    )


# What DynamoDB answers in place of a result, to what it means: a reply, a failure to retry, or an error to raise.
#
# condition failed                             Refusal, with the item that stood in the way
# item too large                               Overflow
# items too large for the response             Oversized
# throttled, in conflict with a transaction    NotApplied; Lost where the carrier had tried before by itself
# cut off, internal error                      Lost: it may have been applied
# no such table, other keys                    MissingTable, WrongTable
# token used for another transaction           Refusal, which says so
# denied                                       Refused; Lost for a write that the carrier had tried before
# anything else                                InvalidRequest, with DynamoDB's words; likewise Lost


class DynamoFault(Exception):
    """What DynamoDB answered in place of a result.

    Attributes:
        operation: that was asked for, as DynamoDB names it.
        code: the error's name, without its namespace; the status where the answer has none.
        status: of HTTP.
        members: of the answer, with their bytes: `Item`, `CancellationReasons`.
        retried: the carrier had tried before by itself: that try may have been applied, whatever became of this one.
    """

    def __init__(
        self,
        operation: str,
        code: str,
        message: str = "",
        *,
        status: int,
        members: Mapping[str, Any] | None = None,
        retried: bool = False,
    ) -> None:
        super().__init__(f"{operation}: {code}: {message}")
        self.operation = operation
        self.code = code
        self.message = message
        self.status = status
        self.members = members or {}
        self.retried = retried


_THROTTLED: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "Throttling",
        "RequestLimitExceeded",
        "TransactionConflictException",
        "ReplicatedWriteConflictException",
        "LimitExceededException",
    }
)
_UNCERTAIN: Final = frozenset(
    {"InternalServerError", "InternalFailure", "ServiceUnavailable", "TransactionInProgressException"}
)
DENIED: Final = frozenset(
    {
        "AccessDeniedException",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "ExpiredTokenException",
    }
)
_TOO_LARGE: Final = re.compile("Item size.*exceeded the maximum allowed size")
"""Of an expression DynamoDB says nearly the same."""

_OVERSIZED: Final = "Payload in response is too large"
"""What DynamoDB Local says where a response has no room for the items of a refused transaction or a TransactGet."""

_OTHER_KEYS: Final = (
    "does not match the schema",
    "missed key schema element",
    "Missing the key",
    "One of the required keys was not given a value",
    "does not have the specified index",
    "Type mismatch for key",
    "not valid schema",
    "number of conditions on the keys is invalid",
)
"""What DynamoDB and its stand-ins say of an operation on a table with other keys or indexes."""


def reply_to(fault: DynamoFault, op: ops.Op) -> ops.Reply:
    """The reply that a fault means; a failure or an error of ours is raised."""
    code, message = fault.code, fault.message
    if code == "ConditionalCheckFailedException":
        blocking: Any = fault.members.get("Item")
        return _refusal((blocking,), (True,), fault, factor=1)
    if code == "IdempotentParameterMismatchException" and isinstance(op, ops.Transact):
        nothing = (None,) * len(op.writes)
        return ops.Refusal(items=nothing, failed=(False,) * len(op.writes), ambiguous=True, reused=True)
    if code == "TransactionCanceledException":
        return _cancelled(fault, op)
    if code == "ValidationException" and _TOO_LARGE.search(message):
        return ops.Overflow()
    if _OVERSIZED in message and isinstance(op, ops.Transact | ops.TransactGet) and op.divisible:
        return ops.Oversized(ambiguous=fault.retried)
    raise _error_of(fault, op) from fault


def _error_of(fault: DynamoFault, op: ops.Op) -> Exception:
    code, message = fault.code, fault.message
    if code == "ValidationException" and any(said in message for said in _OTHER_KEYS):
        return WrongTable(_table(op))
    if code == "ResourceNotFoundException":
        return MissingTable(_table(op))
    if code in _THROTTLED:
        return _throttled(code, fault)
    # Without a body, the status stands for the code: the answer was cut off.
    if code in _UNCERTAIN or code.isdigit() or fault.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ops.Lost(code)
    if fault.retried and isinstance(op, ops.Put | ops.Update | ops.Delete | ops.Transact):
        return ops.Lost(code)  # what is said of the carrier's last try is not true of those before
    if code in DENIED:
        return Refused(fault.operation, advised(code, message))
    return InvalidRequest(fault.operation, code, message)


def _throttled(cause: str, fault: DynamoFault) -> ops.RequestFailure:
    return ops.Lost(cause) if fault.retried else ops.NotApplied(cause)


def _cancelled(fault: DynamoFault, op: ops.Op) -> ops.Reply:
    reasons: Any = fault.members.get("CancellationReasons", [])
    codes = [reason.get("Code", "None") for reason in reasons]
    failed = tuple(code == "ConditionalCheckFailed" for code in codes)
    if any(failed):
        items = [reason.get("Item") if bad else None for reason, bad in zip(reasons, failed, strict=True)]
        return _refusal(tuple(items), failed, fault, factor=2)
    over = tuple(bool(_TOO_LARGE.search(reason.get("Message", ""))) for reason in reasons)
    if any(over):
        return ops.Overflow(over=over)
    keys = [any(said in reason.get("Message", "") for said in _OTHER_KEYS) for reason in reasons]
    if any(keys):
        if isinstance(op, ops.Transact):
            op = replace(op, writes=tuple(compress(op.writes, keys)))
        raise WrongTable(_table(op)) from fault
    if any(
        code in ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded") for code in codes
    ):
        raise _throttled(", ".join(sorted(set(codes) - {"None"})), fault) from fault
    if fault.retried:
        raise ops.Lost(fault.code) from fault
    told = "; ".join(
        f"{reason['Code']}: {reason.get('Message', '')}" for reason in reasons if "Message" in reason
    )
    raise InvalidRequest(fault.operation, fault.code, told) from fault


def _refusal(
    items: tuple[Item | None, ...], failed: tuple[bool, ...], fault: DynamoFault, *, factor: int
) -> ops.Refusal:
    found = tuple(item or None for item in items)
    cost = ops.refusal_units(found, factor)
    return ops.Refusal(items=found, failed=failed, ambiguous=fault.retried, units=cost)


def _table(op: ops.Op) -> str:
    return ", ".join(sorted(ops.tables_of(op)))


# Requests to headers and bytes, statuses, headers and bytes to answers: DynamoDB's JSON protocol, version 1.0.
#
# An answer has the same shape on the wire as in boto3, but for bytes, which are base64. `json` makes both with a
# hook. botocore asks every attribute value for each of the ten members that it might have, which is most of what a
# read costs.

READS: Final = ("BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems")

_TARGET: Final = "DynamoDB_20120810"
MEDIA: Final = "application/x-amz-json-1.0"
"""The type of a body."""


def target_of(request: DynamoRequest) -> str:
    """What is asked for, as a header tells it."""
    return f"{_TARGET}.{request.operation}"


def body_of(request: DynamoRequest) -> bytes:
    """The body of a request."""
    return json.dumps(request.parameters, default=_base64, separators=(",", ":")).encode()


def answer_of(request: DynamoRequest, status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """What was answered.

    Args:
        headers: by lower-case name, or by names that compare in any case.

    Raises:
        DynamoFault: what was answered is no result.
        Lost: the answer was damaged on its way, or is not DynamoDB's.
    """
    checksum = headers.get("x-amz-crc32")
    if checksum is not None and checksum != str(crc32(body)):
        raise ops.Lost("an answer that was damaged on its way")
    if status >= HTTPStatus.MOVED_PERMANENTLY:
        raise _fault(request, status, body)
    if request.operation in READS:
        return parsed(body)
    return of_a_write(_json(body), headers)


def of_a_write(answer: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    """The answer to a write, if it is DynamoDB's: it has what was asked for, the cost, or the id of the request.

    Something between may say that all is well, as a proxy that wants to be logged in to, and the write was not made. Of
    DynamoDB's own an answer that cannot be read says no less than one without contents: the write was made.
    """
    if "ConsumedCapacity" not in answer and "x-amzn-requestid" not in headers:
        raise ops.Lost("an answer that is not DynamoDB's")
    return answer


def parsed(body: bytes) -> dict[str, Any]:
    """A JSON object with its bytes; an empty one for what is none."""
    return _json(body, object_hook=_with_bytes)


def _json(body: bytes, **how: Any) -> dict[str, Any]:
    try:
        found = json.loads(body, **how)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _fault(request: DynamoRequest, status: int, body: bytes) -> DynamoFault:
    members = parsed(body)
    code = str(members.get("__type", status)).partition(":")[0].rpartition("#")[2]
    message = str(members.get("message", members.get("Message", "")))
    return DynamoFault(request.operation, code, message, status=status, members=members)


def _base64(value: bytes) -> str:
    return b2a_base64(value, newline=False).decode()


def _with_bytes(found: dict[str, Any]) -> dict[str, Any]:
    """A JSON object, its texts as bytes if it is a binary value. An item may have attributes of these names, and a
    table may be called so; but what they have is not text.
    """
    if "B" in found and isinstance(found["B"], str):
        found["B"] = a2b_base64(found["B"])
    elif "BS" in found and isinstance(found["BS"], list):
        found["BS"] = [a2b_base64(each) if isinstance(each, str) else each for each in found["BS"]]
    return found


# Why AWS denies a request, with what to do about it where the credentials themselves are at fault.

LOG_IN: Final = "log in again, as with `aws sso login`"

_EXPIRED: Final = frozenset(
    {"ExpiredTokenException", "ExpiredToken", "RequestExpired", "TokenRefreshRequired"}
)
_UNKNOWN: Final = frozenset({"UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId"})


def advised(code: str, message: str) -> str:
    """Why a request was denied, and what to do where the credentials themselves are at fault."""
    if code in _EXPIRED:
        return f"{message or code} ({LOG_IN})"
    if code in _UNKNOWN:
        return f"{message or code} (are AWS_PROFILE and the region those of the account that is meant?)"
    return message or code
