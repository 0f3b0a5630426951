"""What Lambda's event source mapping does with a table's stream: batches, partial failures, bisecting, giving up.

The stream is DynamoDB Local's; the rules are AWS's ("Using AWS Lambda with Amazon DynamoDB", "Configuring partial batch
response", "bisect"), because no stand-in keeps them:

    a batch succeeds              the lane goes on behind it
    names failures                what came before the first of them stands, the rest of the batch is retried
    raises                        it is halved, and each half is delivered by itself; halving is no retry
    has failed too often          its records go to the failure destination, the lane goes on
    now and then                  a batch that succeeded is delivered again

A shard is divided into lanes by partition key (the parallelisation factor); lanes run at once, each in its order.
"""

from __future__ import annotations

import random
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from epochal.dynamo.records import table_of
from tests.unit.feed.events import event, stream_record

Function = Callable[[dict[str, Any]], dict[str, Any]]
StreamRecord = dict[str, Any]


def records_of(client: Any, table_stream: str) -> list[list[StreamRecord]]:
    """All records of a stream, by shard, as a function receives them."""
    described = client.describe_stream(StreamArn=table_stream)["StreamDescription"]
    return [
        [
            stream_record(
                found["dynamodb"]["SequenceNumber"],
                found["dynamodb"].get("NewImage"),
                found["eventName"],
                table_of(table_stream),
            )
            for found in _read(client, table_stream, shard["ShardId"])
        ]
        for shard in described["Shards"]
    ]


def _read(client: Any, table_stream: str, shard: str) -> Iterator[dict[str, Any]]:
    """Records of a shard up to now: an open one is at its end when it answers with nothing."""
    iterator = client.get_shard_iterator(
        StreamArn=table_stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    while iterator is not None:
        answer = client.get_records(ShardIterator=iterator)
        yield from answer["Records"]
        iterator = answer.get("NextShardIterator") if answer["Records"] else None


@dataclass(slots=True)
class EventSource:
    """A mapping of a stream to a function.

    Attributes:
        again: how likely a batch that succeeded is to be delivered once more.
        given_up: records that went to the failure destination.
        batches: sizes of the batches delivered.
    """

    function: Function
    batch: int = 10
    lanes: int = 1
    retries: int = 3
    again: float = 0.0
    seed: int = 0
    given_up: list[StreamRecord] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def deliver(self, shards: list[list[StreamRecord]]) -> None:
        """Everything, lanes at once; returns when each has come to its end."""
        lanes = [lane for shard in shards for lane in self._divided(shard)]
        with ThreadPoolExecutor(max(1, len(lanes))) as pool:
            for done in [pool.submit(self._run, number, lane) for number, lane in enumerate(lanes)]:
                done.result()

    def _divided(self, shard: list[StreamRecord]) -> list[list[StreamRecord]]:
        lanes: list[list[StreamRecord]] = [[] for _ in range(self.lanes)]
        for record in shard:
            stream = record["dynamodb"].get("NewImage", {}).get("p", {"S": ""})["S"]
            lanes[zlib.crc32(stream.encode()) % self.lanes].append(record)
        return lanes

    def _run(self, number: int, lane: list[StreamRecord]) -> None:
        rng = random.Random(f"{self.seed} {number}")
        place = 0
        while place < len(lane):
            batch = lane[place : place + rng.randint(1, self.batch)]
            self._deliver_batch(batch)
            if rng.random() < self.again:
                self._invoke(batch)
            place += len(batch)

    def _deliver_batch(self, batch: list[StreamRecord]) -> None:
        """A batch, and what becomes of its parts, until all of it has succeeded or been given up."""
        parts = deque([(batch, 0)])
        while parts:
            part, tries = parts.popleft()
            failed = self._invoke(part)
            if failed is None:
                middle = len(part) // 2
                retried = [(part[:middle], tries), (part[middle:], tries)] if middle else [(part, tries + 1)]
            else:
                retried = [(part[failed:], tries + 1)] if failed < len(part) else []
            for rest, count in reversed(retried):
                if count > self.retries:
                    with self.lock:
                        self.given_up += rest
                else:
                    parts.appendleft((rest, count))

    def _invoke(self, part: list[StreamRecord]) -> int | None:
        """How many records stand; None where the function raised."""
        with self.lock:
            self.batches.append(len(part))
        try:
            answer = self.function(event(part))
        except Exception:  # noqa: BLE001  # as Lambda does, whatever it was
            return None
        named = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        numbers = [record["dynamodb"]["SequenceNumber"] for record in part]
        assert named <= set(numbers), "Lambda takes an unknown number for a failure of the whole batch"
        return next((place for place, number in enumerate(numbers) if number in named), len(part))
