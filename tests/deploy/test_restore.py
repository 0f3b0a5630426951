"""docs/guide/backup.md, walked through: a store of all layouts is backed up and lost, its tables are made anew under
other names by the commands of the guide, and the stage is deployed around them.

What the embedded AWS lacks is played: recovery copies items, and exports are written in DynamoDB's own form.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from epochal import Event, Unfold
from epochal.care.mender import Mender
from epochal.care.repair import Repairer
from epochal.care.table_creation import create_table
from epochal.care.verify import Verifier
from epochal.contrib.equinox import open_tips
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id, open_aggregates
from epochal.contrib.local import deploy, ministack, processes
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.processes import Server
from epochal.contrib.local.programs import Places
from epochal.contrib.sekiban import open_dcb_events, open_projection_states
from epochal.dynamo.stores import Place, open_streams
from epochal.feed.events import FeedEvent
from epochal.feed.indexer import sources_of
from epochal.layout.tables import INDEX, store_tables
from epochal.plan.values import Item
from epochal.settings import Settings
from tests.deploy.test_http_api import Caller
from tests.docs.console import Example, examples
from tests.docs.shell import commands, exported, request_of
from tests.surfaces.care.exporting import written

pytestmark = [pytest.mark.deploy, pytest.mark.proof, pytest.mark.timeout(600)]

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "backup.md"
KINDS = tuple(spec.kind for spec in store_tables() if spec is not INDEX)
BUCKET = exported(GUIDE)["EPOCHAL_BUCKET"]
LARGE = os.urandom(500_000)
ORDER = aggregate_id("order", "1")
ROOM = "room:1"


@dataclass(frozen=True, slots=True)
class Store:
    """The tables of a store, by what ends their names, through the library."""

    endpoint: Endpoint
    ending: str = ""

    def table(self, kind: str) -> str:
        return f"epochal-prod-{kind}{self.ending}"

    @property
    def settings(self) -> Settings:
        return self.settings_with(self.table("index"))

    def settings_with(self, index: str) -> Settings:
        names = {f"{kind.replace('-', '_')}_table": self.table(kind) for kind in KINDS}
        return Settings.of(**names, index_table=index, bucket=BUCKET)

    @property
    def place(self) -> Place:
        return Place(endpoint=self.endpoint.url, region=self.endpoint.region)

    @property
    def tips(self) -> Any:
        return open_tips(self.table("tips"), bucket=BUCKET, place=self.place)

    @property
    def streams(self) -> Any:
        return open_streams(self.table("streams"), bucket=BUCKET, place=self.place)

    @property
    def aggregates(self) -> Any:
        return open_aggregates(self.table("journal"), self.table("snapshot"), place=self.place)

    @property
    def tagged(self) -> Any:
        return open_dcb_events(self.table("events"), self.table("tags"), place=self.place)

    @property
    def states(self) -> Any:
        return open_projection_states(self.table("projection-states"), bucket=BUCKET, place=self.place)

    def items(self, kind: str) -> Iterator[Item]:
        pages = self.endpoint.client("dynamodb").get_paginator("scan").paginate(TableName=self.table(kind))
        for page in pages:
            yield from page["Items"]

    def verifier(self) -> Verifier:
        mender = Mender(driver=self.place.driver(), index_table=self.table("index"))
        return Verifier(mender=mender, sources=sources_of(self.settings), settle=0)

    def feed(self, index: str = "") -> dict[str, list[FeedEvent]]:
        """Every event of the feed, with its data, by stream."""
        reader = self.place.opened(self.settings_with(index or self.table("index"))).feed
        found: dict[str, list[FeedEvent]] = {}
        for tail in reader.partitions():
            for page in reader.read(tail.partition, data=True):
                for item in page.items:
                    assert item.event is not None
                    found.setdefault(item.stream, []).append(item.event)
        return found


def fill(store: Store) -> None:
    """Events of every layout: a stream with calves, bodies in the bucket, states in the table and in the bucket."""
    for turn in range(3):
        long = [Event(type=f"L{turn}", data=os.urandom(30_000)) for _ in range(4)]
        store.tips.append("Long-1", long, unfolds=[Unfold(type="State", data=b"%d" % turn)])
        for number in range(5):
            store.tips.append(f"Cart-{number}", [Event(type="Added", data=b'{"turn":%d}' % turn)])
        store.streams.append("Page-1", [Event(type="Noted", data=os.urandom(2_000)) for _ in range(2)])
        event = AggregateEvent(type="Paid", data=b'{"turn":%d}' % turn)
        store.aggregates.append(ORDER, [event, event], snapshot=b'{"turn":%d}' % turn)
        store.tagged.append([Event(type="Booked", data=b"1.50", tags=(ROOM, f"guest:{turn}"))])
        assert list(Repairer(store.verifier()).repair())
    store.tips.append("Large-1", [Event(type="Large", data=LARGE)])
    store.states.save("small", "v1", [b"state"], events_processed=1, last_sortable_id="0" * 30)
    store.states.save("large", "v1", [LARGE], events_processed=1, last_sortable_id="0" * 30)
    assert list(Repairer(store.verifier()).repair())


@dataclass
class Restore:
    """A store that was, and what came of it.

    Attributes:
        fed: what the old feed had.
        etag: of a stream, as a client holds it.
        printed: what each `epochal` command of the guide printed, and was to print.
    """

    endpoint: Endpoint
    old: Store
    new: Store
    fed: dict[str, list[FeedEvent]] = field(default_factory=dict)
    etag: str = ""
    printed: list[tuple[Example, subprocess.CompletedProcess[str]]] = field(default_factory=list)

    def perform(self, command: list[str]) -> None:
        """What a command of the guide does, or would do on AWS."""
        if command[:2] == ["aws", "dynamodb"]:
            request = request_of(command)
            played = {
                "export_table_to_point_in_time": self._export,
                "restore_table_to_point_in_time": self._recover,
                "update_continuous_backups": lambda **_: None,
                # It would expire heads of aggregates: their 0 is no moment to DynamoDB, and a past one to it.
                "update_time_to_live": lambda **_: None,
            }
            asked = played.get(request.operation) or getattr(
                self.endpoint.client("dynamodb"), request.operation
            )
            asked(**request.parameters)

    def run(self, example: Example) -> None:
        """A command of Epochal's, in the environment that the guide exports."""
        environment = {**self.endpoint.environment(os.environ), **exported(GUIDE)}
        environment["EPOCHAL_ENDPOINT"] = self.endpoint.url
        ran = subprocess.run(
            [sys.executable, "-m", "epochal.cli.main", *example.arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        self.printed.append((example, ran))

    def _export(self, **asked: Any) -> None:
        """To the folder that the guide reads it from: its name is DynamoDB's to choose."""
        kind = asked["S3Prefix"].rpartition("/")[2]
        folder = re.search(
            rf"s3://{asked['S3Bucket']}/({asked['S3Prefix']}/AWSDynamoDB/\S+)", GUIDE.read_text()
        )
        if folder is not None:
            _write_export(
                self.endpoint.client("s3"), asked["S3Bucket"], folder[1], list(self.old.items(kind))
            )

    def _recover(self, **asked: Any) -> None:
        """A table with the keys and indexes of the old one, and its items: no stream, no expiry."""
        kind = asked["SourceTableName"].removeprefix("epochal-prod-")
        (spec,) = (spec for spec in store_tables() if spec.kind == kind)
        client = self.endpoint.client("dynamodb")
        create_table(client, asked["TargetTableName"], replace(spec, stream=False, ttl=None))
        for item in self.old.items(kind):
            client.put_item(TableName=asked["TargetTableName"], Item=item)


def _write_export(s3: Any, bucket: str, folder: str, items: list[Item]) -> None:
    lines = "".join(json.dumps({"Item": written(item)}) + "\n" for item in reversed(items))
    listed = {"itemCount": len(items), "dataFileS3Key": f"{folder}/data/one.json.gz"}
    for key, content in (
        (listed["dataFileS3Key"], gzip.compress(lines.encode())),
        (f"{folder}/manifest-files.json", json.dumps(listed).encode()),
        (f"{folder}/manifest-summary.json", b'{"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}'),
    ):
        s3.put_object(Bucket=bucket, Key=key, Body=content)


@pytest.fixture(scope="module")
def server(places: Places) -> Iterator[Server]:
    """An embedded AWS of this walk's own: its stage is deployed around other tables than the session's."""
    server = ministack.start(places)
    yield server
    processes.stop(server)


@pytest.fixture(scope="module")
def restore(server: Server) -> Restore:
    """The guide's commands, performed in their order, up to the deployment."""
    endpoint = ministack.endpoint(server)
    client, s3 = endpoint.client("dynamodb"), endpoint.client("s3")
    for bucket in (BUCKET, "epochal-backups"):
        s3.create_bucket(Bucket=bucket)
    old = Store(endpoint)
    for spec in store_tables():
        create_table(client, old.table(spec.kind), replace(spec, stream=False, ttl=None))
    fill(old)
    restore = Restore(endpoint, old, Store(endpoint, "-restored"), fed=old.feed())
    restore.etag = old.tips.load("Cart-1").token.text()
    before = [command for command in commands(GUIDE) if command[0] == "aws"]
    for command in before:
        restore.perform(command)
    old.tips.append("Cart-0", [Event(type="Lost")])  # after the backup
    for example in list(examples(GUIDE))[:2]:
        restore.run(example)
    return restore


@pytest.fixture(scope="module")
def deployment(places: Places, server: Server, restore: Restore) -> LocalDeployment:
    """The stage, deployed around the restored tables as the guide says."""
    (found,) = re.findall(r'^"prod": (\{.*?^\})$', GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    existing = {name: _here(restore.endpoint, place) for name, place in json.loads(found).items()}
    assert {f"existing_{kind.replace('-', '_')}" for kind in (*KINDS, "index", "bucket")} == existing.keys()
    stages = json.loads((places.root / "cdk.json").read_text())["context"]["stages"]
    stages["dev"] |= existing
    return deploy.deploy(places, server, context={"stages": json.dumps(stages)})


def _here(endpoint: Endpoint, place: str) -> str:
    """What a name of the guide's is called on the embedded AWS: account and moment are others."""
    if ":table/" not in place:
        return place
    name = place.partition(":table/")[2].partition("/")[0]
    table = endpoint.client("dynamodb").describe_table(TableName=name)["Table"]
    arn: str = table["LatestStreamArn" if "/stream/" in place else "TableArn"]
    return arn


def test_the_index_is_built_from_the_restored_tables_and_is_right(restore: Restore) -> None:
    assert len(restore.printed) == 2
    for example, ran in restore.printed:
        assert (ran.returncode, example.printed(ran.stdout)) == (0, True), ran.stdout + ran.stderr


def test_the_feed_is_the_old_one_stream_by_stream_and_body_by_body(restore: Restore) -> None:
    assert restore.new.feed() == restore.fed
    assert len(restore.fed) == 1 + 5 + 1 + 1 + 1 + 4
    (large,) = restore.fed["Large-1"]
    assert large.data == LARGE


def test_an_index_built_from_the_exports_has_the_same_feed(restore: Restore) -> None:
    (command,) = (each for each in commands(GUIDE) if each[:3] == ["epochal", "index", "rebuild"])
    create_table(restore.endpoint.client("dynamodb"), "epochal-prod-index-2", INDEX)
    sample = Example(shlex.join(command), ("tips  … streams, … events indexed", "…"))

    restore.run(sample)

    _, ran = restore.printed.pop()
    assert sample.printed(ran.stdout), ran.stdout + ran.stderr
    assert restore.new.feed("epochal-prod-index-2") == restore.fed


def test_states_and_snapshots_are_restored(restore: Restore) -> None:
    states = restore.new.states
    assert b"".join(states.open(states.find("small", "v1"))) == b"state"
    assert b"".join(states.open(states.find("large", "v1"))) == LARGE
    assert restore.new.aggregates.replay(ORDER).snapshot.data == b'{"turn":2}'
    assert restore.new.aggregates.lock(ORDER).seq_nr == 6
    (state,) = restore.new.tips.load("Long-1").unfolds
    assert state.data == b"2"


def test_writers_go_on_where_the_backup_ends_and_the_deployed_feed_follows(
    restore: Restore, deployment: LocalDeployment
) -> None:
    call = Caller(deployment)
    body = {"events": [{"type": "GoesOn", "data": 1}]}
    appended = call("POST", "/tips/Cart-1/events", body, If_Match=f'"{restore.etag}"')
    assert appended.status == 201, appended.content
    assert appended.json["first"] == 3
    order = call("GET", "/aggregates/order/1")
    assert order.status == 200, order.content
    paid = call("POST", "/aggregates/order/1/events", body, If_Match=order.headers["ETag"])
    assert paid.status == 201, paid.content
    assert paid.json["first"] == 7
    query = {"items": [{"tags": [ROOM]}]}
    read = call("POST", "/dcb/query", {"query": query}).json
    booked = {"events": [{**body["events"][0], "tags": [ROOM]}], "failIf": query, "after": read["position"]}
    assert call("POST", "/dcb/events", booked).status == 201
    assert call("POST", "/dcb/events", booked).status == 409
    assert [event["type"] for event in call("GET", "/tips/Cart-0/events").json["events"]] == ["Added"] * 3
    for partition, stream, index in ((0, "Cart-1", 3), (10_000, "order-1", 6), (20_000, ROOM, 3)):
        assert index in arrived(call, partition, stream, index)


def test_repair_after_the_deployment_finds_nothing_more(
    restore: Restore, deployment: LocalDeployment
) -> None:
    *_, example = examples(GUIDE)
    restore.run(example)
    _, ran = restore.printed.pop()
    assert (ran.returncode, example.printed(ran.stdout)) == (0, True), ran.stdout + ran.stderr


def arrived(call: Caller, partition: int, stream: str, index: int) -> list[int]:
    """Indices of a stream's events in the deployed feed, waited for."""
    ends = time.monotonic() + 120
    while True:
        page = call("GET", f"/feed/{partition}?from=0@0").json
        found = [item["index"] for item in page["items"] if item["stream"] == stream]
        if index in found or time.monotonic() > ends:
            assert found == sorted(set(found))
            return found
        time.sleep(0.2)
