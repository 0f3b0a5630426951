"""Wake-ups in an SQS FIFO queue: reading those that Lambda was given, and sending one's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from epochal.dynamo.aws_errors import translate_errors
from epochal.errors import InvalidRequest
from epochal.feed.history import PartitionTail
from epochal.feed.indexer import sent
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import BEGINNING, Checkpoint, parse_checkpoint
from epochal.index.groups import Unit
from epochal.lazy_dataclasses import dataclass, field
from epochal.reactions.reactor import Ran

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef


T = TypeVar("T")

TICK_SECONDS: Final = 60

ASIDE: Final = "!"
"""Separates a unit from an occasion, in the message group of a wake-up that waits for no other one of its unit."""


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
        """The entry of this wake-up in a request to SQS."""
        at = self.standing
        group = f"{self.unit}{ASIDE}{self.occasion}" if self.aside else str(self.unit)
        told = {} if at is None else {"At": int(at.at), "Hops": at.hops}
        return {
            "Id": id_,
            "MessageBody": str(int(self.position)),
            "MessageAttributes": {
                name: {"DataType": "Number", "StringValue": str(each)} for name, each in told.items()
            },
            "MessageGroupId": group,
            "MessageDeduplicationId": f"{group}-{int(self.position)}-{self.occasion}",
        }


def tick(tails: Iterable[PartitionTail], now: float) -> Iterator[WakeUpCall]:
    """Make the wake-ups of a schedule; those within the same minute count as one."""
    minute = int(now // TICK_SECONDS)
    return (
        WakeUpCall(unit=Unit(each.partition), position=each.tail, occasion=f"tick-{minute}") for each in tails
    )


def steered(tails: Iterable[PartitionTail], occasion: str) -> Iterator[WakeUpCall]:
    """Make the wake-ups of every partition after a command or a deployment, which take effect at once.

    Each partition has two. One goes with the others of its partition. One goes aside, since the others wait where a
    run has failed; where none has, it finds nothing left to do.
    """
    for each in tails:
        for aside in (False, True):
            yield WakeUpCall(unit=Unit(each.partition), position=each.tail, occasion=occasion, aside=aside)


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

        return sent("the queue", calls, request)


# Wake-ups: what a queue delivers to a reaction, and what becomes of each.
#
#     the checkpoint has reached the position     done
#     there was no time for more, or for any      done, and the partition wakes itself up: no failure
#     the group pauses                            done: it is woken again once it goes on
#     blocked, or not a step further              failed: it comes again, and at last goes to a queue with an alarm
#     woken too often at one checkpoint           failed, and said: such a catch-up would go on for ever
#
# A wake-up that has come several times is handled carefully: a process may have died over it.
#
# Lambda ends a function that has woken itself some 16 times, unless it is told that this is meant. It is, so the
# bound is ours: wake-ups of one's own count those in a row that have found the group at one checkpoint.

WORTHWHILE_SECONDS: Final = 0.5
"""With less time than this a partition is not begun: others of its batch took longer than they should have."""

CAREFUL_FROM: Final = 3
"""Receives of a message from which on processes are taken to have died over it: once may be a deployment."""


MOST_HOPS: Final = 500
"""Wake-ups of one's own in a row that find the group at one checkpoint. A page has some 11,000 events at most: 8 side
by side, with calls of 12 seconds each, it takes 350 runs of a function of a minute."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """How many wake-ups of a group's own in a row have found it at one checkpoint.

    Attributes:
        at: the checkpoint.
        hops: the number of wake-ups.
    """

    at: Checkpoint = BEGINNING
    hops: int = 0

    def then(self, at: Checkpoint) -> Standstill:
        """The count for the next wake-up, of a group whose checkpoint is `at` by now."""
        return Standstill(at, self.hops + 1 if at <= self.at else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUp:
    """A message of the queue.

    Attributes:
        id: the message's.
        position: the partition had got there.
        receives: how often the message has come, this time included.
        standing: of one that the reaction has sent itself.
        aside: whether it has come beside the others of its unit.
    """

    id: str
    unit: Unit
    position: Checkpoint
    receives: int = 1
    standing: Standstill = Standstill()
    aside: bool = False

    @property
    def partition(self) -> int:
        """Which."""
        return self.unit.partition

    @property
    def tells_all(self) -> bool:
        """Whether it is meant for every member of its partition: notices and schedules know of partitions alone."""
        return not self.unit.share and not self.standing.hops

    @property
    def careful(self) -> bool:
        """Whether to find out what processes die over."""
        return self.receives >= CAREFUL_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """What came of a batch: the messages that must come again, each partition's run, and where those stand that have
    not got on for too long.
    """

    failed: tuple[str, ...]
    runs: dict[Unit, Ran]
    stuck: dict[Unit, Standstill] = field(default_factory=dict)


Run = Callable[[Unit, float, bool], Ran]
"""Runs a partition, or a share of it, for so many seconds, carefully or not."""

Again = Callable[[Unit, Checkpoint, Standstill], None]
"""Wakes a partition up again: for a position, from where it stands."""


def wake(wake_ups: Iterable[WakeUp], remaining: Callable[[], float], run: Run, again: Again) -> Woken:
    """Run every partition that was woken, the time that remains divided among them."""
    by_unit: dict[Unit, list[WakeUp]] = {}
    for each in wake_ups:
        by_unit.setdefault(each.unit, []).append(each)
    failed: list[str] = []
    runs: dict[Unit, Ran] = {}
    stuck: dict[Unit, Standstill] = {}
    for done, (unit, messages) in enumerate(by_unit.items()):
        position = max(message.position for message in messages)
        careful = any(message.careful for message in messages)
        stood = max((message.standing for message in messages), key=lambda each: (each.at, each.hops))
        seconds = remaining() / (len(by_unit) - done)
        ran = None if seconds < WORTHWHILE_SECONDS else run(unit, seconds, careful)
        if ran is not None:
            runs[unit] = ran
            if ran.at_tail or ran.paused or ran.checkpoint >= position:
                continue
        stands = stood.then(stood.at if ran is None else ran.checkpoint)
        if stands.hops > MOST_HOPS:
            stuck[unit] = stands
        elif ran is None or (ran.blocked is None and ran.moved):
            again(unit, position, stands)
            continue
        # What came aside has another one with the others, which comes again.
        failed += [message.id for message in messages if not message.aside]
    return Woken(failed=tuple(failed), runs=runs, stuck=stuck)


# A group that was steered goes on at once.


def deployed_queue(client: SQSClient, prefix: str, group: str) -> Queue | None:
    """Find the queue that wakes a deployed reaction; None where no reaction of that name is deployed.

    Args:
        prefix: how the names of the deployment's functions begin, as `epochal-dev`.

    Raises:
        Refused: the credentials may not look for it.
        Unavailable: throttling, an outage, or no answer in time.
    """
    try:
        with translate_errors("GetQueueUrl"):
            return Queue(
                client, client.get_queue_url(QueueName=f"{prefix}-reaction-{group}.fifo")["QueueUrl"]
            )
    except InvalidRequest as error:
        if not error.code.endswith(("NonExistentQueue", "QueueDoesNotExist")):
            raise
        return None


def wake_group(client: SQSClient, prefix: str, group: str, tails: Iterable[PartitionTail]) -> bool:
    """Wake a deployed reaction in every partition, so that it takes up a command at once.

    Returns False where no reaction of that name is deployed. Unlike the wake-ups of a schedule, no two of these count
    as one: the one before may have found that the group is paused.

    Args:
        tails: as `feed.partitions()` has them.

    Raises:
        Refused, Unavailable: as `deployed_queue`, or the wake-up was not taken.
    """
    queue = deployed_queue(client, prefix, group)
    if queue is not None:
        queue.send(steered(tails, f"steered-{time.time_ns()}"))
    return queue is not None


# A reaction's first wake-up.

SPARED_SECONDS: Final = 15.0
"""Of the function's time, for the last attempt and the answer."""

PAUSE_SECONDS: Final = 5.0


def wake_all(queue: Queue, reader: FeedReader, seconds: float) -> None:
    """Wake every partition of the index, and try again until time is nearly over.

    Raises whatever the last attempt raises.
    """

    def wake() -> None:
        queue.send(steered(reader.partitions(), f"deployed-{time.time_ns()}"))

    patiently(wake, seconds - SPARED_SECONDS)


def patiently(do: Callable[[], T], seconds: float, sleep: Callable[[float], None] = time.sleep) -> T:
    """Call a function until it succeeds or time is over: a new permission may not hold everywhere yet."""
    for _ in range(int(seconds // PAUSE_SECONDS)):
        try:
            return do()
        except Exception:  # noqa: BLE001  the last attempt raises it
            sleep(PAUSE_SECONDS)
    return do()
