"""Requests to headers and bytes, and statuses, headers and bytes to answers: DynamoDB's JSON protocol, version 1.0.

An answer has the same shape on the wire as in boto3, but for bytes, which are base64. `json` makes both with a hook.
botocore asks every attribute value for each of the ten members that it might have, which is most of what a read costs.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from zlib import crc32

from epochal.dynamo.protocol.faults import DynamoFault
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.plan import failures

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


def read_answer(
    request: DynamoRequest, status: int, headers: Mapping[str, str], body: bytes
) -> dict[str, Any]:
    """What was answered.

    Args:
        headers: by lower-case name, or by names that compare in any case.

    Raises:
        DynamoFault: what was answered is no result.
        Lost: the answer was damaged on its way, or is not DynamoDB's.
    """
    checksum = headers.get("x-amz-crc32")
    if checksum is not None and checksum != str(crc32(body)):
        raise failures.Lost("an answer that was damaged on its way")
    if status >= HTTPStatus.MOVED_PERMANENTLY:
        raise _fault(request, status, body)
    if request.operation in READS:
        return parse_object(body)
    return check_write_answer(_json(body), headers)


def check_write_answer(answer: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    """The answer to a write, if it is DynamoDB's: it has what was asked for, the cost, or the id of the request.

    Something between may say that all is well, as a proxy that wants to be logged in to, and the write was not made. Of
    DynamoDB's own an answer that cannot be read says no less than one without contents: the write was made.
    """
    if "ConsumedCapacity" not in answer and "x-amzn-requestid" not in headers:
        raise failures.Lost("an answer that is not DynamoDB's")
    return answer


def parse_object(body: bytes) -> dict[str, Any]:
    """A JSON object with its bytes; an empty one for what is none."""
    return _json(body, object_hook=_with_bytes)


def _json(body: bytes, **how: Any) -> dict[str, Any]:
    try:
        value = json.loads(body, **how)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _fault(request: DynamoRequest, status: int, body: bytes) -> DynamoFault:
    members = parse_object(body)
    code = str(members.get("__type", status)).partition(":")[0].rpartition("#")[2]
    message = str(members.get("message", members.get("Message", "")))
    return DynamoFault(request.operation, code, message, status=status, members=members)


def _base64(value: bytes) -> str:
    return b2a_base64(value, newline=False).decode()


def _with_bytes(members: dict[str, Any]) -> dict[str, Any]:
    """A JSON object, its texts as bytes if it is a binary value. An item may have attributes of these names, and a
    table may be called so; but what they have is not text.
    """
    if "B" in members and isinstance(members["B"], str):
        members["B"] = a2b_base64(members["B"])
    elif "BS" in members and isinstance(members["BS"], list):
        members["BS"] = [
            a2b_base64(element) if isinstance(element, str) else element for element in members["BS"]
        ]
    return members
