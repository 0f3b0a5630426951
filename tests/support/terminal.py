"""The command line on a store in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from epochal.cli.main import epochal
from epochal.cli.target import OpenedStore, TableSize
from epochal.codec import json
from epochal.deployment import Deployment
from epochal.feed.stream_records import Record
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, MemoryObjects, memory_settings, memory_tables

TYPES = ("user-account",)


class Queues:
    """A client of SQS: queues by their names, with what was sent to each."""

    def __init__(self, **queues: list[dict[str, Any]]) -> None:
        self.sent, self.refused = queues, ""

    def get_queue_url(self, *, QueueName: str) -> dict[str, str]:  # noqa: N803  boto3's
        code = self.refused or "AWS.SimpleQueueService.NonExistentQueue"
        if self.refused or QueueName not in self.sent:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetQueueUrl")
        return {"QueueUrl": QueueName}

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.sent[QueueUrl] += Entries
        return {}


class Mappings:
    """A client of Lambda: the mappings to the function `index-indexer`, as AWS lists them, in pages of one."""

    def __init__(self) -> None:
        self.mappings: dict[str, dict[str, Any]] = {}
        self.refused = ""

    def bring(
        self,
        table: str = "",
        *,
        arn: str = "",
        state: str = "Enabled",
        result: str = "OK",
        window: int = 1,
    ) -> None:
        """Add a mapping of a table, or of a stream."""
        arn = arn or f"arn:aws:dynamodb:eu-west-1:123456789012:table/{table}/stream/2026-01-01T00:00:00.000"
        self.mappings[arn] = {
            "EventSourceArn": arn,
            "State": state,
            "LastProcessingResult": result,
            "MaximumBatchingWindowInSeconds": window,
        }

    def get_paginator(self, operation: str) -> Mappings:
        assert operation == "list_event_source_mappings"
        return self

    def paginate(self, *, FunctionName: str) -> Iterator[dict[str, Any]]:  # noqa: N803  boto3's
        assert FunctionName == "index-indexer"
        if self.refused or not self.mappings:
            code = self.refused or "ResourceNotFoundException"
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "ListEventSourceMappings")
        for each in self.mappings.values():
            yield {"EventSourceMappings": [each]}


@dataclass
class Terminal:
    """Runs commands; `index` lets the indexer see what was appended since to these layouts.

    Commands on streams are about those of the store `named`; beside `tips` those on tagged events are about Sekiban's.
    """

    tables: MemoryTables = field(default_factory=memory_tables)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
    named: str = "streams"
    everything: bool = False
    partitions: int = 1
    indexed: dict[str, int] = field(default_factory=dict)
    layouts: Sequence[str] = ("pages",)
    queues: Queues = field(default_factory=Queues)
    mappings: Mappings = field(default_factory=Mappings)

    @property
    def streams(self) -> Streams:
        found: Streams = getattr(self.deployment, self.named)
        return found

    @property
    def deployment(self) -> Deployment:
        return Deployment(
            settings=memory_settings(
                aggregate_types=TYPES, tips_partitions=self.partitions, tagged_everything=self.everything
            ),
            driver=Driver(execute=self.tables.execute, meter=Meter()),
            bucket=MemoryBucket(objects=self.objects),
        )

    @property
    def store(self) -> OpenedStore:
        sizes = [TableSize(name="tips", items=3, bytes=4_096)]
        clients = {"lambda": self.mappings}
        opened = OpenedStore.of(
            self.deployment, lambda: sizes, lambda service: clients.get(service, self.queues)
        )
        return replace(opened, streams=self.streams)

    def run(self, *arguments: str, stdin: str | None = None) -> Result:
        """Run a command; what it raises is in the result."""
        if self.named == "tips" and arguments[0] == "tagged":
            arguments = ("dcb", *arguments[1:])
        return CliRunner().invoke(epochal, arguments, input=stdin, obj=lambda: self.store)

    def lines(self, *arguments: str, stdin: str | None = None) -> list[str]:
        """What a command that succeeds prints."""
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.stdout.splitlines()

    def documents(self, *arguments: str, stdin: str | None = None) -> list[Any]:
        """What a command that succeeds prints with `--json`."""
        return [json.loads(line) for line in self.lines(*arguments, "--json", stdin=stdin)]

    def index(self) -> None:
        """Index what was appended since the last time."""
        found = self.deployment.indexer
        indexer = replace(found, sources=tuple(each for each in found.sources if each.name in self.layouts))
        indexer.register()
        for table in (source.table for source in indexer.sources):
            changes, before = self.tables.changes(table), self.indexed.get(table, 0)
            fresh = enumerate(changes[before:], before)
            assert not indexer.index(
                [Record(table=table, sequence_number=f"{n:021}", image=image) for n, image in fresh]
            ).failed
            self.indexed[table] = len(changes)
