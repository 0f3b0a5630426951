"""Parses answers to reads, four times as fast as botocore does.

An answer has the same shape on the wire as in boto3, but for bytes, which are base64. botocore asks each attribute
value for each of the ten members that it might have, which is most of what reading costs. So an answer is taken whole
at botocore's event `before-parse`, which leaves botocore nothing to parse. It still parses errors, and what is no JSON.
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from http import HTTPStatus
from typing import Any, Final

READS: Final = ("BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems")


def parse_reads(client: Any) -> None:
    """Have a client's reads parsed here. Its callers see no difference. Asked for twice, it is done once."""
    for operation in READS:
        event = f"before-parse.dynamodb.{operation}"
        client.meta.events.register(event, _take_answer, unique_id=f"epochal-{operation}")


def _take_answer(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object
) -> None:
    """Called by botocore: the second dictionary overrides what it parses out of the first."""
    if response_dict["status_code"] != HTTPStatus.OK:
        return
    try:
        answer = json.loads(response_dict["body"], object_hook=_with_bytes)
    except ValueError:
        return
    if isinstance(answer, dict):
        customized_response_dict.update(answer)
        response_dict["body"] = b"{}"


def _with_bytes(found: dict[str, Any]) -> dict[str, Any]:
    """A JSON object, its texts as bytes if it is a binary value. An item may have attributes of these names, and a
    table may be called so; but what they have is not text.
    """
    if "B" in found and isinstance(found["B"], str):
        found["B"] = a2b_base64(found["B"])
    elif "BS" in found and isinstance(found["BS"], list):
        found["BS"] = [a2b_base64(each) if isinstance(each, str) else each for each in found["BS"]]
    return found
