"""What Lambda's event source mapping does with a table's stream: batches, partial failures, bisecting, giving up.

The stream is DynamoDB Local's; the rules are AWS's ("Using AWS Lambda with Amazon DynamoDB", "Configuring partial batch
response", "bisect"), because no stand-in keeps them:

    a batch succeeds              the lane goes on behind it
    names failures                what came before the first of them stands, the rest of the batch is retried
    raises                        it is halved, and each half is delivered by itself; halving is no retry
    has failed too often          its records go to the failure destination, the lane goes on
    now and then                  a batch that succeeded is delivered again

A shard is divided into lanes by partition key (the parallelisation factor); lanes run at once, each in its order. Where
shards split, which DynamoDB Local never shows, a shard's children are read once it has come to its end.
"""

from __future__ import annotations

import random
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from epochal.feed.indexer import Indexer, Report
from epochal.feed.stream_records import read_records, table_of
from tests.core.feed.events import event, stream_record
from tests.simulation.scheduler import Killed

Function = Callable[[dict[str, Any]], dict[str, Any] | None]
StreamRecord = dict[str, Any]

KEYS = ("p", "pkey", "pk")
"""Partition keys of the tables that are sources."""


class IndexerFunction:
    """As Lambda runs one: each invocation in a process that is free, or a new one; a crash ends its process."""

    def __init__(
        self, start: Callable[[int], Indexer], reported: Callable[[Report], object] = lambda _: None
    ) -> None:
        self._start, self._reported = start, reported
        self._lock = threading.Lock()
        self._free: list[Indexer] = []
        self._started = 0

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        process = self._process()
        report = process.index(read_records(event["Records"]))
        self._reported(report)
        with self._lock:
            self._free.append(process)
        return {"batchItemFailures": [{"itemIdentifier": number} for number in report.failed]}

    def _process(self) -> Indexer:
        with self._lock:
            if self._free:
                return self._free.pop()
            self._started += 1
            number = self._started
        process = self._start(number)
        process.register()
        return process


def split(shard: list[StreamRecord], *counts: int) -> list[list[list[StreamRecord]]]:
    """A shard as generations of so many shards, each over the keys that fall to it, parents before children."""
    size = -(-len(shard) // len(counts))
    generations = [shard[start : start + size] for start in range(0, len(shard), size)]
    return [_by_key(records, count) for records, count in zip(generations, counts, strict=False)]


def _by_key(records: list[StreamRecord], count: int) -> list[list[StreamRecord]]:
    shares: list[list[StreamRecord]] = [[] for _ in range(count)]
    for record in records:
        shares[share_of(record, count)].append(record)
    return shares


def share_of(record: StreamRecord, count: int) -> int:
    """To which of so many shards or lanes a record's key falls."""
    image = record["dynamodb"].get("NewImage", {})
    key = next((image[name]["S"] for name in KEYS if name in image), "")
    return zlib.crc32(key.encode()) % count


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


def _read(client: Any, table_stream: str, shard: str) -> list[dict[str, Any]]:
    """Records of a shard up to now, from its beginning: an open one is at its end when it answers with nothing.

    DynamoDB Local now and then calls the beginning of a shard trimmed that gets its first records at this moment
    (aws-sdk-java issue 2923); whoever asks again reads them.
    """
    for _ in range(10):
        with suppress(client.exceptions.TrimmedDataAccessException):
            return list(_read_once(client, table_stream, shard))
    return list(_read_once(client, table_stream, shard))


def _read_once(client: Any, table_stream: str, shard: str) -> Iterator[dict[str, Any]]:
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
        lanes = [lane for shard in shards for lane in _by_key(shard, self.lanes)]
        with ThreadPoolExecutor(max(1, len(lanes))) as pool:
            for done in [pool.submit(self._run, number, lane) for number, lane in enumerate(lanes)]:
                done.result()

    def _run(self, number: int, lane: list[StreamRecord]) -> None:
        rng = random.Random(f"{self.seed} {number}")
        place = 0
        while place < len(lane):
            batch = lane[place : place + rng.randint(1, self.batch)]
            self.deliver_batch(batch, rng)
            place += len(batch)

    def deliver_batch(self, batch: list[StreamRecord], rng: random.Random) -> None:
        """A batch, until the lane may go on; now and then it comes once more."""
        self._insist(batch)
        if rng.random() < self.again:
            self._invoke(batch)

    def _insist(self, batch: list[StreamRecord]) -> None:
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
        except (Exception, Killed):  # noqa: BLE001  # as Lambda does, whatever it was
            return None
        named = {failure["itemIdentifier"] for failure in (answer or {}).get("batchItemFailures", [])}
        numbers = [record["dynamodb"]["SequenceNumber"] for record in part]
        assert named <= set(numbers), "Lambda takes an unknown number for a failure of the whole batch"
        return next((place for place, number in enumerate(numbers) if number in named), len(part))
