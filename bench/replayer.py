"""Reads one stream in a process of its own, so that its memory can be told from everybody else's.

    python -m bench.replayer URL TABLE STREAM pages|tips library|bare

Prints what it read and what that took as one line of JSON. `bare` is what anyone would write with boto3: it pages
through the items and counts their events, and decodes none.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

from bench.peak import peak_bytes
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.interpreter import interpreter
from epochal.layout.streams import AnyStreamLayout
from epochal.pages.layout import Pages
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams

LAYOUTS: dict[str, AnyStreamLayout] = {"pages": Pages(), "tips": Tips()}
FRAMES = {"pages": "f", "tips": "e"}
"""The list of an item that has an element for each append of one event."""


def library(client: Any, table: str, stream: str, laid: str) -> dict[str, Any]:
    """Stream every event; return whether they were in order, and a checksum of their bodies."""
    driver = Driver(execute=interpreter(client), meter=Meter())
    streams = Streams(driver=driver, table=table, layout=LAYOUTS[laid])
    events, checksum, ordered = 0, 0, True
    for event in streams.read(stream):
        ordered = ordered and event.index == events
        events += 1
        assert isinstance(event.data, bytes)
        checksum = zlib.crc32(event.data, checksum)
    meter = streams.driver.meter
    return {
        "events": events,
        "checksum": checksum,
        "ordered": ordered,
        "requests": meter.requests,
        "read_units": meter.units.read,
    }


def bare(client: Any, table: str, stream: str, laid: str) -> dict[str, Any]:
    """Read every item page by page."""
    pages = client.get_paginator("query").paginate(
        TableName=table,
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": {"S": stream}},
        ConsistentRead=True,
        ReturnConsumedCapacity="TOTAL",
    )
    events, requests, units = 0, 0, 0.0
    for page in pages:
        events += sum(len(item[FRAMES[laid]]["L"]) for item in page["Items"])
        requests += 1
        units += page["ConsumedCapacity"]["CapacityUnits"]
    return {"events": events, "requests": requests, "read_units": units}


WAYS: dict[str, Callable[[Any, str, str, str], dict[str, Any]]] = {"library": library, "bare": bare}


def main() -> None:
    """Read the stream, and print the result and the figures."""
    url, table, stream, laid, way = sys.argv[1:]
    client = Endpoint(url=url).client("dynamodb")
    began, worked = time.perf_counter(), time.process_time()
    result = WAYS[way](client, table, stream, laid)
    result |= {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - worked,
        "peak": peak_bytes(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
