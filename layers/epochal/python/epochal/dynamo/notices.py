"""Notices to an SNS FIFO topic: one message for each partition that has moved (FORMATS §5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from epochal.errors import Unavailable
from epochal.indexer.notifier import Notice

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient
    from mypy_boto3_sns.type_defs import PublishBatchRequestEntryTypeDef

AT_ONCE: Final = 10
"""Entries of one publish, at most."""


@dataclass(frozen=True, slots=True)
class Topic:
    """An SNS FIFO topic."""

    client: SNSClient
    arn: str

    def publish(self, notices: Iterable[Notice]) -> int:
        """Publish every notice; how many there were.

        Raises:
            Unavailable: an entry was not taken. All may be published again: the topic drops what it has had.
        """
        remaining, published = iter(notices), 0
        while batch := list(islice(remaining, AT_ONCE)):
            answer = self.client.publish_batch(
                TopicArn=self.arn, PublishBatchRequestEntries=[_entry(notice) for notice in batch]
            )
            if failed := answer.get("Failed"):
                raise Unavailable(f"the topic refused {len(failed)} of {len(batch)}: {failed[0]['Code']}")
            published += len(batch)
        return published


def _entry(notice: Notice) -> PublishBatchRequestEntryTypeDef:
    partition, position = str(notice.partition), str(int(notice.position))
    return {
        "Id": partition,
        "Message": position,
        "MessageAttributes": {
            "Partition": {"DataType": "String", "StringValue": partition},
            "Position": {"DataType": "String", "StringValue": position},
        },
        "MessageGroupId": partition,
        "MessageDeduplicationId": notice.deduplication_id,
    }
