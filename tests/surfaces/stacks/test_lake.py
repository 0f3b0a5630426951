"""The lake: what is deployed for it, what Firehose and those who ask may do, and what its view answers."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template

from epochal.cdk import EventStore
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources
from epochal.cdk.targets import TARGET
from epochal.contrib.lake.cdk import COLUMN_TYPES, Lake, once, view_text
from epochal.contrib.publish.cdk import Publish
from epochal.contrib.publish.publication import publication_of
from epochal.contrib.publish.rows import ROW_AT
from epochal.contrib.transfer.rows import COLUMNS, VERSION
from tests.docs.test_links import anchors
from tests.surfaces.stacks.templates import ROOT
from tests.surfaces.stacks.test_lint import lint

Resources = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def shipped(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line each for functions and wheels."""
    monkeypatch.setattr(Sources, "shipped", lambda: sources)
    monkeypatch.delenv(TARGET, raising=False)


@pytest.fixture(scope="module")
def lake(sources: Sources) -> Iterator[Resources]:
    """What a stack has that is given a lake, by logical ids."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sources, "shipped", lambda: sources)
        stack = Stack(App(), "Shop")
        made = Lake(stack, "Lake", store=stored(stack), categories=["Order"], expire_days=400)
        made.grant_query(iam.Role(stack, "Analyst", assumed_by=iam.AccountRootPrincipal()))
        yield template(stack)["Resources"]


def stored(stack: Stack, **options: Any) -> EventStore:
    return EventStore(stack, "Events", api=None, watch=False, layouts=["pages"], **options)


def template(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = Template.from_stack(stack).to_json()
    return found


def one(resources: Resources, type_: str, begin: str = "Lake") -> dict[str, Any]:
    (found,) = (
        each["Properties"]
        for id_, each in resources.items()
        if each["Type"] == type_ and id_.startswith(begin)
    )
    return found


def delivery(resources: Resources) -> dict[str, Any]:
    found: dict[str, Any] = one(resources, "AWS::KinesisFirehose::DeliveryStream")
    return found


def tables(resources: Resources) -> dict[str, dict[str, Any]]:
    found = [each["Properties"] for each in resources.values() if each["Type"] == "AWS::Glue::Table"]
    return {each["TableInput"]["Name"]: each["TableInput"] for each in found}


def statements(role: dict[str, Any]) -> list[dict[str, Any]]:
    (policy,) = role["Policies"]
    found: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return found


DEPRECATED = """
import sys
from pathlib import Path
from aws_cdk import App, Stack
from epochal.cdk.sources import Sources
from tests.surfaces.stacks.templates import library_in, sources_in
from tests.surfaces.stacks.test_lake import Lake, stored

