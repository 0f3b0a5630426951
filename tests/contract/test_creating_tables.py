"""`epochal tables create`: tables as the stacks make them, on DynamoDB Local."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from epochal import Event, open_streams, open_tagged_events
from epochal.care.table_creation import create_table
from epochal.cli.main import epochal
from epochal.contrib.event_store_adapter import aggregate_id, open_aggregates
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.stores import Place
from epochal.dynamo.table_kinds import specs
from epochal.plan.tables import TableSpec

pytestmark = pytest.mark.ddbl


def run(ddbl: Endpoint, *arguments: str) -> Result:
    return CliRunner().invoke(epochal, ["--endpoint", ddbl.url, *arguments])


def described(ddbl: Endpoint, name: str) -> Any:
    return ddbl.client("dynamodb").describe_table(TableName=name)["Table"]


@pytest.mark.parametrize("spec", specs().values(), ids=specs())
def test_each_kind_has_the_keys_the_stream_the_indexes_and_the_expiry_of_a_stack_s(
    ddbl: Endpoint, spec: TableSpec
) -> None:
    name = f"made-{spec.kind}"
    made = run(ddbl, f"--{spec.kind}-table", name, "tables", "create", "--protect")
    assert (made.exit_code, made.output) == (0, f"{name}  created\n"), made.output
    table, client = described(ddbl, name), ddbl.client("dynamodb")
    assert [each["AttributeName"] for each in table["KeySchema"]] == list(spec.keys)
    assert table["StreamSpecification"]["StreamViewType"] == ("NEW_IMAGE" if spec.stream else "KEYS_ONLY")
    assert {each["IndexName"] for each in table.get("GlobalSecondaryIndexes", ())} == {
        each.name for each in spec.indexes
    }
    expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert expiry.get("AttributeName") == spec.ttl
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["DeletionProtectionEnabled"]
    again = run(ddbl, f"--{spec.kind}-table", name, "tables", "create")
    assert (again.exit_code, again.output) == (0, f"{name}  already exists\n")


def test_what_whoever_created_a_table_did_not_get_to_is_done_by_the_next_run(ddbl: Endpoint) -> None:
    spec, client = specs()["streams"], ddbl.client("dynamodb")
    assert spec.ttl is not None
    create_table(client, "half-made", replace(spec, ttl=None))
    assert run(ddbl, "--streams-table", "half-made", "tables", "create").exit_code == 0
    expiry = client.describe_time_to_live(TableName="half-made")["TimeToLiveDescription"]
    assert expiry["AttributeName"] == spec.ttl


def test_a_program_can_use_what_was_made(ddbl: Endpoint) -> None:
    named = ("--streams-table", "shop-streams", "--journal-table", "shop-j", "--snapshot-table", "shop-s")
    assert run(ddbl, *named, "tables", "create").exit_code == 0
    place = Place(endpoint=ddbl.url)
    assert open_streams("shop-streams", place=place).append("Order-1", [Event(type="Placed")]).version == 1
    tagged = open_tagged_events("shop-streams", place=place)
    assert tagged.append([Event(type="T", data=b"{}", tags=("a:1",))]).events
    users = open_aggregates("shop-j", "shop-s", place=place)
    users.append(aggregate_id("user", "1"), [AggregateEvent(type="A", data=b"{}")], snapshot=b"{}")


def test_units_are_provisioned_of_tables_and_of_their_indexes(ddbl: Endpoint) -> None:
    asked = ("--billing", "provisioned", "--read-units", "7", "--write-units", "8")
    assert run(ddbl, "--journal-table", "provisioned-journal", "tables", "create", *asked).exit_code == 0
    table = described(ddbl, "provisioned-journal")
    for each in (table, *table["GlobalSecondaryIndexes"]):
        units = each["ProvisionedThroughput"]
        assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (7, 8)


def test_a_table_of_another_kind_is_left_as_it_is_and_named(ddbl: Endpoint) -> None:
    assert run(ddbl, "--journal-table", "other", "tables", "create").exit_code == 0
    refused = run(ddbl, "--streams-table", "other", "tables", "create")
    assert "its keys are not those of a table of streams" in str(refused.exception)
    assert run(ddbl, "--read-models-table", "no-stream", "tables", "create").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("tables", "create"),
        ("--streams-table", "s", "tables", "create", "--billing", "provisioned"),
        ("--stack", "x", "--streams-table", "s", "tables", "create"),
    ],
    ids=["no table", "no units", "a stack"],
)
def test_what_makes_no_sense_is_a_mistake_of_the_command_line(ddbl: Endpoint, arguments: list[str]) -> None:
    assert run(ddbl, *arguments).exit_code == 2
