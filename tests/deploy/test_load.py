"""Half a minute of `make load` against the session's deployment, and the same judge where something is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bench.load.reporting import report
from bench.load.run import Load, Target
from epochal.contrib.local.deploy import LocalDeployment
from epochal.pages.items import page_key, read_page, write_page

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

SECONDS = 20


@pytest.fixture(scope="module")
def load(deployment: LocalDeployment) -> Load:
    load = Load(target=Target.embedded(deployment), tell=lambda line: sys.stdout.write(f"{line}\n"))
    load.put_on(SECONDS)
    for table in report(load):
        table.print()
    return load


def test_under_load_nothing_is_lost_doubled_or_out_of_order_in_any_layout_or_in_the_feed(load: Load) -> None:
    assert list(load.differences()) == []


def test_the_load_was_mixed_and_contended(load: Load) -> None:
    assert {"stream: append", "aggregate: append", "tagged: append", "feed: page"} <= set(
        load.measures.operations
    )
    assert (
        min(sum(name.startswith(kind) for name in load.stored) for kind in ("Load-", "order-", "course:"))
        >= 3
    )
    for operation in ("stream: append", "aggregate: append"):
        assert load.measures.operations[operation].statuses[412] > 0
    assert load.measures.operations["tagged: append"].statuses[409] > 0
    assert load.lag.seconds


def test_no_answer_was_a_fault(load: Load) -> None:
    statuses = {status for each in load.measures.operations.values() for status in each.statuses}
    assert statuses <= {200, 201, 404, 409, 412}


def test_an_append_taken_out_of_a_page_is_missed(load: Load, deployment: LocalDeployment) -> None:
    stream = max(
        (name for name in load.stored if name.startswith("Load-")), key=lambda name: len(load.stored[name])
    )
    count = len(load.stored[stream])

    with last_append_taken_out(deployment, stream) as gone:
        found = list(load.differences())

    assert any(each.startswith(f"{stream}: an event of ") and each.endswith("is missing") for each in found)
    assert f"{stream}: a follower met {count} of {count - gone} events" in found
    assert f"{stream}: the feed has {count} events, the store {count - gone}" in found


@contextmanager
def last_append_taken_out(deployment: LocalDeployment, stream: str) -> Iterator[int]:
    """A stream's last page without its last frame, as if that had never been appended, for a while; its events."""
    client, table = deployment.endpoint.client("dynamodb"), deployment.settings.table("streams")
    (item,) = client.query(
        TableName=table,
        KeyConditionExpression="p = :p",
        ExpressionAttributeValues={":p": {"S": stream}},
        ConsistentRead=True,
        ScanIndexForward=False,
        Limit=1,
    )["Items"]
    page = read_page(item, table)
    *frames, last = page.frames
    if frames:
        short = replace(page, frames=tuple(frames), version=page.version - last.count, full=False)
        client.put_item(TableName=table, Item=write_page(short))
    else:
        client.delete_item(TableName=table, Key=page_key(stream, page.index))
    yield last.count
    client.put_item(TableName=table, Item=item)
