"""An SNS FIFO topic, the SQS FIFO queue that it feeds, and the mapping of that queue to a function, with AWS's rules:

    a deduplication id        is taken once within five minutes, by the topic and by the queue
    a group                   comes in order, and nothing of it while some of it is in flight
    named as failed, raises   comes again after the visibility timeout, counted; what was not named is gone
    a receipt                 changes for how long its message is invisible, until the message is received again or seen
    received too often        goes to the dead-letter queue, and its group goes on
    now and then              a message that was handled is not deleted in time, and comes again

Time is simulated: it passes only where someone lets it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any, cast

from epochal.feed.notices import Topic
from epochal.index.checkpoints import Checkpoint
from epochal.plan.ops import Execute
from tests.simulation.scheduler import PAUSE, Killed
from tests.simulation.world import Calm

DEDUPLICATION_SECONDS = 300.0
AT_ONCE = 10
LIKELY = 0.8
"""That a batch which could hold a message does: batches are cut as it happens."""

Answer = dict[str, Any]
Function = Callable[[Answer], Answer]


@dataclass(frozen=True, slots=True)
class Context:
    """A function's context, whose remaining time is that of the simulated clock."""

    clock: Calm
    ends: float

    def get_remaining_time_in_millis(self) -> int:
        """Return the remaining time, as Lambda does."""
        return max(0, int((self.ends - self.clock()) * 1000))


@dataclass(slots=True, kw_only=True)
class Message:
    """A message in a queue."""

    id: str
    group: str
    body: str
    attributes: Answer
    visible: float = 0.0
    receives: int = 0

    @property
    def receipt(self) -> str:
        """Receipt handle of the latest delivery."""
        return f"{self.id} {self.receives}"


@dataclass(slots=True, kw_only=True)
class Seen:
    """Deduplication ids with the times at which they were accepted."""

    clock: Calm
    taken: dict[str, float] = field(default_factory=dict)

    def again(self, id_: str) -> bool:
        """Return whether an id was accepted within the last five minutes, and record it."""
        now = self.clock()
        fresh = now - self.taken.get(id_, -inf) >= DEDUPLICATION_SECONDS
        if fresh:
            self.taken[id_] = now
        return not fresh


@dataclass(kw_only=True)
class FifoQueue:
    """A queue, and a client of it as far as senders need one.

    Attributes:
        visibility: seconds for which a message that was received is not seen again.
        max_receives: after so many a message goes to `dead`.
        undeleted: how likely a message that was handled comes again.
        sent: how many messages were taken in.
        most_receives: of one message.
        raised: what invocations ended with.
    """

    clock: Calm
    visibility: float = 360.0
    max_receives: int = 10
    undeleted: float = 0.0
    seed: int = 0
    messages: list[Message] = field(default_factory=list)
    dead: list[Message] = field(default_factory=list)
    sent: int = 0
    most_receives: int = 0
    raised: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._seen = Seen(clock=self.clock)
        self._lock = threading.RLock()
        self._luck = random.Random(self.seed)
        self._numbers = count()

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> Answer:  # noqa: N803  # boto3's
        """Accept messages from a client."""
        assert QueueUrl
        _sound(Entries)
        for entry in Entries:
            self.take(
                entry["MessageGroupId"],
                entry["MessageDeduplicationId"],
                entry["MessageBody"],
                entry.get("MessageAttributes", {}),
            )
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> Answer:  # noqa: N803  # boto3's
        """Show messages in a number of seconds from now."""
        assert QueueUrl
        _sound(Entries)
        answer: Answer = {"Successful": [], "Failed": []}
        with self._lock:
            flying = {each.receipt: each for each in self.messages if each.visible > self.clock()}
            for entry in Entries:
                seconds = entry["VisibilityTimeout"]
                assert isinstance(seconds, int)
                assert 0 <= seconds <= 43_200
                if entry["ReceiptHandle"] in flying:
                    flying[entry["ReceiptHandle"]].visible = self.clock() + seconds
                    answer["Successful"].append({"Id": entry["Id"]})
                else:
                    answer["Failed"].append({"Id": entry["Id"], "Code": "InvalidParameterValue"})
        return answer

    def take(self, group: str, deduplication_id: str, body: str, attributes: Answer) -> None:
        """Accept a message, unless it is a duplicate."""
        with self._lock:
            if not self._seen.again(deduplication_id):
                self.sent += 1
                id_ = f"m{next(self._numbers)}"
                self.messages.append(Message(id=id_, group=group, body=body, attributes=attributes))

    def run(self, function: Function, *, pollers: int = 2, rounds: int = 200) -> None:
        """Deliver to a function until the queue is empty; time passes while all that is left is invisible."""
        for _ in range(rounds):
            batches = [batch for batch in (self.receive() for _ in range(pollers)) if batch]
            if batches:
                with ThreadPoolExecutor(len(batches)) as pool:
                    list(pool.map(lambda batch: self.deliver(function, batch), batches))
            elif self.messages:
                flying = [each.visible for each in self.messages if each.visible > self.clock()]
                self.clock.sleep(min(flying, default=self.clock()) - self.clock())
            else:
                return
        raise AssertionError(f"the queue does not get empty: {self.messages}")

    def receive(self) -> list[Message]:
        """Return some of the oldest messages of groups without messages in flight."""
        with self._lock:
            now = self.clock()
            barred = {each.group for each in self.messages if each.visible > now}
            found: list[Message] = []
            for each in [each for each in self.messages if each.group not in barred]:
                if each.group in barred:
                    continue
                if each.receives >= self.max_receives:
                    self.messages.remove(each)
                    self.dead.append(each)
                elif len(found) < AT_ONCE and self._luck.random() < LIKELY:
                    each.receives += 1
                    each.visible = now + self.visibility
                    found.append(each)
                else:
                    barred.add(each.group)
            self.most_receives = max([self.most_receives, *(each.receives for each in found)])
            return found

    def deliver(self, function: Function, batch: list[Message]) -> None:
        """Invoke a function with messages, and delete those that it does not report as failed."""
        event = {"Records": [_record(each) for each in batch]}
        receipts = {each.id: each.receives for each in batch}
        try:
            failures = {each["itemIdentifier"] for each in function(event)["batchItemFailures"]}
        except (Exception, SystemExit, Killed) as cause:  # noqa: BLE001  # as Lambda does, whatever it was
            self.raised.append(cause)
            return
        assert failures <= {each.id for each in batch}, "an unknown id fails the whole batch"
        with self._lock:
            for each in batch:
                # A receipt is good until the message has been received again.
                good = each in self.messages and each.receives == receipts[each.id]
                if good and each.id not in failures and self._luck.random() >= self.undeleted:
                    self.messages.remove(each)