sources = sources_in(library_in(Path(sys.argv[1])))
Sources.shipped = lambda: sources
stack = Stack(App(), "Shop")
Lake(stack, "Lake", store=stored(stack), categories=["Order"])
"""


def test_a_lake_uses_nothing_of_cdk_that_is_deprecated(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEPRECATED, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "JSII_DEPRECATED": "fail"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_firehose_converts_to_parquet_with_the_columns_of_the_table(lake: Resources) -> None:
    to = delivery(lake)["ExtendedS3DestinationConfiguration"]
    conversion = to["DataFormatConversionConfiguration"]
    assert conversion["OutputFormatConfiguration"]["Serializer"]["ParquetSerDe"]["Compression"] == "SNAPPY"
    assert conversion["InputFormatConfiguration"]["Deserializer"].keys() == {"OpenXJsonSerDe"}
    schema = conversion["SchemaConfiguration"]
    assert (schema["DatabaseName"], schema["TableName"]) == ("shop_events_lake", "deliveries")
    assert (to["CompressionFormat"], to["BufferingHints"]) == (
        "UNCOMPRESSED",
        {"IntervalInSeconds": 300, "SizeInMBs": 128},
    )
    assert delivery(lake)["DeliveryStreamEncryptionConfigurationInput"] == {"KeyType": "AWS_OWNED_CMK"}


def test_athena_finds_the_folder_of_each_day_that_firehose_writes_without_a_crawler(lake: Resources) -> None:
    table, to = tables(lake)["deliveries"], delivery(lake)["ExtendedS3DestinationConfiguration"]
    told = table["Parameters"]
    assert told["projection.enabled"] == "true"
    assert told["projection.day.range"].endswith(",NOW")
    (*_, folder) = told["storage.location.template"]["Fn::Join"][1]
    assert folder.replace("${day}", "!{timestamp:yyyy-MM-dd}") == f"/{to['Prefix']}"
    assert told["projection.day.format"] == "yyyy-MM-dd"
    assert table["PartitionKeys"] == [{"Name": "day", "Type": "date"}]
    assert to["ErrorOutputPrefix"].startswith("errors/!{firehose:error-output-type}/")


def test_the_columns_are_those_of_a_row_and_where_it_is_if_it_is_too_large(lake: Resources) -> None:
    """Files outlive the code: a column is never renamed, and never has another type."""
    assert VERSION == 1
    names = [each["Name"] for each in tables(lake)["deliveries"]["StorageDescriptor"]["Columns"]]
    assert names == [*(each.name for each in COLUMNS), ROW_AT]
    found = {each["Name"]: each["Type"] for each in tables(lake)["events"]["StorageDescriptor"]["Columns"]}
    assert found == {name: hive for name, (hive, _) in COLUMN_TYPES.items()}
    assert (found["index"], found["time"], found["tags"], found["gone"]) == (
        "bigint",
        "timestamp",
        "array<string>",
        "boolean",
    )


def test_firehose_may_write_below_two_prefixes_and_look_at_one_table(lake: Resources) -> None:
    role = one(lake, "AWS::IAM::Role", "LakeRole")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "firehose.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    found = {action: str(each["Resource"]) for each in statements(role) for action in [str(each["Action"])]}
    assert all("'*'" not in each for each in found.values())
    assert {re.findall(r"[a-z0-9]+:", each)[0] for each in found} == {"s3:", "glue:", "logs:"}
    writing = [each for each in statements(role) if "s3:PutObject" in each["Action"]]
    assert sorted(each["Resource"]["Fn::Join"][1][-1] for each in writing) == ["/errors/*", "/events/*"]
    assert "DeleteObject" not in str(role)


def test_the_reaction_may_put_records_to_this_delivery_stream_and_sends_rows(lake: Resources) -> None:
    function = one(lake, "AWS::Lambda::Function", "LakeRows")
    told = function["Environment"]["Variables"]["EPOCHAL_PUBLISH"]
    assert '"as_rows": true' in str(told)
    assert '"categories": ["Order"]' in str(told)
    (putting,) = [
        each
        for each in statements(one(lake, "AWS::IAM::Role", "LakeRowsFunction"))
        if "firehose" in str(each["Action"])
    ]
    assert putting["Action"] == "firehose:PutRecordBatch"
    assert putting["Resource"]["Fn::GetAtt"][0].startswith("LakeDelivery")


def test_files_are_private_and_results_and_errors_expire(lake: Resources) -> None:
    bucket = one(lake, "AWS::S3::Bucket", "LakeFiles")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["BucketEncryption"]
    rules = {each["Id"]: each for each in bucket["LifecycleConfiguration"]["Rules"]}
    days = {
        name: (each["Prefix"], each["ExpirationInDays"]) for name, each in rules.items() if "Prefix" in each
    }
    assert days == {"errors": ("errors/", 90), "athena": ("athena/", 7), "events": ("events/", 400)}
    policy = str(one(lake, "AWS::S3::BucketPolicy", "LakeFiles"))
    assert "aws:SecureTransport" in policy


def test_a_query_that_scans_too_much_is_ended_whatever_the_caller_says(lake: Resources) -> None:
    group = one(lake, "AWS::Athena::WorkGroup")
    settings = group["WorkGroupConfiguration"]
    assert settings["EnforceWorkGroupConfiguration"] is True
    assert settings["BytesScannedCutoffPerQuery"] == 100 * 10**9
    assert settings["ResultConfiguration"]["EncryptionConfiguration"] == {"EncryptionOption": "SSE_S3"}
    assert group["RecursiveDeleteOption"] is True


def test_who_may_ask_may_not_write_events(lake: Resources) -> None:
    policy = one(lake, "AWS::IAM::Policy", "Analyst")["PolicyDocument"]["Statement"]
    writing = [each for each in policy if "s3:PutObject" in each["Action"]]
    assert [each["Resource"]["Fn::Join"][1][-1] for each in writing] == ["/athena/*"]
    assert not re.search(r"glue:(Create|Update|Delete|Batch)", str(policy))
    assert "'*'" not in str([each["Resource"] for each in policy])


def test_all_of_it_goes_under_a_key_of_ones_own() -> None:
    stack = Stack(App(), "Shop", env=Environment(account="123456789012", region="eu-west-1"))
    Lake(stack, "Lake", store=stored(stack, kms_key=kms.Key(stack, "Key")))
    found = template(stack)["Resources"]
    (key,) = (id_ for id_, each in found.items() if each["Type"] == "AWS::KMS::Key")
    assert delivery(found)["DeliveryStreamEncryptionConfigurationInput"]["KeyType"] == "CUSTOMER_MANAGED_CMK"
    assert one(found, "AWS::S3::Bucket", "LakeFiles")["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    for type_, begin in (
        ("AWS::KinesisFirehose::DeliveryStream", "Lake"),
        ("AWS::S3::Bucket", "LakeFiles"),
        ("AWS::Athena::WorkGroup", "Lake"),
        ("AWS::IAM::Role", "LakeRole"),
    ):
        assert key in json.dumps(one(found, type_, begin)), type_


@pytest.mark.parametrize("preset", ["dev", "prod"])
def test_files_outlive_their_stack_where_data_do(preset: Any) -> None:
    stack = Stack(App(), "Shop")
    Lake(stack, "Lake", store=stored(stack, preset=preset))
    (bucket,) = (
        each
        for id_, each in template(stack)["Resources"].items()
        if each["Type"] == "AWS::S3::Bucket" and id_.startswith("LakeFiles")
    )
    assert bucket["DeletionPolicy"] == ("Retain" if preset == "prod" else "Delete")


def test_several_lakes_of_a_store_are_in_one_stack_and_share_nothing() -> None:
    stack = Stack(App(), "Shop")
    store = stored(stack)
    for id_ in ("Orders", "Cold Storage"):
        Lake(stack, id_, store=store)
    found = template(stack)["Resources"].values()
    databases = {
        each["Properties"]["DatabaseInput"]["Name"] for each in found if each["Type"] == "AWS::Glue::Database"
    }
    assert databases == {"shop_events_orders", "shop_events_cold_storage"}


def test_its_template_has_nothing_that_cloudformation_knows_to_be_wrong() -> None:
    stack = Stack(App(), "Shop", env=Environment(account="123456789012", region="eu-west-1"))
    Lake(stack, "Lake", store=stored(stack))
    assert list(lint(template(stack))) == []


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ({"buffer_seconds": 30}, "Lake.buffer_seconds must be a whole number from 60 to 900"),
        ({"buffer_mb": 5}, "Lake.buffer_mb must be a whole number from 64 to 128"),
        ({"query_gb": 0}, "Lake.query_gb must be a whole number from 1 to 1,000,000"),
        ({"name": "My_Lake"}, "Lake.name must be words"),
        ({"name": "a" * 60}, "must have at most 23 characters"),
        ({"categories": "Order"}, "must be a list of names, not 'Order'"),
    ],
)
def test_what_firehose_or_glue_would_refuse_is_refused_at_synthesis(said: dict[str, Any], rule: str) -> None:
    stack = Stack(App(), "Shop")
    with pytest.raises(BadSetting, match=rule):
        Lake(stack, "Lake", store=stored(stack), **said)


def test_rows_are_for_a_delivery_stream_alone() -> None:
    stack = Stack(App(), "Shop")
    with pytest.raises(BadSetting, match="as_rows needs a delivery stream"):
        Publish(stack, "Rows", store=stored(stack), to=sqs.Queue(stack, "To"), as_rows=True)


def test_each_alarm_of_its_own_has_an_entry_in_the_runbook(lake: Resources) -> None:
    runbook = ROOT / "docs" / "runbook.md"
    alarms = [each["Properties"] for each in lake.values() if each["Type"] == "AWS::CloudWatch::Alarm"]
    own = {each["AlarmName"]: each for each in alarms if each["Namespace"] == "AWS/Firehose"}
    assert own.keys() == {"shop-events-lake-lake-late", "shop-events-lake-lake-unconverted"}
    for name, each in own.items():
        _, _, anchor = each["AlarmDescription"].partition(" What to do: docs/runbook.md#")
        assert anchor == name.removeprefix("shop-events-").replace("lake-lake", "lake-name")
        assert anchor in anchors(runbook)
        assert each["Dimensions"][0]["Name"] == "DeliveryStreamName"
    assert own["shop-events-lake-lake-late"]["Threshold"] > 300


# What the view answers: its SQL is the same in Athena's dialect and DuckDB's.


def rows(*changed: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """A table of deliveries with these rows."""
    kinds = {"string": "VARCHAR", "bigint": "BIGINT", "timestamp": "TIMESTAMP", "boolean": "BOOLEAN"}
    base = dict.fromkeys(COLUMN_TYPES) | {
        "type": "Placed",
        "category": "Order",
        "stream": "Order-1",
        "index": 0,
    }
    database = duckdb.connect()
    columns = [f'"{name}" {kinds.get(hive, "VARCHAR[]")}' for name, (hive, _) in COLUMN_TYPES.items()]
    database.execute("CREATE SCHEMA lake")
    database.execute(f"CREATE TABLE lake.deliveries ({', '.join(columns)}, day DATE)")
    for each in changed:
        row = base | {"day": "2026-11-23"} | each
        database.execute(f"INSERT INTO lake.deliveries VALUES ({', '.join('?' * len(row))})", [*row.values()])
    return database


def asked(database: duckdb.DuckDBPyConnection, what: str) -> list[tuple[Any, ...]]:
    return database.execute(f"SELECT {what} FROM ({once('lake')}) AS events ORDER BY ALL").fetchall()


def test_the_view_has_an_event_once_that_came_twice_on_two_days() -> None:
    twice = {"data": "{}", "tags": ["a", "b"], "time": "2026-11-22"}
    found = rows(twice, twice | {"day": "2026-11-24"}, {"index": 1, "data": "[]"})
    assert asked(found, '"index", data, tags') == [(0, "{}", ["a", "b"]), (1, "[]", None)]


def test_the_view_tells_events_apart_that_differ_in_what_names_them() -> None:
    """An event with tags alone has no stream; several have one place in it, each in its own first tag."""
    tagged = {"stream": None, "index": 0, "category": "tag:order"}
    found = rows(
        {},
        {"stream": "Order-2"},
        {"index": 1},
        {"category": "order"},
        tagged | {"id": "1"},
        tagged | {"id": "2"},
        tagged | {"id": "2"},
    )
    assert asked(found, "count(*)") == [(6,)]


@pytest.mark.parametrize(
    "condition", ["time > TIMESTAMP '2026-11-01'", "stream = 'Order-1'", "type = 'Placed'"]
)
def test_a_condition_on_what_names_an_event_is_asked_of_the_files(condition: str) -> None:
    """Or a query of an hour scans all that there ever was. Columns that nobody asks for are not read."""
    found = rows({"time": "2026-12-01"}, {"stream": "Order-2", "type": "A", "time": "2026-01-01"})
    asking = f"EXPLAIN SELECT data FROM ({once('lake')}) WHERE {condition}"
    ((_, planned),) = found.execute(asking).fetchall()
    before, _, below = planned.partition("Group By")
    assert "Filter" in below
    assert "Filter" not in before
    assert "metadata" not in planned


def test_the_view_is_what_athena_writes_down_itself(lake: Resources) -> None:
    view = tables(lake)["events"]
    assert (view["TableType"], view["Parameters"]["presto_view"]) == ("VIRTUAL_VIEW", "true")
    assert view["ViewOriginalText"] == view_text("shop_events_lake")
    told = json.loads(b64decode(re.fullmatch(r"/\* Presto View: (\S+) \*/", view["ViewOriginalText"])[1]))  # type: ignore[index]
    assert told["originalSql"] == once("shop_events_lake")
    assert (told["catalog"], told["schema"]) == ("awsdatacatalog", "shop_events_lake")
    assert {each["name"]: each["type"] for each in told["columns"]} == {
        name: presto for name, (_, presto) in COLUMN_TYPES.items()
    }


def test_the_environment_tells_the_function_to_send_rows(lake: Resources) -> None:
    function = one(lake, "AWS::Lambda::Function", "LakeRows")
    told = function["Environment"]["Variables"]["EPOCHAL_PUBLISH"]
    text = "".join(part if isinstance(part, str) else "lake" for part in told["Fn::Join"][1])
    publication = publication_of({"EPOCHAL_PUBLISH": text})
    assert (publication.to, publication.name, publication.as_rows) == ("firehose", "lake", True)


# The guide.

GUIDE = (ROOT / "docs" / "guide" / "lake.md").read_text()


def blocks(language: str) -> list[str]:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    return found


def test_the_guides_lake_is_deployed(sources: Sources) -> None:
    shop = Stack(App(), "Shop")
    stack = Stack(shop.node.root, "Lakes")
    role = iam.Role(stack, "Analyst", assumed_by=iam.AccountRootPrincipal())
    for each in blocks("py"):
        exec(each, {"stack": stack, "store": stored(shop), "analyst": role})  # noqa: S102
    assert set(tables(template(stack)["Resources"])) == {"deliveries", "events"}
    (app,) = blocks("py")
    assert 'Lake(stack, "Lake", store=store' in app


def test_the_guides_queries_answer() -> None:
    database = rows(*[{"index": k, "data": '{"total": 12.5}', "time": "2026-11-23"} for k in (0, 1, 1)])
    database.execute(f"CREATE VIEW lake.events AS {once('lake')}")
    database.execute("CREATE MACRO json_extract_scalar(json, path) AS json_extract_string(json, path)")
    database.execute("USE lake")
    answers = [database.execute(each).fetchall() for each in blocks("sql")]
    assert answers[0] == [("Placed", 2, 25.0)]
    assert answers[1] == [(3,)]


def test_the_guide_names_each_argument_and_its_default() -> None:
    told = dict(re.findall(r"^- `(\w+)` \(([^)]+)\):", GUIDE, re.MULTILINE))
    arguments = {
        name: each.default
        for name, each in inspect.signature(Lake.__init__).parameters.items()
        if name not in ("self", "scope", "id_", "store")
    }
    assert told.keys() == arguments.keys()
    for name, default in arguments.items():
        assert default is None or told[name].strip() == str(default), name
