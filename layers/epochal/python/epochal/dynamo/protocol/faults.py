"""Decides what an error answer of DynamoDB means: a reply, a failure to retry, or an error to raise.

An answer, and what `reply_to` makes of it:

    condition failed                             Refusal, with the item that stood in the way
    item too large                               Overflow
    items too large for the response             Oversized
    throttled, in conflict with a transaction    RequestNotApplied; Lost where the carrier had tried before by itself
    cut off, internal error                      Lost: it may have been applied
    no such table, other keys                    MissingTable, WrongTable
    token used for another transaction           Refusal, which says so
    denied                                       Refused; Lost for a write that the carrier had tried before
    anything else                                InvalidRequest, with DynamoDB's words; likewise Lost
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import compress
from typing import Any, Final

from epochal.dynamo.protocol.denials import explain_denial
from epochal.errors import InvalidRequest, MissingTable, Refused, WrongTable
from epochal.lazy_dataclasses import replace
from epochal.plan import costs, failures, ops
from epochal.plan.values import Item


class DynamoFault(Exception):
    """An error answer of DynamoDB.

    Attributes:
        operation: operation that was requested, by DynamoDB's name.
        code: name of the error without its namespace; the HTTP status if the answer has none.
        message: DynamoDB's words.
        status: HTTP status.
        members: members of the answer, with binary values as bytes: `Item`, `CancellationReasons`.
        retried: whether the carrier had already tried by itself. That attempt may have been applied, whatever became of
            this one.
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
        """Keep the parts of the answer, and form the error's text from operation, code and message."""
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
_SERVER_ERROR: Final = 500
"""Lowest HTTP status of an error on the side of DynamoDB."""

_TOO_LARGE: Final = re.compile("Item size.*exceeded the maximum allowed size")
"""Message about an item that is too large. The one about an expression is similar, and must not match."""

_OVERSIZED: Final = "Payload in response is too large"
"""Message of DynamoDB Local if a response has no room for the items of a refused transaction or a TransactGet."""

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
"""Messages of DynamoDB and its stand-ins about an operation on a table with other keys or indexes."""


def reply_to(fault: DynamoFault, op: ops.Op) -> ops.Reply:
    """Return the reply that an error answer means, such as a refusal; raise any other failure or error."""
    code, message = fault.code, fault.message
    if code == "ConditionalCheckFailedException":
        blocking: Any = fault.members.get("Item")
        return _refusal_with((blocking,), (True,), fault, factor=1)
    if code == "IdempotentParameterMismatchException" and isinstance(op, ops.Transact):
        nothing = (None,) * len(op.writes)
        return ops.Refusal(items=nothing, failed=(False,) * len(op.writes), ambiguous=True, reused=True)
    if code == "TransactionCanceledException":
        return _read_cancellation(fault, op)
    if code == "ValidationException" and _TOO_LARGE.search(message):
        return ops.Overflow()
    if _OVERSIZED in message and isinstance(op, ops.Transact | ops.TransactGet) and op.divisible:
        return ops.Oversized(ambiguous=fault.retried)
    raise _error_for(fault, op) from fault


def _error_for(fault: DynamoFault, op: ops.Op) -> Exception:
    """Choose the exception for an error answer, by code, message, status and whether it was retried."""
    code, message = fault.code, fault.message
    if code == "ValidationException" and any(phrase in message for phrase in _OTHER_KEYS):
        return WrongTable(_table(op))
    if code == "ResourceNotFoundException":
        return MissingTable(_table(op))
    if code in _THROTTLED:
        return _throttling_failure(code, fault)
    # Without a body, the status stands for the code: the answer was cut off.
    if code in _UNCERTAIN or code.isdigit() or fault.status >= _SERVER_ERROR:
        return failures.Lost(code)
    if fault.retried and isinstance(op, ops.Put | ops.Update | ops.Delete | ops.Transact):
        return failures.Lost(code)  # what is said of the carrier's last try is not true of those before
    if code in DENIED:
        return Refused(fault.operation, explain_denial(code, message))
    return InvalidRequest(fault.operation, code, message)


def _throttling_failure(cause: str, fault: DynamoFault) -> failures.RequestFailure:
    """Return the failure of a throttled request: lost if the carrier had retried, else not applied."""
    return failures.Lost(cause) if fault.retried else failures.RequestNotApplied(cause)


def _read_cancellation(fault: DynamoFault, op: ops.Op) -> ops.Reply:
    """Return the reply that a cancelled transaction means, by the reasons; raise if it is an error."""
    reasons: Any = fault.members.get("CancellationReasons", [])
    codes = [reason.get("Code", "None") for reason in reasons]
    failed = tuple(code == "ConditionalCheckFailed" for code in codes)
    if any(failed):
        items = [reason.get("Item") if bad else None for reason, bad in zip(reasons, failed, strict=True)]
        return _refusal_with(tuple(items), failed, fault, factor=2)
    over = tuple(bool(_TOO_LARGE.search(reason.get("Message", ""))) for reason in reasons)
    if any(over):
        return ops.Overflow(over=over)
    keys = [any(phrase in reason.get("Message", "") for phrase in _OTHER_KEYS) for reason in reasons]
    if any(keys):
        if isinstance(op, ops.Transact):
            op = replace(op, writes=tuple(compress(op.writes, keys)))
        raise WrongTable(_table(op)) from fault
    if any(
        code in ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded") for code in codes
    ):
        raise _throttling_failure(", ".join(sorted(set(codes) - {"None"})), fault) from fault
    if fault.retried:
        raise failures.Lost(fault.code) from fault
    messages = "; ".join(
        f"{reason['Code']}: {reason.get('Message', '')}" for reason in reasons if "Message" in reason
    )
    raise InvalidRequest(fault.operation, fault.code, messages) from fault


def _refusal_with(
    items: tuple[Item | None, ...], failed: tuple[bool, ...], fault: DynamoFault, *, factor: int
) -> ops.Refusal:
    """Build a refusal with the items that failed conditions, and the units that it cost."""
    blocking = tuple(item or None for item in items)
    cost = costs.refusal_units(blocking, factor)
    return ops.Refusal(items=blocking, failed=failed, ambiguous=fault.retried, units=cost)


def _table(op: ops.Op) -> str:
    """Return the names of an operation's tables, joined by commas."""
    return ", ".join(sorted(ops.tables_of(op)))