@dataclass(kw_only=True)
class FifoTopic:
    """A topic, as far as publishers need a client of it, and the queues that subscribe to it, raw.

    Attributes:
        refuses: how likely an entry is refused.
        deaf: nothing that is published arrives.
        reached: the highest position that it took of each partition.
    """

    clock: Calm
    queues: tuple[FifoQueue, ...]
    refuses: float = 0.0
    seed: int = 0
    deaf: bool = False
    reached: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._seen = Seen(clock=self.clock)
        self._lock = threading.Lock()
        self._luck = random.Random(self.seed)

    def publish_batch(self, *, TopicArn: str, PublishBatchRequestEntries: list[dict[str, Any]]) -> Answer:  # noqa: N803  # boto3's
        """Accept notices from a client."""
        assert TopicArn
        _sound(PublishBatchRequestEntries)
        failed = []
        with self._lock:
            for entry in PublishBatchRequestEntries:
                if self._luck.random() < self.refuses:
                    failed.append({"Id": entry["Id"], "Code": "InternalError"})
                    continue
                number, position = int(entry["MessageGroupId"]), int(entry["Message"])
                self.reached[number] = max(position, self.reached.get(number, 0))
                if not self._seen.again(entry["MessageDeduplicationId"]) and not self.deaf:
                    for queue in self.queues:
                        queue.take(
                            entry["MessageGroupId"],
                            entry["MessageDeduplicationId"],
                            entry["Message"],
                            entry["MessageAttributes"],
                        )
        return {"Failed": failed}


def publishing(topic: FifoTopic, execute: Execute) -> Callable[[Mapping[int, Checkpoint]], None]:
    """What tells the topic, of a process that may die before it does or when it has."""
    publisher = Topic(cast("Any", topic), "topic")

    def publish(positions: Mapping[int, Checkpoint]) -> None:
        execute(PAUSE)
        publisher.publish(positions)
        execute(PAUSE)

    return publish


def _sound(entries: list[dict[str, Any]]) -> None:
    assert 1 <= len(entries) <= AT_ONCE
    assert len({entry["Id"] for entry in entries}) == len(entries)


def _record(message: Message) -> dict[str, Any]:
    attributes = {"MessageGroupId": message.group, "ApproximateReceiveCount": str(message.receives)}
    told = {name: {"stringValue": each["StringValue"]} for name, each in message.attributes.items()}
    return {
        "messageId": message.id,
        "receiptHandle": message.receipt,
        "body": message.body,
        "attributes": attributes,
        "messageAttributes": told,
        "eventSource": "aws:sqs",
    }
