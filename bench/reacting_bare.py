"""What anyone would write with boto3 to call a handler with every event of a feed, in order within its stream.

It pages through the epochs, gathers a thousand events or more, reads each of their streams, eight side by side,
unpacks the events, calls the handler, and puts a checkpoint. Nobody retries, nobody parks, and two of it would undo
each other's work: it is what the library's care is weighed against.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import brotli

from bench.flight_feed import PARTITION

TIP = {"N": "2147483647"}
PAGE_EVENTS = 1_000
PARALLEL = 8
CALVES = 4
"""Asked for at a time where a stream's Tip begins too late."""

Event = tuple[int, str, bytes]
"""Index, type, body."""

Handle = Callable[[str, list[Event]], object]


@dataclass(slots=True, kw_only=True)
class Bare:
    """A pass over a feed with boto3 alone, and its figures."""

    client: Any
    tips: str
    index: str
    handle: Handle
    requests: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    lock: Lock = field(default_factory=Lock)

    def run(self) -> None:
        """Handle the whole feed from the beginning."""
        with ThreadPoolExecutor(PARALLEL) as pool:
            for number, stretches in enumerate(self._stretches()):
                list(pool.map(lambda stretch: self._deliver(*stretch), stretches.items()))
                checkpoint = {"p": {"S": "bare"}, "i": {"N": "0"}, "at": {"N": str(number)}}
                put = self.client.put_item(
                    TableName=self.index, Item=checkpoint, ReturnConsumedCapacity="TOTAL"
                )
                self.requests += 1
                self.write_units += put["ConsumedCapacity"]["CapacityUnits"]

    def _stretches(self) -> Iterator[dict[str, tuple[int, int]]]:
        """Yield ranges of events by stream, for a thousand events or more at a time."""
        ranges: dict[str, tuple[int, int]] = {}
        events = 0
        for spans in self._entries():
            for span in spans:
                stream, first, count = span["p"], span["i"], len(span["c"])
                ranges[stream] = (ranges.get(stream, (first, 0))[0], first + count)
                events += count
            if events >= PAGE_EVENTS:
                yield ranges
                ranges, events = {}, 0
        if ranges:
            yield ranges

    def _entries(self) -> Iterator[list[dict[str, Any]]]:
        epoch, has_items = 0, True
        while has_items:
            has_items = False
            for item in self._query(self.index, f"$AppendsEpoch-{PARTITION}_{epoch}"):
                has_items = True
                for stored in item["e"]["L"]:
                    if "d" in stored["M"]:
                        entry = json.loads(_body(stored["M"]))
                        yield entry["add"] + entry["app"]
            epoch += 1

    def _deliver(self, stream: str, span: tuple[int, int]) -> None:
        first, end = span
        tip = self._count(
            self.client.get_item(
                TableName=self.tips,
                Key={"p": {"S": stream}, "i": TIP},
                ConsistentRead=True,
                ReturnConsumedCapacity="TOTAL",
            )
        )["Item"]
        events = _events(tip)
        if events[0][0] > first:
            events = self._calved(stream, first, events[0][0]) + events
        self.handle(stream, [event for event in events if first <= event[0] < end])

    def _calved(self, stream: str, first: int, base: int) -> list[Event]:
        """Read events from the calves before a Tip, back to the calf with the first event of the range."""
        events: list[Event] = []
        for item in self._query(self.tips, stream, below=base, limit=CALVES):
            events = _events(item) + events
            if events[0][0] <= first:
                break
        return events

    def _query(
        self, table: str, partition: str, *, below: int | None = None, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Read items of a partition; those below an index in descending order."""
        keys, values = "p = :p", {":p": {"S": partition}}
        if below is not None:
            keys, values = "p = :p AND i < :i", {**values, ":i": {"N": str(below)}}
        parameters: dict[str, Any] = {
            "TableName": table,
            "KeyConditionExpression": keys,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": below is None,
            "ConsistentRead": True,
            "ReturnConsumedCapacity": "TOTAL",
            **({"Limit": limit} if limit else {}),
        }
        while True:
            page = self._count(self.client.query(**parameters))
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            parameters["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _count(self, answer: Any) -> Any:
        with self.lock:
            self.requests += 1
            self.read_units += answer["ConsumedCapacity"]["CapacityUnits"]
        return answer


def _events(item: dict[str, Any]) -> list[Event]:
    stored, kinds = item["e"]["L"], item["c"]["L"]
    base = int(item["n"]["N"]) - len(stored)
    return [
        (base + offset, kind["S"], _body(event["M"]))
        for offset, (kind, event) in enumerate(zip(kinds, stored, strict=True))
    ]


def _body(event: dict[str, Any]) -> bytes:
    body: bytes = event["d"]["B"] if "d" in event else b""
    return brotli.decompress(body) if "D" in event else body
