"""An application whose stacks name accounts and regions is deployed as it is, and each of its stores is met there."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from epochal.contrib.local import deploy, ministack, processes
from epochal.contrib.local.commands import local
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.programs import Places
from epochal.model.events import Event

pytestmark = [pytest.mark.deploy, pytest.mark.proof, pytest.mark.timeout(600)]

APP = """
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_sqs as sqs

from epochal.cdk import EventStore
from epochal.contrib.publish.cdk import Publish

app = App()
for name, account, region in (
    ("Berlin", "123456789012", "eu-central-1"),
    ("Dublin", "123456789012", "eu-west-1"),
    ("Other", "210987654321", "eu-central-1"),
):
    stack = Stack(app, name, stack_name="Shop", env=Environment(account=account, region=region))
    store = EventStore(stack, "Events", layouts=["pages"], api=None)
    if name == "Other":
        Publish(stack, "Orders", store=store, to=sqs.Queue(stack, "Queue", queue_name="orders"))
        stream = kinesis.Stream(stack, "Stream", stream_name="orders", shard_count=1)
        Publish(stack, "Totals", store=store, to=stream, entry="publish", mapping="totals:shown")
app.synth()
"""
MAPPING = """
from epochal import FeedEvent
from epochal.contrib.publish.cloudevents import CloudEvent


def shown(event: FeedEvent) -> CloudEvent | None:
    total = event.json().get("total")
    return None if total is None else CloudEvent(type="com.example.total.v1", data={"total": total})
"""
PLACES = {
    "Berlin": ("123456789012", "eu-central-1"),
    "Dublin": ("123456789012", "eu-west-1"),
    "Other": ("210987654321", "eu-central-1"),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """A project that runs, with nothing said of an account."""
    root = tmp_path_factory.mktemp("elsewhere")
    (root / "app.py").write_text(APP)
    (root / "publish").mkdir()
    (root / "publish" / "totals.py").write_text(MAPPING)
    (root / "cdk.json").write_text(json.dumps({"app": "python app.py"}))
    places = Places(root)
    server = ministack.up(places, port=processes.free_port())
    deploy.deploy(places, server)
    yield places
    ministack.down(places)


@pytest.fixture
def deployed(places: Places) -> LocalDeployment:
    return deploy.current(places)


def test_each_stack_is_in_the_account_and_region_that_it_names(deployed: LocalDeployment) -> None:
    found = {store.name: (store.endpoint.account, store.endpoint.region) for store in deployed.stores}
    assert found == PLACES
    for store in deployed.stores:
        assert store.settings.bucket == f"shop-events-bodies-{store.endpoint.account}-{store.endpoint.region}"
        store.open().streams.append("Order-1", [Event(type=f"PlacedIn{store.name}", data=b"{}")])
    for store in deployed.stores:  # each has tables of the same names, and its own events
        assert [each.type for each in store.open().streams.read("Order-1")] == [f"PlacedIn{store.name}"]


def test_events_go_through_the_functions_of_a_stack_in_another_account(deployed: LocalDeployment) -> None:
    store = deployed.store("Other")
    store.open().streams.append("Order-2", [Event(type="Placed", data=b"{}")])
    sqs = store.endpoint.client("sqs")
    url, found = sqs.get_queue_url(QueueName="orders")["QueueUrl"], set()
    for _ in range(300):  # as long as a busy machine may take; an idle one needs two
        for each in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get(
            "Messages", ()
        ):
            found.add(json.loads(each["Body"])["id"])
        if "Order-2@0" in found:
            return
    pytest.fail(f"only {found} came")


def test_what_is_published_is_as_the_apps_own_function_shows_it(deployed: LocalDeployment) -> None:
    store = deployed.store("Other")
    totals = [b"{}", b'{"total": 1.5}', b"{}", b'{"total": 2}']
    store.open().streams.append("Order-3", [Event(type="Placed", data=data) for data in totals])
    kinesis = store.endpoint.client("kinesis")
    (shard,) = kinesis.list_shards(StreamName="orders")["Shards"]
    asked = {"StreamName": "orders", "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    iterator, found = kinesis.get_shard_iterator(**asked)["ShardIterator"], []
    ends = time.monotonic() + 60
    while len(found) < 2 and time.monotonic() < ends:
        answer = kinesis.get_records(ShardIterator=iterator)
        iterator = answer["NextShardIterator"]
        found += [json.loads(each["Data"]) for each in answer["Records"]]
        time.sleep(0.2)
    seen = [(each["id"], each["type"], each["data"]) for each in found]
    kind = "com.example.total.v1"
    assert seen == [("Order-3@1", kind, {"total": 1.5}), ("Order-3@3", kind, {"total": 2})]


def test_a_shell_is_pointed_at_the_account_and_region_of_a_store(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places.root)
    told = CliRunner().invoke(local, ["env", "--store", "Dublin", "--json"], catch_exceptions=False)
    variables = json.loads(told.output)
    assert variables["AWS_ACCESS_KEY_ID"] == "123456789012"
    assert variables["AWS_REGION"] == variables["AWS_DEFAULT_REGION"] == "eu-west-1"
    status = json.loads(CliRunner().invoke(local, ["status", "--json"]).output)
    assert status["stores"]["Other"]["region"] == "eu-central-1"
    assert status["stores"]["Other"]["key"] == "210987654321"


def test_what_is_kept_is_kept_in_every_account(places: Places) -> None:
    """The last of this file: the server is another one afterwards."""
    before = deploy.current(places)
    for store in before.stores:
        store.open().streams.append("Kept-1", [Event(type=f"KeptIn{store.name}", data=b"{}")])
    ministack.down(places, keep=True)
    after = deploy.deploy(places, ministack.up(places))
    for store in after.stores:
        assert [each.type for each in store.open().streams.read("Kept-1")] == [f"KeptIn{store.name}"]
