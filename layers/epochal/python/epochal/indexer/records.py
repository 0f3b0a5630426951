"""Records as the indexer's function receives them, of a table's stream or of Kinesis, to the images that it reads.

    a table's stream    each change of an item once, in order
    Kinesis             what DynamoDB sends there: new and old image, now and then twice, or after a later one

Order is no condition: what the index has is dropped, what it lacks is read from the store. But reading costs, so a
batch of Kinesis is put into the order in which the changes were made.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from epochal.errors import InvalidInput, Unavailable
from epochal.index.checkpoints import Checkpoint
from epochal.indexer.indexer import Record
from epochal.lazy_dataclasses import dataclass
from epochal.plan.values import AttributeValue

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient
    from mypy_boto3_sns.type_defs import PublishBatchRequestEntryTypeDef

T = TypeVar("T")

_A_SECOND: Final = {"MILLISECOND": 1_000, "MICROSECOND": 1_000_000}
"""Units of a change's time. One without a unit is from when there were milliseconds alone."""


def read_records(records: Iterable[dict[str, Any]]) -> Iterator[Record]:
    """Changes with their new image; deletions have none. In an event, binaries are base64 text.

    Raises:
        InvalidInput: the table's stream carries no new images, so that nothing could ever be indexed.
    """
    sent = list(records)
    if sent and "kinesis" in sent[0]:
        yield from _of_kinesis([each["kinesis"] for each in sent])
        return
    for record in sent:
        change = record["dynamodb"]
        if record.get("eventName") == "REMOVE":
            continue
        if "NewImage" not in change:
            raise InvalidInput("StreamViewType", "must be one that carries new images")
        yield Record(
            table=table_of(record["eventSourceARN"]),
            sequence_number=change["SequenceNumber"],
            image=_image(change),
        )


def table_of(arn: str) -> str:
    """The table whose stream an event source's ARN names: `arn:...:table/<name>/stream/<label>`."""
    return arn.partition(":table/")[2].partition("/")[0]


def read_value(value: dict[str, Any], binary: Callable[[str], bytes] = base64.b64decode) -> AttributeValue:
    """A value in the JSON of events and exports, where binaries are text: base64, where nothing else is said."""
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {"B": binary(content) if isinstance(content, str) else content}
        case "BS":
            return {"BS": [read_value({"B": each}, binary)["B"] for each in content]}
        case "L":
            return {"L": [read_value(each, binary) for each in content]}
        case "M":
            return {"M": {name: read_value(each, binary) for name, each in content.items()}}
        case _:
            return {kind: content}


def _of_kinesis(records: Iterable[dict[str, Any]]) -> Iterator[Record]:
    """What tables have sent, in the order of their changes as far as times say: an item's are milliseconds apart."""
    changes = [(json.loads(base64.b64decode(each["data"])), each["sequenceNumber"]) for each in records]
    changes.sort(key=lambda each: _made(each[0]["dynamodb"]))
    for record, number in changes:
        change = record["dynamodb"]
        if record["eventName"] != "REMOVE":
            yield Record(
                table=record["tableName"], sequence_number=number, image=_image(change), change=_same(change)
            )


def _made(change: dict[str, Any]) -> float:
    """When a change was made, in seconds."""
    unit = change.get("ApproximateCreationDateTimePrecision", "MILLISECOND")
    return float(change["ApproximateCreationDateTime"]) / _A_SECOND[unit]


def _same(change: dict[str, Any]) -> str:
    """What tells a change from all others, and is the same where it comes twice: the item, and the time."""
    item = hashlib.sha256(json.dumps(change["Keys"], sort_keys=True).encode()).hexdigest()
    return f"{change['ApproximateCreationDateTime']}-{item[:32]}"


def _image(change: dict[str, Any]) -> dict[str, AttributeValue]:
    return {name: read_value(value) for name, value in change["NewImage"].items()}


# Notices: which partitions of the index have moved, and how far, to an SNS FIFO topic (FORMATS §5).
#
# A notice is a wake-up, not data: one message for each partition, with its position. Its receiver reads the index.

AT_ONCE: Final = 10
"""Entries of one request, at most."""


def sent(to: str, things: Iterable[T], request: Callable[[list[T]], Any]) -> int:
    """Send things to a topic or a queue, as many at once as it takes; how many there were.

    Raises:
        Unavailable: one was not taken.
    """
    remaining, count = iter(things), 0
    while batch := list(islice(remaining, AT_ONCE)):
        if failed := request(batch).get("Failed"):
            raise Unavailable(f"{to} refused {len(failed)} of {len(batch)}: {failed[0]['Code']}")
        count += len(batch)
    return count


@dataclass(frozen=True, slots=True)
class Topic:
    """An SNS FIFO topic."""

    client: SNSClient
    arn: str

    def publish(self, positions: Mapping[int, Checkpoint]) -> int:
        """Publish where partitions have got to; how many there were.

        Raises:
            Unavailable: an entry was not taken. All may be published again: the topic drops what it has had.
        """

        def request(batch: list[tuple[int, Checkpoint]]) -> Any:
            entries = [_entry(*each) for each in batch]
            return self.client.publish_batch(TopicArn=self.arn, PublishBatchRequestEntries=entries)

        return sent("the topic", sorted(positions.items()), request)


def _entry(number: int, checkpoint: Checkpoint) -> PublishBatchRequestEntryTypeDef:
    partition, position = str(number), str(int(checkpoint))
    return {
        "Id": partition,
        "Message": position,
        "MessageAttributes": {
            "Partition": {"DataType": "String", "StringValue": partition},
            "Position": {"DataType": "String", "StringValue": position},
        },
        "MessageGroupId": partition,
        # With the separator, or 1 and 23 would look like 12 and 3.
        "MessageDeduplicationId": f"{partition}-{position}",
    }
