"""Writes requests as headers and bytes, and parses answers: DynamoDB's JSON protocol, version 1.0.

An answer has the same shape as in boto3, except that bytes are base64 on the wire; a hook of `json` decodes them.
botocore checks every attribute value for each of its ten possible members, which is most of what a read costs.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from typing import Any, Final
from zlib import crc32

from epochal.dynamo.protocol.faults import DynamoFault
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.plan import failures

READS: Final = ("BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems")
WRITES: Final = ("DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem")

_TARGET: Final = "DynamoDB_20120810"
MEDIA: Final = "application/x-amz-json-1.0"

_REDIRECTION: Final = 301
"""Lowest HTTP status of a response that is no answer: a redirection or an error."""
"""The type of a body."""


def target_of(request: DynamoRequest) -> str:
    """Return the value of the header that names the operation."""
    return f"{_TARGET}.{request.operation}"


def body_of(request: DynamoRequest) -> bytes:
    """Encode the body of a request as JSON."""
    return _ENCODER.encode(request.parameters).encode()


def read_answer(
    request: DynamoRequest, status: int, headers: Mapping[str, str], body: bytes
) -> dict[str, Any]:
    """Return DynamoDB's answer, parsed; raise `Lost` if it is damaged, `DynamoFault` if it is an error.

    Args:
        headers: by lower-case name, or by names that compare in any case.

    Raises:
        DynamoFault: what was answered is no result.
        Lost: the answer was damaged on its way, or is not DynamoDB's.
    """
    checksum = headers.get("x-amz-crc32")
    if checksum is not None and checksum != str(crc32(body)):
        raise failures.Lost("an answer that was damaged on its way")
    if status >= _REDIRECTION:
        raise _fault(request, status, body)
    answer = parse_object(body) if request.operation in READS else _parse(body, _PLAIN)
    return check_answer(request.operation, answer, headers)


def check_answer(operation: str, answer: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    """Return an answer of success if it is DynamoDB's and names no error; raise `Lost` otherwise.

    An answer that reports both success and failure of a request is evidence of neither.
    """
    if "__type" in answer:
        raise failures.Lost("an answer of success that names an error")
    return answer if operation in READS else check_write_answer(answer, headers)


def check_write_answer(answer: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the answer to a write if it is DynamoDB's; raise `Lost` if something else answered.

    A proxy that wants a login may answer 200 although the write was not applied. DynamoDB's own answers have the cost
    or the id of the request. An unreadable answer of DynamoDB means the same as one without contents: the write was
    applied.
    """
    if "ConsumedCapacity" not in answer and "x-amzn-requestid" not in headers:
        raise failures.Lost("an answer that is not DynamoDB's")
    return answer


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object with binary values as bytes; return an empty one if the body is not an object."""
    return _parse(body, _WITH_BYTES)


def _parse(body: bytes, decoder: json.JSONDecoder) -> dict[str, Any]:
    """Parse a JSON object in UTF-8; return an empty one if the body is not an object."""
    try:
        value = decoder.decode(body.decode("utf-8", "surrogatepass"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _fault(request: DynamoRequest, status: int, body: bytes) -> DynamoFault:
    """Convert an error answer into a `DynamoFault`."""
    members = parse_object(body)
    code = str(members.get("__type", status)).partition(":")[0].rpartition("#")[2]
    message = str(members.get("message", members.get("Message", "")))
    return DynamoFault(request.operation, code, message, status=status, members=members)


def _base64(value: bytes) -> str:
    """Encode bytes in base64."""
    return b2a_base64(value, newline=False).decode()


_ENCODER: Final = json.JSONEncoder(default=_base64, separators=(",", ":"), check_circular=False)
"""Encodes the parameters of requests, which never contain themselves."""


def _with_bytes(members: dict[str, Any]) -> dict[str, Any]:
    """Decode the base64 texts of a binary value; other JSON objects stay as they are.

    Items may have attributes called `B`, and a table may be called so, but their values are not text.
    """
    if "B" in members and isinstance(members["B"], str):
        members["B"] = a2b_base64(members["B"])
    elif "BS" in members and isinstance(members["BS"], list):
        members["BS"] = [
            a2b_base64(element) if isinstance(element, str) else element for element in members["BS"]
        ]
    return members


_PLAIN: Final = json.JSONDecoder()
_WITH_BYTES: Final = json.JSONDecoder(object_hook=_with_bytes)
