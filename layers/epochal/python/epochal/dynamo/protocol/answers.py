"""What DynamoDB answers in place of a result, to what it means: a reply, a failure to retry, or an error to raise.

condition failed                             Refusal, with the item that stood in the way
item too large                               Overflow
throttled, in conflict with a transaction    NotApplied; Lost where the carrier had tried before by itself
cut off, internal error                      Lost: it may have been applied
no such table, other keys                    MissingTable, WrongTable
token used for another transaction           Refusal, which says so
denied                                       Refused; Lost for a write that the carrier had tried before
anything else                                InvalidRequest, with DynamoDB's words; likewise Lost
"""

from __future__ import annotations

import json
import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from zlib import crc32

from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.errors import InvalidRequest, MissingTable, Refused, WrongTable
from epochal.plan.ops import (
    BatchGet,
    Delete,
    Get,
    Lost,
    NotApplied,
    Op,
    Overflow,
    Put,
    Query,
    Refusal,
    Reply,
    RequestFailure,
    Scan,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import Item, Units, item_size, write_units


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
_DENIED: Final = frozenset(
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


def reply_to(fault: DynamoFault, op: Op) -> Reply:
    """The reply that a fault means; a failure or an error of ours is raised."""
    code, message = fault.code, fault.message
    if code == "ConditionalCheckFailedException":
        blocking: Any = fault.members.get("Item")
        return _refusal((blocking,), (True,), fault, factor=1)
    if code == "IdempotentParameterMismatchException" and isinstance(op, Transact):
        nothing = (None,) * len(op.writes)
        return Refusal(items=nothing, failed=(False,) * len(op.writes), ambiguous=True, reused=True)
    if code == "TransactionCanceledException":
        return _cancelled(fault, op)
    if code == "ValidationException" and _TOO_LARGE.search(message):
        return Overflow()
    raise _error_of(fault, op) from fault


def _error_of(fault: DynamoFault, op: Op) -> Exception:
    code, message = fault.code, fault.message
    if code == "ValidationException" and any(said in message for said in _OTHER_KEYS):
        return WrongTable(_table(op))
    if code == "ResourceNotFoundException":
        return MissingTable(_table(op))
    if code in _THROTTLED:
        return _throttled(code, fault)
    # Without a body, the status stands for the code: the answer was cut off.
    if code in _UNCERTAIN or code.isdigit() or fault.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Lost(code)
    if fault.retried and isinstance(op, Put | Update | Delete | Transact):
        return Lost(code)  # what is said of the carrier's last try is not true of those before
    if code in _DENIED:
        return Refused(fault.operation, advised(code, message))
    return InvalidRequest(fault.operation, code, message)


def _throttled(cause: str, fault: DynamoFault) -> RequestFailure:
    return Lost(cause) if fault.retried else NotApplied(cause)


def _cancelled(fault: DynamoFault, op: Op) -> Reply:
    reasons: Any = fault.members.get("CancellationReasons", [])
    codes = [reason.get("Code", "None") for reason in reasons]
    failed = tuple(code == "ConditionalCheckFailed" for code in codes)
    if any(failed):
        items = [reason.get("Item") if bad else None for reason, bad in zip(reasons, failed, strict=True)]
        return _refusal(tuple(items), failed, fault, factor=2)
    over = tuple(bool(_TOO_LARGE.search(reason.get("Message", ""))) for reason in reasons)
    if any(over):
        return Overflow(over=over)
    if any(said in reason.get("Message", "") for reason in reasons for said in _OTHER_KEYS):
        raise WrongTable(_table(op)) from fault
    if any(
        code in ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded") for code in codes
    ):
        raise _throttled(", ".join(sorted(set(codes) - {"None"})), fault) from fault
    if fault.retried:
        raise Lost(fault.code) from fault
    told = "; ".join(
        f"{reason['Code']}: {reason.get('Message', '')}" for reason in reasons if "Message" in reason
    )
    raise InvalidRequest(fault.operation, fault.code, told) from fault


def _refusal(
    items: tuple[Item | None, ...], failed: tuple[bool, ...], fault: DynamoFault, *, factor: int
) -> Refusal:
    """DynamoDB does not say what a refusal cost; by its rules it is the write of what stood there."""
    found = tuple(item or None for item in items)
    cost = sum(write_units(item_size(item)) if item else 1 for item in found)
    return Refusal(items=found, failed=failed, ambiguous=fault.retried, units=Units(write=factor * cost))


def _table(op: Op) -> str:
    match op:
        case Transact(writes=writes):
            return ", ".join(sorted({write.table for write in writes}))
        case TransactGet(keys=keys):
            return ", ".join(sorted({table for table, _ in keys}))
        case Get(table=table) | BatchGet(table=table) | Query(table=table) | Scan(table=table):
            return table
        case _:
            return op.table


# Requests to headers and bytes, statuses, headers and bytes to answers: DynamoDB's JSON protocol, version 1.0.
#
# An answer has the same shape on the wire as in boto3, but for bytes, which are base64. `json` makes both with a
# hook. botocore asks every attribute value for each of the ten members that it might have, which is most of what a
# read costs.

READS: Final = ("BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems")

_TARGET: Final = "DynamoDB_20120810"
_MEDIA: Final = "application/x-amz-json-1.0"


def headers_of(request: DynamoRequest) -> dict[str, str]:
    """The headers that tell what is asked for."""
    return {"X-Amz-Target": f"{_TARGET}.{request.operation}", "Content-Type": _MEDIA}


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
        raise Lost("an answer that was damaged on its way")
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
        raise Lost("an answer that is not DynamoDB's")
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
