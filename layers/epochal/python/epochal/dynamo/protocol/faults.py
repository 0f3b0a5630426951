"""boto3's errors to what they mean: a reply, a failure to retry, or an error to raise.

condition failed                             Refusal, with the item that stood in the way
item too large                               Overflow
throttled, in conflict with a transaction    NotApplied; Lost where boto had tried before by itself
no connection was made                       NotApplied; Lost where boto may have tried before
time-out, cut off, internal error            Lost: it may have been applied
no such table, other keys, denied            MissingTable, WrongTable, Refused
no region, no credentials                    Misconfigured
token used for another transaction           Refusal, which says so
anything else                                InvalidRequest, with DynamoDB's words
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004  botocore's own name
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ProxyConnectionError,
)

from epochal.errors import InvalidRequest, MissingTable, Refused, WrongTable
from epochal.plan.failures import Lost, NotApplied, RequestFailure, Unreached
from epochal.plan.ops import BatchGet, Get, Op, Overflow, Query, Refusal, Reply, Scan, Transact, TransactGet
from epochal.plan.sizes import item_size
from epochal.plan.units import Units, write_units
from epochal.plan.values import Item

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
_TOO_LARGE: Final = "exceeded the maximum allowed size"

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


def reply_to(error: ClientError, op: Op) -> Reply:
    """The reply that an error means; a failure or an error of ours is raised."""
    code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    if code == "ConditionalCheckFailedException":
        blocking: Any = error.response.get("Item")
        return _refusal((blocking,), (True,), error, factor=1)
    if code == "IdempotentParameterMismatchException" and isinstance(op, Transact):
        nothing = (None,) * len(op.writes)
        return Refusal(items=nothing, failed=(False,) * len(op.writes), ambiguous=True, reused=True)
    if code == "TransactionCanceledException":
        return _cancelled(error, op)
    if code == "ValidationException" and _TOO_LARGE in message:
        return Overflow()
    if code == "ValidationException" and any(said in message for said in _OTHER_KEYS):
        raise WrongTable(_table(op)) from error
    if code == "ResourceNotFoundException":
        raise MissingTable(_table(op)) from error
    if code in _DENIED:
        from epochal.dynamo.aws_configuration import advised  # noqa: PLC0415  rarely needed

        raise Refused(error.operation_name, advised(code, message)) from error
    if code in _THROTTLED:
        raise _throttled(code, error) from error
    # Without a body, boto makes do with the status for a code: the answer was cut off.
    if code in _UNCERTAIN or code.isdigit() or _status(error) >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise Lost(code) from error
    raise InvalidRequest(error.operation_name, code, message) from error


def failure_of(error: BotoCoreError, *, retries: bool, answered: bool = True) -> RequestFailure:
    """The failure that a broken connection means; for any other error of boto ours is raised.

    Args:
        retries: the client retries by itself, so an earlier try may have gone further than the last.
        answered: the address has answered this process before, so it is the right one.
    """
    from epochal.dynamo.aws_configuration import address_of, cause_of, meaning_of  # noqa: PLC0415  rarely needed

    unmade = isinstance(error, EndpointConnectionError | ConnectTimeoutError | ProxyConnectionError)
    if unmade and not retries:
        if answered or isinstance(error, ConnectTimeoutError):
            return NotApplied(cause_of(error))
        return Unreached(f"nothing has ever answered at {address_of(error)}: is the address right?")
    if isinstance(error, ConnectionError | HTTPClientError):
        return Lost(cause_of(error))
    raise meaning_of(error) from error


def _throttled(cause: str, error: ClientError) -> RequestFailure:
    return Lost(cause) if _retried(error) else NotApplied(cause)


def _retried(error: ClientError) -> bool:
    """Whether boto has tried before by itself: that try may have been applied, whatever became of this one."""
    return int(error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0)) > 0


def _cancelled(error: ClientError, op: Op) -> Reply:
    reasons: Any = error.response.get("CancellationReasons", [])
    codes = [reason.get("Code", "None") for reason in reasons]
    failed = tuple(code == "ConditionalCheckFailed" for code in codes)
    if any(failed):
        items = [reason.get("Item") if bad else None for reason, bad in zip(reasons, failed, strict=True)]
        return _refusal(tuple(items), failed, error, factor=2)
    if any(_TOO_LARGE in reason.get("Message", "") for reason in reasons):
        return Overflow()
    if any(said in reason.get("Message", "") for reason in reasons for said in _OTHER_KEYS):
        raise WrongTable(_table(op)) from error
    if any(
        code in ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded") for code in codes
    ):
        raise _throttled(", ".join(sorted(set(codes) - {"None"})), error) from error
    told = "; ".join(
        f"{reason['Code']}: {reason.get('Message', '')}" for reason in reasons if "Message" in reason
    )
    raise InvalidRequest(error.operation_name, error.response["Error"]["Code"], told) from error


def _refusal(
    items: tuple[Item | None, ...], failed: tuple[bool, ...], error: ClientError, *, factor: int
) -> Refusal:
    """DynamoDB does not say what a refusal cost; by its rules it is the write of what stood there."""
    found = tuple(item or None for item in items)
    cost = sum(write_units(item_size(item)) if item else 1 for item in found)
    return Refusal(items=found, failed=failed, ambiguous=_retried(error), units=Units(write=factor * cost))


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


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
