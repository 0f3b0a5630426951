"""Records of changes as the indexer's function receives them, and the images that the indexer reads from them.

    a table's stream    each change of an item once, in order
    Kinesis             what DynamoDB sends there: new and old image, sometimes twice, or after a later one

The order need not be right: the index drops changes that it has, and those that it lacks are read from the store. But
reading costs, so a batch from Kinesis is sorted into the order in which the changes were made.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.plan.values import AttributeValue, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A change of an item of a table: its new image, and its place in the table's change stream.

    Attributes:
        table: name of the table.
        sequence_number: place in the change stream.
        image: the item after the change.
        change: id of the change, if the change stream may have it twice; else empty.
    """

    table: str
    sequence_number: str
    image: Item
    change: str = ""


_UNITS_PER_SECOND: Final = {"MILLISECOND": 1_000, "MICROSECOND": 1_000_000}
"""Units of a change's time. A record without a unit is from the time when milliseconds were the only unit."""


def read_records(records: Iterable[dict[str, Any]]) -> Iterator[Record]:
    """Convert the records of a Lambda event into changes with their new image; deletions are skipped.

    Binary values are base64 text in an event.

    Raises:
        InvalidInput: the table's stream carries no new images, so that nothing could ever be indexed.
    """
    batch = list(records)
    if batch and "kinesis" in batch[0]:
        yield from _read_kinesis([record["kinesis"] for record in batch])
        return
    for record in batch:
        change = record["dynamodb"]
        if record.get("eventName") == "REMOVE":
            continue
        if "NewImage" not in change:
            raise InvalidInput("StreamViewType", "must be NEW_IMAGE or NEW_AND_OLD_IMAGES")
        yield Record(
            table=table_of(record["eventSourceARN"]),
            sequence_number=change["SequenceNumber"],
            image=_image(change),
        )


def numbers_of(records: Iterable[dict[str, Any]]) -> list[str]:
    """Return the sequence numbers of records, by which an answer names them."""
    return [
        record["kinesis"]["sequenceNumber"] if "kinesis" in record else record["dynamodb"]["SequenceNumber"]
        for record in records
    ]


def table_of(arn: str) -> str:
    """Extract the table's name from the ARN of its change stream: `arn:...:table/<name>/stream/<label>`."""
    return arn.partition(":table/")[2].partition("/")[0]


def read_value(value: dict[str, Any], binary: Callable[[str], bytes] = base64.b64decode) -> AttributeValue:
    """Convert a DynamoDB value from JSON, where binaries are text (by default base64), to one with bytes."""
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {"B": binary(content) if isinstance(content, str) else content}
        case "BS":
            return {"BS": [read_value({"B": element}, binary)["B"] for element in content]}
        case "L":
            return {"L": [read_value(element, binary) for element in content]}
        case "M":
            return {"M": {name: read_value(element, binary) for name, element in content.items()}}
        case _:
            return {kind: content}


def _read_kinesis(records: Iterable[dict[str, Any]]) -> Iterator[Record]:
    """Convert Kinesis records into changes, sorted by time where it is known; deletions are skipped."""
    changes = [(json.loads(base64.b64decode(record["data"])), record["sequenceNumber"]) for record in records]
    changes.sort(key=lambda record: _change_time(record[0]["dynamodb"]))
    for record, number in changes:
        change = record["dynamodb"]
        if record["eventName"] != "REMOVE":
            yield Record(
                table=record["tableName"],
                sequence_number=number,
                image=_image(change),
                change=_change_id(change),
            )


def _change_time(change: dict[str, Any]) -> float:
    """Return when a change was made, in seconds."""
    unit = change.get("ApproximateCreationDateTimePrecision", "MILLISECOND")
    return float(change["ApproximateCreationDateTime"]) / _UNITS_PER_SECOND[unit]


def _change_id(change: dict[str, Any]) -> str:
    """Return an id of a change that is the same if it comes twice: of the item and the time."""
    item = hashlib.sha256(json.dumps(change["Keys"], sort_keys=True).encode()).hexdigest()
    return f"{change['ApproximateCreationDateTime']}-{item[:32]}"


def _image(change: dict[str, Any]) -> dict[str, AttributeValue]:
    """Convert the new image of a change into an item."""
    return {name: read_value(value) for name, value in change["NewImage"].items()}
