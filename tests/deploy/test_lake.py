"""A lake on the embedded AWS: events that are appended arrive as Parquet by the columns of its table, and are asked.

The embedded AWS converts and answers by DuckDB. It writes a file for each record and at once, asks nobody's permission
for Firehose's writes, and knows no views: what the view is made of is asked in its place.
"""

from __future__ import annotations

import json
import re
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from epochal.contrib.local import deploy, ministack, processes
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.programs import Places
from epochal.contrib.publish.rows import ROW_AT
from epochal.contrib.transfer.rows import COLUMNS
from epochal.model.events import Event

pytestmark = [pytest.mark.deploy, pytest.mark.proof, pytest.mark.timeout(600)]

SECONDS = 240.0
APP = """
from aws_cdk import App, Stack

from epochal.cdk import EventStore
from epochal.contrib.lake.cdk import Lake

app = App()
stack = Stack(app, "Shop")
store = EventStore(stack, "Events", layouts=["pages"], api=None, watch=False)
Lake(Stack(app, "Lakes"), "Lake", store=store, categories=["Order"])
app.synth()
"""
DATABASE, WORKGROUP = "shop_events_lake", "shop-events-lake"
LARGE = b'{"note":"%s"}' % (b"x" * 1_100_000)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalDeployment]:
    """The lake, with events that are older than it and one that is of another category."""
    root = tmp_path_factory.mktemp("lake")
    (root / "app.py").write_text(APP)
    (root / "cdk.json").write_text(json.dumps({"app": "python app.py"}))
    places = Places(root)
    server = ministack.up(places, port=processes.free_port())
    found = deploy.deploy(places, server)
    streams = found.open().streams
    streams.append("Order-1", [Event(type="Placed", data=b'{"total":1.10}', tags=("order:1", "customer:2"))])
    streams.append("Order-1", [Event(type="Paid", data=b"\x00\x01", meta=b'{"user":"ada"}')])
    streams.append("Cart-1", [Event(type="Opened")])
    streams.append("Order-2", [Event(type="Placed", data=LARGE)])
    yield found
    ministack.down(places)


def asked(deployed: LocalDeployment, query: str) -> list[dict[str, str | None]]:
    """The rows that Athena answers."""
    athena = deployed.endpoint.client("athena")
    context = {"Database": DATABASE}
    id_ = athena.start_query_execution(QueryString=query, QueryExecutionContext=context, WorkGroup=WORKGROUP)[
        "QueryExecutionId"
    ]
    ends = time.monotonic() + 60
    while True:
        status = athena.get_query_execution(QueryExecutionId=id_)["QueryExecution"]["Status"]
        if status["State"] == "SUCCEEDED":
            break
        assert status["State"] in ("QUEUED", "RUNNING"), status
        assert time.monotonic() < ends
        time.sleep(0.1)
    head, *rows = athena.get_query_results(QueryExecutionId=id_)["ResultSet"]["Rows"]
    names = [each["VarCharValue"] for each in head["Data"]]
    return [dict(zip(names, (each.get("VarCharValue") for each in row["Data"]), strict=True)) for row in rows]


def waited(found: Callable[[], list[Any]], most: int) -> list[Any]:
    ends = time.monotonic() + SECONDS
    while len(rows := found()) < most and time.monotonic() < ends:
        time.sleep(0.5)
    return rows


def test_events_arrive_as_parquet_by_the_day_and_athena_answers_of_them(deployed: LocalDeployment) -> None:
    query = "SELECT * FROM deliveries WHERE day >= DATE '2026-01-01' ORDER BY stream, \"index\""
    found = waited(lambda: asked(deployed, query), 3)
    assert [(each["stream"], each["index"], each["type"]) for each in found] == [
        ("Order-1", "0", "Placed"),
        ("Order-1", "1", "Paid"),
        ("Order-2", "0", "Placed"),
    ]
    placed, paid, large = found
    assert placed.keys() == {*(each.name for each in COLUMNS), ROW_AT, "day"}
    assert placed["data"] == '{"total":1.10}'
    assert all(tag in str(placed["tags"]) for tag in ("order:1", "customer:2"))
    assert (paid["data"], paid["data64"], paid["metadata"]) == (None, "AAE=", '{"user":"ada"}')
    assert large["data"] is None
    bucket, _, key = str(large[ROW_AT]).removeprefix("s3://").partition("/")
    whole = json.loads(deployed.endpoint.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    assert whole["data"].encode() == LARGE


def test_files_are_where_the_table_says_and_nothing_was_refused(deployed: LocalDeployment) -> None:
    glue, s3 = deployed.endpoint.clients("glue", "s3")
    waited(lambda: asked(deployed, "SELECT * FROM deliveries"), 3)
    table = glue.get_table(DatabaseName=DATABASE, Name="deliveries")["Table"]
    bucket = table["StorageDescriptor"]["Location"].split("/")[2]
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    events = [key for key in keys if key.startswith("events/")]
    assert all(re.match(r"events/day=\d{4}-\d\d-\d\d/.+\.parquet$", key) for key in events)
    assert s3.get_object(Bucket=bucket, Key=events[0])["Body"].read(4) == b"PAR1"
    assert not [key for key in keys if key.startswith("errors/")]


def test_the_views_sql_has_each_event_once_that_came_twice(deployed: LocalDeployment) -> None:
    glue, s3 = deployed.endpoint.clients("glue", "s3")
    waited(lambda: asked(deployed, "SELECT * FROM deliveries"), 3)
    view = glue.get_table(DatabaseName=DATABASE, Name="events")["Table"]
    assert view["TableType"] == "VIRTUAL_VIEW"
    told = json.loads(b64decode(view["ViewOriginalText"].split(" ")[3]))
    location = glue.get_table(DatabaseName=DATABASE, Name="deliveries")["Table"]["StorageDescriptor"][
        "Location"
    ]
    bucket = location.split("/")[2]
    for each in s3.list_objects_v2(Bucket=bucket, Prefix="events/")["Contents"]:
        again = re.sub(r"day=[\d-]+/", "day=2026-02-01/", each["Key"])
        s3.copy_object(Bucket=bucket, Key=again, CopySource={"Bucket": bucket, "Key": each["Key"]})
    assert len(asked(deployed, "SELECT stream FROM deliveries")) == 6
    once = asked(deployed, f'SELECT stream, "index" FROM ({told["originalSql"]}) AS events ORDER BY 1, 2')
    assert [(each["stream"], each["index"]) for each in once] == [
        ("Order-1", "0"),
        ("Order-1", "1"),
        ("Order-2", "0"),
    ]
