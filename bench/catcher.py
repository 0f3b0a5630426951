"""Reads one index in a process of its own, so that its memory and time can be told from everybody else's.

    python -m bench.catcher URL TABLE bytes|bare|spans|items

`bytes` pages through the epochs and decodes nothing. `bare` is what anyone would write with boto3 to see what the index
says: it unpacks each entry and makes a tuple of each event. `spans` and `items` are the library's two ways. Prints what
it read and what that took as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import brotli

from bench.flight_feed import PARTITION
from bench.peak import peak_bytes
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.interpreter import interpreter
from epochal.feed.reader import FeedReader
from epochal.index.checkpoints import BEGINNING
from epochal.store.driver import Driver, Meter

LIMIT = 100_000
"""Spans asked for at a time."""


def as_bytes(client: Any, table: str) -> dict[str, Any]:
    """Read every page of the index without decoding it."""
    requests, units = 0, 0.0
    for page in _pages(client, table):
        requests += 1
        units += page["ConsumedCapacity"]["CapacityUnits"]
    return {"requests": requests, "read_units": units}


def bare(client: Any, table: str) -> dict[str, Any]:
    """Decode every event as a tuple of stream, index and type, as a program with boto3 would."""
    events, requests, units = 0, 0, 0.0
    for page in _pages(client, table):
        for item in page["Items"]:
            for stored in item["e"]["L"]:
                events += len(_events(stored["M"]))
        requests += 1
        units += page["ConsumedCapacity"]["CapacityUnits"]
    return {"events": events, "requests": requests, "read_units": units}


def spans(client: Any, table: str) -> dict[str, Any]:
    """Read every span with the library."""
    reader, at, events, at_tail = _reader(client, table), BEGINNING, 0, False
    while not at_tail:
        page = reader.spans(PARTITION, start=at, limit=LIMIT, seconds=60)
        events += sum(len(span.types) for span in page.spans)
        at, at_tail = page.next, page.at_tail
    return _told(reader, events)


def items(client: Any, table: str) -> dict[str, Any]:
    """Read every item of the feed with the library."""
    reader = _reader(client, table)
    return _told(reader, sum(len(page.items) for page in reader.read(PARTITION)))


WAYS: dict[str, Callable[[Any, str], dict[str, Any]]] = {
    "bytes": as_bytes,
    "bare": bare,
    "spans": spans,
    "items": items,
}


def _pages(client: Any, table: str) -> Iterator[dict[str, Any]]:
    """Yield every page of every epoch."""
    paginator, epoch, has_items = client.get_paginator("query"), 0, True
    while has_items:
        has_items = False
        for page in paginator.paginate(
            TableName=table,
            KeyConditionExpression="p = :p",
            ExpressionAttributeValues={":p": {"S": f"$AppendsEpoch-{PARTITION}_{epoch}"}},
            ConsistentRead=True,
            ReturnConsumedCapacity="TOTAL",
        ):
            has_items = has_items or bool(page["Items"])
            yield page
        epoch += 1


def _events(entry: dict[str, Any]) -> list[tuple[str, int, str]]:
    if "d" not in entry:
        return []
    body = entry["d"]["B"]
    if "D" in entry:
        body = brotli.decompress(body)
    spans = json.loads(body)
    return [
        (span["p"], span["i"] + offset, kind)
        for span in spans["add"] + spans["app"]
        for offset, kind in enumerate(span["c"])
    ]


def _reader(client: Any, table: str) -> FeedReader:
    return FeedReader(driver=Driver(execute=interpreter(client), meter=Meter()), table=table)


def _told(reader: FeedReader, events: int) -> dict[str, Any]:
    meter = reader.driver.meter
    return {"events": events, "requests": meter.requests, "read_units": meter.units.read}


def main() -> None:
    """Read the index, and print what was read, and the time and memory."""
    url, table, way = sys.argv[1:]
    client = Endpoint(url=url).client("dynamodb")
    began, worked = time.perf_counter(), time.process_time()
    result = WAYS[way](client, table)
    result |= {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - worked,
        "peak": peak_bytes(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
