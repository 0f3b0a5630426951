"""Wake-ups in an SQS FIFO queue: reading those that Lambda delivers, and sending them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from epochal.feed.notices import send_in_batches
from epochal.feed.results import PartitionTail
from epochal.hosting.wakeups import Standstill, WakeUp
from epochal.index.checkpoints import Checkpoint, parse_checkpoint
from epochal.index.group_state import Unit
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef


TICK_SECONDS: Final = 60

ASIDE: Final = "!"
"""Separates the unit from the occasion in the message group of a wake-up that waits for no other one of its unit."""


def read_wake_ups(records: Iterable[dict[str, Any]]) -> list[WakeUp]:
    """Read wake-ups from the messages of a queue, as Lambda hands them to a function.

    The body of a message is the position, its group the partition or share.
    """
    return [
        WakeUp(
            id=record["messageId"],
            unit=_unit(record["attributes"]["MessageGroupId"]),
            aside=ASIDE in record["attributes"]["MessageGroupId"],
            position=parse_checkpoint(record["body"], "body"),
            receives=int(record["attributes"].get("ApproximateReceiveCount", "1")),
            standing=_standing(record.get("messageAttributes", {})),
        )
        for record in records
    ]


def _unit(group: str) -> Unit:
    partition, _, share = group.partition(ASIDE)[0].partition("/")
    return Unit(int(partition), int(share or 0))


def _standing(attributes: dict[str, Any]) -> Standstill:
    """Read how often a group has woken itself at one checkpoint, from the attributes of a message."""
    if not {"At", "Hops"} <= attributes.keys():
        return Standstill()
    return Standstill(
        parse_checkpoint(attributes["At"]["stringValue"], "At"), int(attributes["Hops"]["stringValue"])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUpCall:
    """A wake-up to be sent.

    Attributes:
        unit: the partition, or the share of it.
        position: checkpoint up to which there are events.
        occasion: what causes it; two of the same occasion count as one.
        standing: how often the group has woken itself at one checkpoint; None unless it wakes itself.
        aside: whether it has a message group of its own, so that it waits for no other.
    """

    unit: Unit
    position: Checkpoint
    occasion: str
    standing: Standstill | None = None
    aside: bool = False

    def entry(self, id_: str) -> SendMessageBatchRequestEntryTypeDef:
        """Return the entry of this wake-up in a request to SQS."""
        standstill = self.standing
        group = f"{self.unit}{ASIDE}{self.occasion}" if self.aside else str(self.unit)
        attributes = {} if standstill is None else {"At": int(standstill.at), "Hops": standstill.hops}
        return {
            "Id": id_,
            "MessageBody": str(int(self.position)),
            "MessageAttributes": {
                name: {"DataType": "Number", "StringValue": str(number)}
                for name, number in attributes.items()
            },
            "MessageGroupId": group,
            "MessageDeduplicationId": f"{group}-{int(self.position)}-{self.occasion}",
        }


def scheduled_wake_ups(tails: Iterable[PartitionTail], now: float) -> Iterator[WakeUpCall]:
    """Make the wake-ups of a schedule; those within the same minute count as one."""
    minute = int(now // TICK_SECONDS)
    return (
        WakeUpCall(unit=Unit(tail.partition), position=tail.tail, occasion=f"tick-{minute}") for tail in tails
    )


def steered_wake_ups(tails: Iterable[PartitionTail], occasion: str) -> Iterator[WakeUpCall]:
    """Yield two wake-ups for each partition, by which it takes up a command or a deployment at once.

    Each partition has two. One goes with the others of its partition. One goes aside, since the others wait where a
    run has failed; where none has, it finds nothing left to do.
    """
    for tail in tails:
        for aside in (False, True):
            yield WakeUpCall(unit=Unit(tail.partition), position=tail.tail, occasion=occasion, aside=aside)


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue that wakes a reaction."""

    client: SQSClient
    url: str

    def send(self, calls: Iterable[WakeUpCall]) -> int:
        """Send wake-ups, and return how many there were.

        Raises:
            Unavailable: one was not taken. All may be sent again.
        """

        def request(batch: list[WakeUpCall]) -> Any:
            entries = [call.entry(str(number)) for number, call in enumerate(batch)]
            return self.client.send_message_batch(QueueUrl=self.url, Entries=entries)

        return send_in_batches("the queue", calls, request)
