"""Notices of how far the index's partitions have moved, published to an SNS FIFO topic (FORMATS §5).

A notice is a wake-up, not data: one message for each partition, with the partition's position. Its receiver reads the
index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from epochal.errors import Unavailable
from epochal.index.checkpoints import Checkpoint
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient
    from mypy_boto3_sns.type_defs import PublishBatchRequestEntryTypeDef

T = TypeVar("T")


AT_ONCE: Final = 10
"""Entries of one request, at most."""


def send_in_batches(to: str, things: Iterable[T], request: Callable[[list[T]], Any]) -> int:
    """Send things by `request`, ten at a time; return how many, or raise `Unavailable` if one is refused.

    Raises:
        Unavailable: an entry was refused.
    """
    remaining, count = iter(things), 0
    while batch := list(islice(remaining, AT_ONCE)):
        if failed := request(batch).get("Failed"):
            raise Unavailable(f"{to} refused {len(failed)} of {len(batch)} entries: {failed[0]['Code']}")
        count += len(batch)
    return count


@dataclass(frozen=True, slots=True)
class Topic:
    """An SNS FIFO topic."""

    client: SNSClient
    arn: str

    def publish(self, positions: Mapping[int, Checkpoint]) -> int:
        """Publish partitions' positions to the topic; return how many; raise `Unavailable` if one is refused.

        Raises:
            Unavailable: an entry was not taken. All may be published again: the topic drops what it has had.
        """

        def request(batch: list[tuple[int, Checkpoint]]) -> Any:
            """Publish one batch of positions."""
            entries = [_entry(*position) for position in batch]
            return self.client.publish_batch(TopicArn=self.arn, PublishBatchRequestEntries=entries)

        return send_in_batches("the topic", sorted(positions.items()), request)


def _entry(number: int, checkpoint: Checkpoint) -> PublishBatchRequestEntryTypeDef:
    """Build the entry of a batch that publishes one partition's position."""
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
