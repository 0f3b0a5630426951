"""Notices: which partitions of the index have moved, and how far, from changes of its table to an SNS FIFO topic
(FORMATS §5).

A notice is a wake-up, not data: one message for each partition of a batch, with the highest position. Its receiver
reads the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from epochal.errors import Unavailable
from epochal.index.checkpoints import Checkpoint
from epochal.index.entries import CLOSED
from epochal.index.names import is_tip
from epochal.plan.values import Item, read_list, read_number

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


_EPOCH: Final = re.compile(r"\$AppendsEpoch-(\d+)_(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A partition has got to a position: the checkpoint after its last entry."""

    partition: int
    position: Checkpoint

    @property
    def deduplication_id(self) -> str:
        """With the separator, or 1 and 23 would look like 12 and 3."""
        return f"{self.partition}-{int(self.position)}"


def notices(images: Iterable[Item]) -> list[Notice]:
    """What changes of the index table have to tell, in order of partitions."""
    positions: dict[int, Checkpoint] = {}
    for image in images:
        found = _position(image)
        if found is not None:
            partition, position = found
            positions[partition] = max(position, positions.get(partition, position))
    return [Notice(partition=number, position=positions[number]) for number in sorted(positions)]


def _position(image: Item) -> tuple[int, Checkpoint] | None:
    """The position after an epoch's last entry; None for whatever is not an epoch's Tip."""
    match = _EPOCH.fullmatch(image.get("p", {}).get("S", ""))
    if match is None or not is_tip(image):
        return None
    partition, epoch = int(match[1]), int(match[2])
    types = [kind["S"] for kind in read_list(image, "c")]
    if types[-1:] == [CLOSED]:
        return partition, Checkpoint.of(epoch + 1, 0)
    return partition, Checkpoint.of(epoch, read_number(image, "n") or 0)
