"""The store stack: tables as FORMATS has them, and what production adds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk.assertions import Template

from epochal.cdk.parts.iam_statements import BODIES, UPLOADS
from epochal.cdk.parts.tables import keyed_table
from epochal.cdk.stages import STAGES
from epochal.codec import bucket_bodies
from epochal.codec.bucket_bodies import PREFIX
from epochal.contrib.equinox.port import ARCHIVE, TIPS
from epochal.layout.tables import READ_MODELS, every_table, store_tables
from epochal.pages.items import ARCHIVE as STREAMS_ARCHIVE
from epochal.pages.items import STREAMS
from epochal.plan.tables import IndexSpec, KeyAttribute, TableSpec
from tests.surfaces.stacks.templates import CHOSEN, SPARSE, Deployment, Synthesise

TABLE = "AWS::DynamoDB::GlobalTable"
BUCKET = "AWS::S3::Bucket"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234"
STREAM = "arn:aws:dynamodb:eu-west-1:123456789012:table/kept/stream/2026-01-01T00:00:00.000"
OPTIONAL = {"read_models": True, "archive": True, "timers": True}
ELSEWHERE = dict.fromkeys(
    ("existing_read_models", "existing_archive", "existing_streams_archive", "existing_timers"),
    STREAM.partition("/stream/")[0],
)


@pytest.mark.parametrize("spec", every_table(), ids=lambda spec: spec.kind)
def test_a_table_has_the_keys_expiry_and_stream_of_its_specification(
    synthesise: Synthesise, spec: TableSpec
) -> None:
    table = table_of(synthesise(**OPTIONAL), spec)
    kinds = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    assert table["KeySchema"] == [
        {"AttributeName": spec.partition.name, "KeyType": "HASH"},
        {"AttributeName": spec.sort.name if spec.sort else None, "KeyType": "RANGE"},
    ]
    keyed: list[Any] = [*spec.indexes, spec]
    assert kinds == {key.name: key.type for each in keyed for key in (each.partition, each.sort) if key}
    found = table.get("GlobalSecondaryIndexes", [])
    assert {each["IndexName"]: _keys(each) for each in found} == {
        index.name: (index.partition.name, index.sort.name if index.sort else None) for index in spec.indexes
    }
    assert {each["IndexName"]: each["Projection"]["ProjectionType"] for each in found} == {
        index.name: "KEYS_ONLY" if index.keys_only else "ALL" for index in spec.indexes
    }
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE" if spec.stream else "KEYS_ONLY"}
    ttl = {"AttributeName": spec.ttl, "Enabled": True} if spec.ttl else None
    assert table.get("TimeToLiveSpecification") == ttl


def test_secondary_indexes_project_keys_or_everything() -> None:
    aid, number = KeyAttribute(name="aid", type="S"), KeyAttribute(name="nr", type="N")
    spec = TableSpec(
        kind="journal",
        partition=KeyAttribute(name="pkey", type="S"),
        indexes=(
            IndexSpec(name="all", partition=aid, sort=number),
            IndexSpec(name="keys", partition=aid, keys_only=True),
        ),
    )
    stack = Stack()
    keyed_table(stack, "Journal", spec=spec, stage=STAGES["dev"], key=None)
    (table,) = Template.from_stack(stack).find_resources(TABLE).values()
    found = {each["IndexName"]: each for each in table["Properties"]["GlobalSecondaryIndexes"]}
    assert found["all"]["Projection"] == {"ProjectionType": "ALL"}
    assert [key["AttributeName"] for key in found["all"]["KeySchema"]] == ["aid", "nr"]
    assert found["keys"]["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_a_table_that_is_taken_over_is_known_by_its_own_arn_whichever_was_given() -> None:
    """What is granted on a stream's ARN is granted on no table."""
    stack, arn = Stack(), STREAM.partition("/stream/")[0]
    read = keyed_table(stack, "Tips", spec=TIPS, stage=STAGES["dev"], key=None, existing=STREAM)
    bare = keyed_table(stack, "Models", spec=READ_MODELS, stage=STAGES["dev"], key=None, existing=arn)
    assert [(each.table_name, each.table_arn) for each in (read, bare)] == [("kept", arn)] * 2
    assert (read.table_stream_arn, bare.table_stream_arn) == (STREAM, None)


