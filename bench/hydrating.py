"""A feed with its events on DynamoDB Local, and the requests that reading it takes, made again by boto3 alone.

The bare requests are those that the library made, in its order and as many at a time as it has under way: they need not
wait for what an earlier one brought, and nobody looks at what they bring. Nothing that hydrates can be faster by much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from bench.flight_feed import PARTITION, full_feed, put
from bench.local import local_at
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.interpreter import interpreter
from epochal.feed.hydration import PARALLEL
from epochal.feed.reader import FeedReader
from epochal.feed.stream_history import StreamHistory
from epochal.layout.tables import INDEX
from epochal.plan.ops import Execute, Get, Op, Query, Reply
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Figures of a read: events (none if only requests are made), seconds, and the process's peak memory."""

    requests: int
    read_units: float
    seconds: float
    cpu: float
    events: int = 0
    peak: int = 0


@dataclass(slots=True)
class Recorder:
    """An executor that records every request; safe for use by several threads."""

    perform: Execute
    ops: list[Op] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def execute(self, op: Op) -> Reply:
        """Perform a request, and record it."""
        with self.lock:
            self.ops.append(op)
        return self.perform(op)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A feed with its events on DynamoDB Local."""

    client: DynamoDBClient
    tips: str
    index: str

    def reader(self, execute: Execute) -> FeedReader:
        """Return a reader with its own meter."""
        driver = Driver(execute=execute, meter=Meter())
        return FeedReader(
            driver=driver,
            table=self.index,
            histories=(StreamHistory(Streams(driver=driver, table=self.tips, layout=Tips())),),
        )

    def recorded(self) -> list[Op]:
        """Return the requests that the library makes, in order."""
        recorder = Recorder(interpreter(self.client))
        read(self.reader(recorder.execute))
        return recorder.ops

    def library(self) -> Took:
        """Read all events with the library."""
        reader = self.reader(interpreter(self.client))
        began, worked = time.perf_counter(), time.process_time()
        events = read(reader)
        meter = reader.driver.meter
        return Took(
            requests=meter.requests,
            read_units=meter.units.read,
            seconds=time.perf_counter() - began,
            cpu=time.process_time() - worked,
            events=events,
        )

    def bare(self, ops: Sequence[Op]) -> Took:
        """Make the same requests with boto3."""
        return made_again(self.client, ops)


def made_again(client: DynamoDBClient, ops: Sequence[Op]) -> Took:
    """Repeat requests with boto3."""
    calls = [_call(client, op) for op in ops]
    began, worked = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(PARALLEL) as pool:
        units = sum(pool.map(_units, calls))
    return Took(
        requests=len(ops),
        read_units=units,
        seconds=time.perf_counter() - began,
        cpu=time.process_time() - worked,
    )


@contextmanager
def feed_at(endpoint: Endpoint, events: int, appends: int) -> Iterator[Feed]:
    """Store a feed with a number of events, and of appends per index entry, for the duration of a block."""
    tables = full_feed(events, appends)
    with ExitStack() as stack:
        tips, index = (stack.enter_context(local_at(endpoint)) for _ in range(2))
        put(tables, TIPS.kind, tips)
        put(tables, INDEX.kind, index)
        yield Feed(client=tips.client, tips=tips.table, index=index.table)


def read(reader: FeedReader) -> int:
    """Read the whole feed with its events, and return their number."""
    events = 0
    for page in reader.read(PARTITION, data=True):
        assert all(item.event is not None for item in page.items)
        events += len(page.items)
    return events


def _units(call: Callable[[], Any]) -> float:
    units: float = call()["ConsumedCapacity"]["CapacityUnits"]
    return units


def _call(client: Any, op: Op) -> Callable[[], Any]:
    """Return a read as a call of boto3."""
    match op:
        case Get(table=table, key=key):
            parameters = {
                "TableName": table,
                "Key": key,
                "ConsistentRead": True,
                "ReturnConsumedCapacity": "TOTAL",
            }
            return partial(client.get_item, **parameters)
        case Query(table=table, partition=(name, value), sort=sort):
            among = {} if sort is None else {":low": sort[1], ":high": sort[2]}
            keys = f"{name} = :p" if sort is None else f"{name} = :p AND {sort[0]} BETWEEN :low AND :high"
            parameters = {
                "TableName": table,
                "KeyConditionExpression": keys,
                "ExpressionAttributeValues": {":p": value, **among},
                "ConsistentRead": True,
                "ScanIndexForward": op.forward,
                "ReturnConsumedCapacity": "TOTAL",
            }
            limits = {"Limit": op.limit, "ExclusiveStartKey": op.after}
            return partial(
                client.query, **parameters, **{name: value for name, value in limits.items() if value}
            )
        case _:
            raise TypeError(f"reading made a {type(op).__name__}")
