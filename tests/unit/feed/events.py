"""Events of the event source `aws:dynamodb`, as AWS documents them and Lambda hands them on."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from epochal.plan.values import AttributeValue, Item


def wire(value: AttributeValue) -> AttributeValue:
    """A value as it stands in an event: binaries in base64."""
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {"B": base64.b64encode(content).decode()}
        case "L":
            return {"L": [wire(each) for each in content]}
        case "M":
            return {"M": {name: wire(each) for name, each in content.items()}}
        case _:
            return {kind: content}


def stream_record(
    number: str, image: Item | None, kind: str = "MODIFY", table: str = "tips"
) -> dict[str, Any]:
    """One record of a table's stream; a deletion has no image."""
    change: dict[str, Any] = {
        "ApproximateCreationDateTime": 1_700_000_000.0,
        "Keys": {"p": {"S": "x"}, "i": {"N": "2147483647"}},
        "SequenceNumber": number,
        "SizeBytes": 100,
        "StreamViewType": "NEW_IMAGE",
    }
    if image is not None:
        change["NewImage"] = {name: wire(value) for name, value in image.items()}
    return {
        "eventID": f"{int(number):032x}",
        "eventName": kind,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": change,
        "eventSourceARN": f"arn:aws:dynamodb:us-east-1:123456789012:table/{table}/stream/2026-01-01T00:00:00.000",
    }


def event(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """A batch, through JSON as Lambda sends it."""
    found: dict[str, Any] = json.loads(json.dumps({"Records": list(records)}))
    return found