@pytest.mark.parametrize("days", [0, 1, 35])
def test_a_table_can_be_restored_for_as_many_days_as_its_stage_says_or_not_at_all(days: int) -> None:
    stack = Stack()
    keyed_table(stack, "Tips", spec=TIPS, stage=replace(STAGES["dev"], recovery_days=days), key=None)
    (table,) = Template.from_stack(stack).find_resources(TABLE).values()
    (replica,) = table["Properties"]["Replicas"]
    recovery = replica["PointInTimeRecoverySpecification"]
    assert (recovery["PointInTimeRecoveryEnabled"], recovery.get("RecoveryPeriodInDays", 0)) == (
        days > 0,
        days,
    )


@pytest.mark.parametrize("stage", ["dev", "staging", "prod"])
def test_tables_are_named_after_stage_and_kind(synthesise: Synthesise, stage: str) -> None:
    tables = synthesise(stage).of_type("store", TABLE).values()
    names = {f"epochal-{stage}-{spec.kind}" for spec in store_tables()}
    assert {table["Properties"]["TableName"] for table in tables} == names


def test_there_are_tables_of_read_models_and_timers_where_the_stage_wants_them(
    synthesise: Synthesise,
) -> None:
    plain, wanted = synthesise(), synthesise(**OPTIONAL)
    added = set(wanted.of_type("store", TABLE)) - set(plain.of_type("store", TABLE))
    wanted_ids = {"ReadModels539C9E0D", "ArchiveDA4CB258", "StreamsArchive0CFCA05D", "Timers8BCB401C"}
    assert added == wanted_ids, "another id would be another table"
    outputs = wanted.template("store")["Outputs"]
    assert outputs["ReadModelsTable"]["Value"] == {"Ref": "ReadModels539C9E0D"}
    assert outputs["TimersTable"]["Value"] == {"Ref": "Timers8BCB401C"}
    assert "ReadModelsTable" not in plain.template("store")["Outputs"]
    elsewhere = synthesise(**OPTIONAL, **ELSEWHERE)
    assert set(elsewhere.of_type("store", TABLE)) == set(plain.of_type("store", TABLE))
    assert elsewhere.template("store")["Outputs"]["ReadModelsTable"]["Value"] == "kept"


def test_there_is_an_archive_of_each_layout_where_the_stage_wants_one(synthesise: Synthesise) -> None:
    plain, wanted = synthesise(), synthesise(**OPTIONAL)
    found, tips = table_of(wanted, ARCHIVE), table_of(wanted, TIPS)
    assert found["KeySchema"] == tips["KeySchema"]
    assert table_of(wanted, STREAMS_ARCHIVE)["KeySchema"] == table_of(wanted, STREAMS)["KeySchema"]
    assert wanted.template("store")["Outputs"]["ArchiveTable"]["Value"] == {"Ref": "ArchiveDA4CB258"}
    assert not {"ArchiveTable", "StreamsArchiveTable"} & set(plain.template("store")["Outputs"])
    elsewhere = synthesise(**OPTIONAL, **ELSEWHERE)
    assert set(elsewhere.of_type("store", TABLE)) == set(plain.of_type("store", TABLE))
    assert elsewhere.template("store")["Outputs"]["ArchiveTable"]["Value"] == "kept"


def test_production_tables_are_kept_protected_and_recoverable(synthesise: Synthesise) -> None:
    tables = synthesise("prod", **OPTIONAL).of_type("store", TABLE).values()
    assert len(tables) == len(every_table())
    for table in tables:
        (replica,) = table["Properties"]["Replicas"]
        assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
        assert replica["DeletionProtectionEnabled"] is True
        assert replica["PointInTimeRecoverySpecification"] == {
            "PointInTimeRecoveryEnabled": True,
            "RecoveryPeriodInDays": 35,
        }


def test_production_stacks_refuse_to_be_deleted_and_development_ones_do_not(synthesise: Synthesise) -> None:
    assert all(stack.termination_protection for stack in synthesise("prod").stacks.values())
    assert not any(stack.termination_protection for stack in synthesise("dev").stacks.values())


def test_development_tables_go_with_their_stack(synthesise: Synthesise) -> None:
    for table in synthesise("dev").of_type("store", TABLE).values():
        assert table["DeletionPolicy"] == "Delete"
        assert table["Properties"]["Replicas"][0]["DeletionProtectionEnabled"] is False


def test_tables_are_on_demand_under_the_stages_ceilings(synthesise: Synthesise) -> None:
    for table in synthesise(**CHOSEN).of_type("store", TABLE).values():
        properties = table["Properties"]
        assert properties["BillingMode"] == "PAY_PER_REQUEST"
        assert properties["WriteOnDemandThroughputSettings"] == {"MaxWriteRequestUnits": 30}
        assert properties["Replicas"][0]["ReadOnDemandThroughputSettings"] == {"MaxReadRequestUnits": 70}


