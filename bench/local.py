"""A table of streams on DynamoDB Local, and what the benchmarks ask of it besides the library."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from botocore.config import Config

from epochal.care.table_creation import create_table
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.local import processes
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.programs import here
from epochal.dynamo.interpreter import interpreter
from epochal.layout.streams import AnyStreamLayout
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.tables import TableSpec
from epochal.plan.values import Item
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.support import dynamodb_local

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


Laid = Literal["pages", "tips"]
"""How named streams are laid out."""

SPECS: Final[Mapping[Laid, TableSpec]] = {"pages": STREAMS, "tips": TIPS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """A table, and the store on it."""

    client: DynamoDBClient
    table: str
    layout: AnyStreamLayout

    @property
    def streams(self) -> Streams:
        """A store with its own meter."""
        driver = Driver(execute=interpreter(self.client), meter=Meter())
        return Streams(driver=driver, table=self.table, layout=self.layout)

    def items(self) -> Iterator[Item]:
        """Yield every item."""
        for page in self.client.get_paginator("scan").paginate(TableName=self.table):
            yield from page["Items"]

    def fill(self, items: Iterable[Item]) -> None:
        """Put items unchanged."""
        rest = iter(items)
        while some := list(islice(rest, 25)):
            puts: Any = [{"PutRequest": {"Item": item}} for item in some]
            unprocessed = self.client.batch_write_item(RequestItems={self.table: puts})["UnprocessedItems"]
            assert not unprocessed, "DynamoDB Local processes every item"


@contextmanager
def local_at(endpoint: Endpoint, spec: TableSpec = TIPS) -> Iterator[Local]:
    """Create an empty table for the duration of a block.

    It has no stream: nobody would read it, and DynamoDB Local would keep it in memory.
    """
    client = endpoint.client("dynamodb", config=Config(max_pool_connections=32))
    table = f"bench-{uuid.uuid4().hex[:12]}"
    create_table(client, table, replace(spec, stream=False))
    try:
        yield Local(client=client, table=table, layout=Pages() if spec is STREAMS else Tips())
    finally:
        client.delete_table(TableName=table)
        client.close()


@contextmanager
def dynamodb() -> Iterator[Endpoint]:
    """Run DynamoDB Local for the duration of a block, after downloading it if necessary."""
    server = dynamodb_local.start(here(), tell=lambda line: print(line, file=sys.stderr))
    try:
        yield Endpoint(url=server.url)
    finally:
        processes.stop(server)
