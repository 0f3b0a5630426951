"""Wake-ups in an SQS FIFO queue: reading those that Lambda was given, and sending one's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from epochal.errors import Unavailable
from epochal.index.checkpoints import Checkpoint, parse_checkpoint
from epochal.reactions.wakeups import WakeUp

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

AT_ONCE: Final = 10
"""Messages of one request, at most."""


def read_wake_ups(records: Iterable[dict[str, Any]]) -> list[WakeUp]:
    """Messages of a queue, as a function is given them: the body is the position, the group the partition."""
    return [
        WakeUp(
            id=record["messageId"],
            partition=int(record["attributes"]["MessageGroupId"]),
            position=parse_checkpoint(record["body"], "body"),
            receives=int(record["attributes"].get("ApproximateReceiveCount", "1")),
        )
        for record in records
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A wake-up to be sent: to `partition`, for a position. Two of the same `occasion` count as one."""

    partition: int
    position: Checkpoint
    occasion: str


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue that wakes a reaction."""

    client: SQSClient
    url: str

    def send(self, calls: Iterable[Call]) -> int:
        """Send wake-ups; how many there were.

        Raises:
            Unavailable: one was not taken. All may be sent again.
        """
        remaining, sent = iter(calls), 0
        while batch := list(islice(remaining, AT_ONCE)):
            answer = self.client.send_message_batch(
                QueueUrl=self.url,
                Entries=[
                    {
                        "Id": str(number),
                        "MessageBody": str(int(call.position)),
                        "MessageGroupId": str(call.partition),
                        "MessageDeduplicationId": f"{call.partition}-{int(call.position)}-{call.occasion}",
                    }
                    for number, call in enumerate(batch)
                ],
            )
            if failed := answer.get("Failed"):
                raise Unavailable(f"the queue refused {len(failed)} of {len(batch)}: {failed[0]['Code']}")
            sent += len(batch)
        return sent