def test_no_ceiling_is_set_where_the_stage_has_none(synthesise: Synthesise) -> None:
    for table in synthesise("prod").of_type("store", TABLE).values():
        assert "WriteOnDemandThroughputSettings" not in table["Properties"]
        assert "ReadOnDemandThroughputSettings" not in table["Properties"]["Replicas"][0]


def test_provisioned_tables_scale_between_the_stages_units(synthesise: Synthesise) -> None:
    stage = synthesise("prod", **SPARSE)
    for table in stage.of_type("store", TABLE).values():
        properties = table["Properties"]
        write = properties["WriteProvisionedThroughputSettings"]["WriteCapacityAutoScalingSettings"]
        read = properties["Replicas"][0]["ReadProvisionedThroughputSettings"][
            "ReadCapacityAutoScalingSettings"
        ]
        assert properties["BillingMode"] == "PROVISIONED"
        assert (write["MinCapacity"], write["MaxCapacity"]) == (3, 30)
        assert (read["MinCapacity"], read["MaxCapacity"]) == (2, 20)


@pytest.mark.parametrize(("kind", "name"), [("store", "Bodies"), ("feed", "Failures")])
def test_buckets_are_encrypted_closed_and_versioned(synthesise: Synthesise, kind: str, name: str) -> None:
    bucket = synthesise("prod").named(kind, BUCKET, name)
    properties = bucket["Properties"]
    assert bucket["DeletionPolicy"] == "Retain"
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    assert _encryption(properties) == {"SSEAlgorithm": "AES256"}
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert properties["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]


@pytest.mark.parametrize("kind", ["store", "feed"])
def test_buckets_refuse_requests_without_tls(synthesise: Synthesise, kind: str) -> None:
    (policy,) = synthesise().of_type(kind, "AWS::S3::BucketPolicy").values()
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Principal"] == {"AWS": "*"}
    assert statement["Action"] == "s3:*"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_bodies_and_states_never_expire_but_what_replaced_or_broke_off_does(synthesise: Synthesise) -> None:
    rules = synthesise().named("store", BUCKET, "Bodies")["Properties"]["LifecycleConfiguration"]["Rules"]
    elsewhere = [rule for rule in rules if rule.get("Prefix") != UPLOADS]
    assert not any("ExpirationInDays" in rule or "Transitions" in rule for rule in elsewhere)
    assert any("NoncurrentVersionExpiration" in rule for rule in rules)
    assert any("AbortIncompleteMultipartUpload" in rule for rule in rules)


def test_uploads_that_nobody_claims_expire_with_all_that_is_left_of_them(synthesise: Synthesise) -> None:
    rules = synthesise().named("store", BUCKET, "Bodies")["Properties"]["LifecycleConfiguration"]["Rules"]
    expiring, markers = (rule for rule in rules if rule.get("Prefix") == UPLOADS)
    assert expiring["ExpirationInDays"] == 1
    assert expiring["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}
    assert markers["ExpiredObjectDeleteMarker"] is True
    assert {expiring["Status"], markers["Status"]} == {"Enabled"}


def test_a_key_of_ones_own_encrypts_tables_and_buckets(synthesise: Synthesise) -> None:
    stage = synthesise(kms_key=KEY)
    for table in stage.of_type("store", TABLE).values():
        assert table["Properties"]["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}
        assert table["Properties"]["Replicas"][0]["SSESpecification"] == {"KMSMasterKeyId": KEY}
    for kind in ("store", "feed"):
        (bucket,) = stage.of_type(kind, BUCKET).values()
        assert _encryption(bucket["Properties"]) == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}


def test_retained_tables_and_bucket_are_used_without_being_managed(synthesise: Synthesise) -> None:
    arns = {spec.kind: STREAM.replace("kept", f"kept-{spec.kind}") for spec in store_tables()}
    followed = {spec.kind for spec in store_tables() if spec.stream}
    existing = {kind: arn if kind in followed else arn.partition("/stream/")[0] for kind, arn in arns.items()}
    settings = {f"existing_{kind.replace('-', '_')}": arn for kind, arn in existing.items()}
    stage = synthesise(**settings, existing_bucket="kept-bodies")
    # The guard is there all the same: a stack without any resource would not be deployed, nor its outputs.
    types = {each["Type"] for each in stage.template("store")["Resources"].values()}
    assert not {kind for kind in types if kind.startswith(("AWS::DynamoDB::", "AWS::S3::", "AWS::SSM::"))}
    assert "Custom::EpochalStore-epochal-dev" in types
    mappings = stage.of_type("feed", "AWS::Lambda::EventSourceMapping").values()
    read = followed - {"index"}  # whose stream no function reads
    assert {each["Properties"]["EventSourceArn"] for each in mappings} == {arns[kind] for kind in read}
    variables = {**_variables(stage, "Append"), **_variables(stage, "Feed")}
    assert variables["EPOCHAL_BUCKET"] == "kept-bodies"
    for kind in arns:
        assert variables[f"EPOCHAL_{kind.upper().replace('-', '_')}_TABLE"] == f"kept-{kind}"


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_what_holds_data_never_changes_its_logical_id(synthesise: Synthesise, stage: str) -> None:
    """Another id is another resource: an update would make new tables, and the import recipe would fail."""
    deployment = synthesise(stage)
    assert set(deployment.of_type("store", TABLE)) == {
        "Tips709593E6",
        "Index4A79713B",
        "JournalAE8C44B2",
        "Snapshot86FBE57A",
        "EventsD32975C2",
        "Tags32675B89",
        "Streams72478C78",
        "ProjectionStates9CC80B4A",
    }
    assert set(deployment.of_type("store", BUCKET)) == {"Bodies3FF2AA63"}


def test_outputs_name_what_a_client_needs(synthesise: Synthesise) -> None:
    store, api = (synthesise().template(kind)["Outputs"] for kind in ("store", "api"))
    tables = {"TipsTable", "IndexTable", "JournalTable", "SnapshotTable"}
    assert {
        *tables,
        "EventsTable",
        "TagsTable",
        "StreamsTable",
        "ProjectionStatesTable",
        "BucketName",
    } <= set(store)
    facts = {
        "JournalShards": "64",
        "JournalKeys": "javascript",
        "JournalSerializer": "javascript",
        "WriteShards": "1",
        "TypeHeads": "false",
        "Equinox": "false",
        "StatesPrefix": "projections",
    }
    assert {name: store[name]["Value"] for name in facts} == facts
    assert not {"Service", "AggregateTypes"} & set(store)
    assert {"ApiUrl", "ApiId"} <= set(api)


def test_outputs_name_the_tenant_and_the_types_of_aggregates_where_there_are_any(
    synthesise: Synthesise,
) -> None:
    outputs = synthesise(**CHOSEN).template("store")["Outputs"]
    facts = {"Service": "shop", "TypeHeads": "true", "AggregateTypes": "order,user-account"}
    facts |= {"JournalKeys": "rust", "JournalSerializer": "java"}
    assert {name: outputs[name]["Value"] for name in facts} == facts


def test_bodies_are_where_the_library_keeps_them() -> None:
    assert (BODIES, UPLOADS) == (PREFIX, bucket_bodies.UPLOADS)


def table_of(deployment: Deployment, spec: TableSpec) -> dict[str, Any]:
    """The table of a specification, as deployed."""
    (found,) = [
        each["Properties"]
        for each in deployment.of_type("store", TABLE).values()
        if each["Properties"]["TableName"].endswith(f"-dev-{spec.kind}")
    ]
    properties: dict[str, Any] = found
    return properties


def _variables(deployment: Deployment, function: str) -> dict[str, Any]:
    properties = deployment.named("api", "AWS::Lambda::Function", function)["Properties"]
    variables: dict[str, Any] = properties["Environment"]["Variables"]
    return variables


def _keys(index: dict[str, Any]) -> tuple[str, str | None]:
    names = [key["AttributeName"] for key in index["KeySchema"]]
    return names[0], names[1] if len(names) > 1 else None


def _encryption(properties: dict[str, Any]) -> dict[str, str]:
    (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    found: dict[str, str] = rule["ServerSideEncryptionByDefault"]
    return found


def classes(deployed: Deployment) -> dict[str, str]:
    """The class of each table that is not of the standard one, and of its replicas, by the table's kind."""
    found = {}
    for table in deployed.of_type("store", TABLE).values():
        (name,) = {each.get("TableClass", "") for each in table["Properties"]["Replicas"]}
        if name:
            found[table["Properties"]["TableName"].removeprefix("epochal-prod-")] = name
    return found


def test_archives_are_kept_rather_than_asked_and_so_is_what_the_stage_says(synthesise: Synthesise) -> None:
    kept = "STANDARD_INFREQUENT_ACCESS"
    assert classes(synthesise("prod")) == {}
    assert classes(synthesise("prod", archive=True)) == {"archive": kept, "streams-archive": kept}
    assert classes(synthesise("prod", archive=True, infrequent_access=[])) == {}
    more = synthesise(
        "prod", infrequent_access=["streams"], region="eu-west-1", replica_region="eu-central-1"
    )
    assert classes(more) == {"streams": kept}
