"""The deployed indexer, woken by a mapping of a Kinesis stream under the stage's filters.

The embedded AWS has both, but its tables send something else there than DynamoDB does. So the test sends what DynamoDB
would, doubled and out of order.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from epochal.cdk.parts.head_filters import heads_sent
from epochal.contrib.local.deploy import LocalDeployment
from epochal.dynamo.interpreter import interpreter, open_deployment
from epochal.layout.registry import base_of, partition_of
from epochal.model.events import Event
from epochal.pages.port import pages_source
from epochal.plan.values import Item
from tests.core.feed.events import sent_change

INDEXER, TABLE, SECONDS = "epochal-dev-indexer", "epochal-dev-streams", 60.0


@pytest.fixture
def changes(deployment: LocalDeployment) -> Iterator[str]:
    """A Kinesis stream that the indexer follows instead of the table of pages; its name."""
    functions, kinesis = (deployment.endpoint.client(name) for name in ("lambda", "kinesis"))
    usual = [
        each["UUID"]
        for each in functions.list_event_source_mappings(FunctionName=INDEXER)["EventSourceMappings"]
        if f":table/{TABLE}/" in each["EventSourceArn"]
    ]
    assert usual
    kinesis.create_stream(StreamName="changes", ShardCount=1)
    arn = kinesis.describe_stream_summary(StreamName="changes")["StreamDescriptionSummary"]["StreamARN"]
    made = functions.create_event_source_mapping(
        FunctionName=INDEXER,
        EventSourceArn=arn,
        StartingPosition="TRIM_HORIZON",
        BatchSize=3,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        FilterCriteria={"Filters": [{"Pattern": each} for each in heads_sent(pages_source(TABLE), TABLE)]},
    )
    for each in usual:
        functions.update_event_source_mapping(UUID=each, Enabled=False)
    yield "changes"
    functions.delete_event_source_mapping(UUID=made["UUID"])
    for each in usual:
        functions.update_event_source_mapping(UUID=each, Enabled=True)
    kinesis.delete_stream(StreamName="changes", EnforceConsumerDeletion=True)


def test_heads_that_come_through_kinesis_are_in_the_feed_once_and_in_order(
    deployment: LocalDeployment, changes: str
) -> None:
    store = open_deployment(deployment.settings, execute=interpreter(deployment.endpoint.client("dynamodb")))
    stream, sent = "Changed-1", list[dict[str, Any]]()
    for at in range(8):
        store.streams.append(stream, [Event(type=f"T{at}", data=b"{}")])
        sent += [sent_change(image, at * 1_000, table=TABLE) for image in pages_of(deployment, stream)]
    noise = [
        {**sent[0], "tableName": "another"},
        {**sent[0], "eventName": "REMOVE"},
        {**sent[0], "dynamodb": {**sent[0]["dynamodb"], "NewImage": {"p": {"S": "$Key"}}}},
    ]
    records = [json.dumps(each) for each in [*sent, *sent[::2], *noise]]
    random.Random(7).shuffle(records)
    deployment.endpoint.client("kinesis").put_records(
        StreamName=changes,
        Records=[{"Data": each.encode(), "PartitionKey": "0"} for each in [*records, "no JSON"]],
    )
    reader, found = store.feed, list[tuple[int, str]]()
    until = time.monotonic() + SECONDS
    while len(found) < 8 and time.monotonic() < until:
        pages = reader.read(partition_of(stream, 1, base_of("pages")))
        time.sleep(0.1)
        found = [(item.index, item.type) for page in pages for item in page.items if item.stream == stream]
    assert found == [(at, f"T{at}") for at in range(8)]


def pages_of(deployment: LocalDeployment, stream: str) -> list[Item]:
    """What the stream's last page is now."""
    items = deployment.endpoint.client("dynamodb").query(
        TableName=TABLE,
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": {"S": stream}},
    )["Items"]
    return [item for item in items if "r" in item]
