"""Wake-ups in an SQS FIFO queue: reading those that Lambda was given, and sending one's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from epochal.errors import Unavailable
from epochal.feed.results import PartitionTail
from epochal.index.checkpoints import Checkpoint, parse_checkpoint
from epochal.reactions.wakeups import Standstill, WakeUp

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

AT_ONCE: Final = 10
"""Messages of one request, at most."""

TICK_SECONDS: Final = 60


def read_wake_ups(records: Iterable[dict[str, Any]]) -> list[WakeUp]:
    """Messages of a queue, as a function is given them: the body is the position, the group the partition."""
    return [
        WakeUp(
            id=record["messageId"],
            partition=int(record["attributes"]["MessageGroupId"]),
            position=parse_checkpoint(record["body"], "body"),
            receives=int(record["attributes"].get("ApproximateReceiveCount", "1")),
            standing=_standing(record.get("messageAttributes", {})),
        )
        for record in records
    ]


def _standing(attributes: dict[str, Any]) -> Standstill:
    """What a wake-up of one's own says; notices say nothing of it."""
    if not {"At", "Hops"} <= attributes.keys():
        return Standstill()
    return Standstill(
        parse_checkpoint(attributes["At"]["stringValue"], "At"), int(attributes["Hops"]["stringValue"])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A wake-up to be sent: to `partition`, for a position, and where a group stands that wakes itself. Two of the same
    `occasion` count as one.
    """

    partition: int
    position: Checkpoint
    occasion: str
    standing: Standstill | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """Of the message."""
        if self.standing is None:
            return {}
        told = {"At": int(self.standing.at), "Hops": self.standing.hops}
        return {name: {"DataType": "Number", "StringValue": str(each)} for name, each in told.items()}


def tick(tails: Iterable[PartitionTail], now: float) -> Iterator[Call]:
    """Wake-ups by schedule or deployment; those within the same minute count as one."""
    minute = int(now // TICK_SECONDS)
    return (Call(partition=each.partition, position=each.tail, occasion=f"tick-{minute}") for each in tails)


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
                        "MessageAttributes": call.attributes,
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
