"""Events of the sources `aws:dynamodb` and `aws:kinesis`, as AWS documents them and Lambda hands them on."""

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


KEYS = ("p", "i", "pkey", "skey", "pk", "sk")
"""Of the tables that are sources."""


def sent_change(
    image: Item | None, at: int, kind: str = "MODIFY", table: str = "tips", unit: str = "MICROSECOND"
) -> dict[str, Any]:
    """What DynamoDB sends to Kinesis of a change, `at` so many microseconds of some day; a deletion has no image."""
    since = 1_700_000_000_000_000 + at
    told = {name: wire(value) for name, value in (image or {"p": {"S": "x"}}).items()}
    return {
        "awsRegion": "us-east-1",
        "eventID": f"{at:032x}",
        "eventName": kind,
        "userIdentity": None,
        "recordFormat": "application/json",
        "tableName": table,
        "dynamodb": {
            "ApproximateCreationDateTime": since if unit == "MICROSECOND" else since // 1_000,
            "Keys": {name: value for name, value in told.items() if name in KEYS},
            **({} if image is None else {"NewImage": told}),
            **({} if kind == "INSERT" else {"OldImage": told}),
            "SizeBytes": 100,
            **({"ApproximateCreationDateTimePrecision": unit} if unit else {}),
        },
        "eventSource": "aws:dynamodb",
    }


def kinesis_record(number: int, data: dict[str, Any]) -> dict[str, Any]:
    """One record of a Kinesis stream."""
    return {
        "kinesis": {
            "kinesisSchemaVersion": "1.0",
            "partitionKey": "FC6DB76DA3C47A034DF4D0B90F73B1A7",
            "sequenceNumber": f"{number:056d}",
            "data": base64.b64encode(json.dumps(data).encode()).decode(),
            "approximateArrivalTimestamp": 1_700_000_000.5,
        },
        "eventSource": "aws:kinesis",
        "eventVersion": "1.0",
        "eventID": f"shardId-000000000000:{number:056d}",
        "eventName": "aws:kinesis:record",
        "invokeIdentityArn": "arn:aws:iam::123456789012:role/indexer",
        "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:kinesis:us-east-1:123456789012:stream/epochal-prod-changes",
    }


def event(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """A batch, through JSON as Lambda sends it."""
    found: dict[str, Any] = json.loads(json.dumps({"Records": list(records)}))
    return found
