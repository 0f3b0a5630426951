"""Records of DynamoDB Streams, as a function receives them, to the images that the indexer reads."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

from epochal.errors import InvalidInput
from epochal.indexer.indexer import Record
from epochal.plan.values import AttributeValue


def read_records(records: Iterable[dict[str, Any]]) -> Iterator[Record]:
    """Changes with their new image; deletions have none. In an event, binaries are base64 text.

    Raises:
        InvalidInput: the table's stream carries no new images, so that nothing could ever be indexed.
    """
    for record in records:
        change = record["dynamodb"]
        if record.get("eventName") == "REMOVE":
            continue
        if "NewImage" not in change:
            raise InvalidInput("StreamViewType", "must be one that carries new images")
        image = {name: read_value(value) for name, value in change["NewImage"].items()}
        yield Record(
            table=table_of(record["eventSourceARN"]), sequence_number=change["SequenceNumber"], image=image
        )


def table_of(arn: str) -> str:
    """The table whose stream an event source's ARN names: `arn:...:table/<name>/stream/<label>`."""
    return arn.partition(":table/")[2].partition("/")[0]


def read_value(value: dict[str, Any]) -> AttributeValue:
    """A value in the JSON of events and exports, where binaries are base64 text."""
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {"B": base64.b64decode(content) if isinstance(content, str) else content}
        case "BS":
            return {"BS": [read_value({"B": each})["B"] for each in content]}
        case "L":
            return {"L": [read_value(each) for each in content]}
        case "M":
            return {"M": {name: read_value(each) for name, each in content.items()}}
        case _:
            return {kind: content}
