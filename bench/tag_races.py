"""Tagged events under load, on DynamoDB Local: writers that share heads, and the speed of large appends.

Figures vary from run to run, but for this: unrelated appends take two requests each, and none ever fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from botocore.config import Config

from bench.local import dynamodb
from bench.report import Report
from bench.tagging import SPECS, event, opened
from epochal.care.table_creation import create_table
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.sekiban.items import EVENTS, TAGS
from epochal.contrib.sekiban.store import DcbEvents
from epochal.dynamo.interpreter import interpreter
from epochal.model.events import Event
from epochal.model.outcomes import Appended
from epochal.plan.ops import Op, Put, Reply, Transact
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables

WRITERS = 20
BATCHES, BATCH = 40, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Events per second of the library, and of boto3 alone."""

    library: float
    bare: float


@contextmanager
def store_at(endpoint: Endpoint, *, type_heads: bool) -> Iterator[tuple[DcbEvents, Any]]:
    """Create new tables on DynamoDB Local for the duration of a block, with a store and its client."""
    client = endpoint.client("dynamodb", config=Config(max_pool_connections=2 * WRITERS))
    names = [f"bench-{spec.kind}-{uuid4().hex[:12]}" for spec in SPECS.values()]
    for name, spec in zip(names, SPECS.values(), strict=True):
        create_table(client, name, replace(spec, stream=False))
    try:
        yield opened(interpreter(client), names[0], names[1], type_heads=type_heads), client
    finally:
        for name in names:
            client.delete_table(TableName=name)
        client.close()


def contend(endpoint: Endpoint, *, type_heads: bool, rounds: int = 3) -> float:
    """Return the number of requests of each of many unrelated concurrent appends."""
    with store_at(endpoint, type_heads=type_heads) as (store, _):

        def write(writer: int) -> None:
            for number in range(rounds):
                tagged = replace(event(0), tags=(f"writer:{writer}-{number}",))
                assert isinstance(store.append([tagged]), Appended)

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write, range(WRITERS)))
        return store.driver.meter.requests / (WRITERS * rounds)


def speed(endpoint: Endpoint) -> Speed:
    """Compare the library with boto3 alone, which sends the same items, on batches of 20 events under one tag."""
    batches = [[event(1, number) for number in range(BATCH)] for _ in range(BATCHES)]
    with store_at(endpoint, type_heads=False) as (store, _):
        ours = _timed(batches, store.append)
    with store_at(endpoint, type_heads=False) as (store, client):
        sent = list(_transactions(store, batches))
        bare = _timed(sent, lambda puts: client.transact_write_items(TransactItems=puts))
    return Speed(library=ours, bare=bare)


def _timed(batches: Sequence[Any], send: Callable[[Any], object]) -> float:
    began = time.perf_counter()
    for batch in batches:
        send(batch)
    return BATCH * len(batches) / (time.perf_counter() - began)


def _transactions(store: DcbEvents, batches: Sequence[Sequence[Event]]) -> Iterator[list[Any]]:
    """Yield the library's own writes as calls of boto3, prepared in advance and without conditions."""
    tables = MemoryTables({store.site.events: EVENTS, store.site.tags: TAGS})
    transactions: list[Transact] = []

    def execute(op: Op) -> Reply:
        if isinstance(op, Transact):
            transactions.append(op)
        return tables.execute(op)

    elsewhere = replace(store, driver=Driver(execute=execute, meter=Meter()))
    for batch in batches:
        elsewhere.append(batch)
    for op in transactions:
        puts = (write for write in op.writes if isinstance(write, Put))
        yield [{"Put": {"TableName": put.table, "Item": put.item}} for put in puts]


def main() -> None:
    """Measure, and print the figures."""
    with dynamodb() as endpoint:
        alone, shared = (contend(endpoint, type_heads=heads) for heads in (False, True))
        took = speed(endpoint)
    Report(
        title=f"{WRITERS} writers of unrelated events: requests an append; none fails",
        columns=("without type heads", "with type heads"),
        rows=[(f"{alone:.1f}", f"{shared:.1f}")],
    ).print()
    Report(
        title=f"Appends of {BATCH} events under one tag: events a second",
        columns=("library", "bare boto3, same items", "ratio"),
        rows=[(f"{took.library:,.0f}", f"{took.bare:,.0f}", f"{took.library / took.bare:.2f}")],
    ).print()


if __name__ == "__main__":
    main()
