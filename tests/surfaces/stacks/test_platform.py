"""What a platform team asks of a stage: where it may be, whose keys, whose name, and what it may cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from epochal.cdk.rules import BadSetting
from stacks.deployment import ACCOUNT, REGION
from stacks.stages import stage_from
from tests.support.account import TABLE
from tests.surfaces.stacks.templates import Deployment, Synthesise

HERE, THERE = "eu-west-1", "eu-central-1"
OURS, OTHERS = "123456789012", "210987654321"
KEY = f"arn:aws:kms:{HERE}:{OURS}:key/1234"
TOPIC = f"arn:aws:sns:{HERE}:{OURS}:alarms"
FUNCTION = "AWS::Lambda::Function"
CERTIFICATE = f"arn:aws:acm:{HERE}:{OURS}:certificate/1234"

ASKED: dict[str, Any] = {
    "account": OURS,
    "region": HERE,
    "alarm_topic": TOPIC,
    "boto3": "tested",
    "domain_name": "events.shop.example",
    "domain_certificate": CERTIFICATE,
    "environment_kms_key": KEY,
    "latency_ms": 800,
    "log_kms_key": KEY,
    "queue_kms_key": KEY,
    "timers": True,
    "warm_write_units": 8_000,
    "monthly_budget": 200,
    "reactions": {"board": {"entry": "board"}},
    "replica_region": THERE,
}


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials say where one is."""
    for name in (ACCOUNT, REGION):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def deployed(synthesise: Synthesise) -> Deployment:
    return synthesise("prod", **ASKED)


def test_a_stage_that_names_its_account_and_region_is_deployed_there_alone(deployed: Deployment) -> None:
    """CDK refuses credentials of another account, and deploys to the region that is named whatever the profile says."""
    assert {(each.account, each.region) for each in deployed.stacks.values()} == {(OURS, HERE)}


def test_credentials_of_another_account_are_refused_before_anything_is_synthesised(
    synthesise: Synthesise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ACCOUNT, OTHERS)
    with pytest.raises(
        BadSetting, match=f"is {OURS}, but the credentials belong to account {OTHERS}"
    ) as refused:
        synthesise("staging", account=OURS)
    assert refused.value.name == "stages.staging.account"


def test_a_stage_that_names_neither_goes_wherever_the_credentials_lead(synthesise: Synthesise) -> None:
    for each in synthesise("prod").stacks.values():
        assert "Token" in each.account
        assert "Token" in each.region


def test_the_embedded_aws_is_every_account(synthesise: Synthesise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ACCOUNT, OTHERS)
    assert "Token" in synthesise("prod", "embedded", **ASKED).stacks["store"].account


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"account": "1234"}, "account"),
        ({"account": 123456789012}, "account"),
        ({"region": "Ireland"}, "region"),
        ({"region": THERE, "kms_key": KEY}, "kms_key"),
        ({"region": THERE, "log_kms_key": KEY}, "log_kms_key"),
        ({"region": THERE, "alarm_topic": TOPIC}, "alarm_topic"),
        ({"region": HERE, "replica_region": HERE}, "replica_region"),
        ({"log_kms_key": "1234"}, "log_kms_key"),
        ({"region": THERE, "queue_kms_key": KEY}, "queue_kms_key"),
        ({"region": THERE, "environment_kms_key": KEY}, "environment_kms_key"),
        ({"latency_ms": 25_001}, "latency_ms"),
        ({"warm_write_units": 3_999}, "warm_write_units"),
        ({"warm_read_units": 11_999}, "warm_read_units"),
        ({"warm_read_units": 20_000, "max_read_units": 19_999}, "warm_read_units"),
        ({"domain_name": "events.shop.example"}, "domain_certificate"),
        ({"domain_certificate": CERTIFICATE}, "domain_certificate"),
        ({"domain_name": "shop", "domain_certificate": CERTIFICATE}, "domain_name"),
        ({"domain_name": "a.example", "domain_certificate": CERTIFICATE, "api": "urls"}, "domain_name"),
        (
            {"domain_name": "a.example", "domain_certificate": CERTIFICATE, "region": THERE},
            "domain_certificate",
        ),
        ({"monthly_budget": 200}, "alarm_topic"),
        ({"monthly_budget": -1, "alarm_topic": TOPIC}, "monthly_budget"),
    ],
)
def test_what_would_fail_only_once_it_is_deployed_is_refused(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(BadSetting) as refused:
        stage_from("prod", {"prod": settings})
    assert refused.value.name == f"stages.prod.{field}"


def test_every_log_has_the_key_that_was_named_and_none_without(
    deployed: Deployment, synthesise: Synthesise
) -> None:
    logs = [each["Properties"] for each in deployed.resources() if each["Type"] == "AWS::Logs::LogGroup"]
    assert len(logs) > 7
    assert {each["KmsKeyId"] for each in logs} == {KEY}
    plain = [each for each in synthesise("prod").resources() if each["Type"] == "AWS::Logs::LogGroup"]
    assert not [each for each in plain if "KmsKeyId" in each["Properties"]]


def test_every_function_has_the_boto3_that_was_tested_where_the_stage_wants_it_and_else_the_runtimes(
    deployed: Deployment, synthesise: Synthesise
) -> None:
    for kind in ("api", "feed", "reactions"):
        (layer,) = [each for each in deployed.of_type(kind, "AWS::Lambda::LayerVersion") if "Sdk" in each]
        for function in deployed.of_type(kind, "AWS::Lambda::Function").values():
            assert {"Ref": layer} in function["Properties"]["Layers"]
    assert not [
        each for each in synthesise("prod").of_type("api", "AWS::Lambda::LayerVersion") if "Sdk" in each
    ]


def test_the_gateway_has_a_name_and_says_where_dns_is_to_lead(deployed: Deployment) -> None:
    domain = deployed.named("api", "AWS::ApiGatewayV2::DomainName", "Domain")["Properties"]
    assert domain["DomainName"] == "events.shop.example"
    (configured,) = domain["DomainNameConfigurations"]
    assert configured["CertificateArn"] == CERTIFICATE
    mapping = deployed.named("api", "AWS::ApiGatewayV2::ApiMapping", "DomainMapping")["Properties"]
    assert "ApiMappingKey" not in mapping
    assert {"DomainTarget", "DomainZone", "ApiUrl"} <= deployed.template("api")["Outputs"].keys()


def test_every_replica_that_falls_behind_alarms(deployed: Deployment, synthesise: Synthesise) -> None:
    alarms = [each["Properties"] for each in deployed.of_type("watch", "AWS::CloudWatch::Alarm").values()]
    found = [each for each in alarms if each["AlarmName"].endswith("-replica-lags")]
    assert len(found) == len(deployed.of_type("store", "AWS::DynamoDB::GlobalTable"))
    for alarm in found:
        assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/DynamoDB", "ReplicationLatency")
        dimensions = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
        assert dimensions.keys() == {"TableName", "ReceivingRegion"}
        assert (dimensions["ReceivingRegion"], alarm["Threshold"]) == (THERE, 60_000)
    alone = synthesise("prod").of_type("watch", "AWS::CloudWatch::Alarm").values()
    assert not [each for each in alone if "replica" in each["Properties"]["AlarmName"]]


def test_what_the_stage_costs_a_month_is_told_before_it_is_too_much(deployed: Deployment) -> None:
    (budget,) = deployed.of_type("watch", "AWS::Budgets::Budget").values()
    about = budget["Properties"]["Budget"]
    assert about["BudgetLimit"] == {"Amount": 200, "Unit": "USD"}
    assert about["CostFilters"] == {"TagKeyValue": ["user:epochal:stage$prod"]}
    for told in budget["Properties"]["NotificationsWithSubscribers"]:
        assert told["Subscribers"] == [{"Address": TOPIC, "SubscriptionType": "SNS"}]


def test_every_queue_has_the_key_that_was_named_and_all_who_use_one_may_use_it(deployed: Deployment) -> None:
    queues = [each["Properties"] for each in deployed.resources() if each["Type"] == "AWS::SQS::Queue"]
    assert len(queues) == 6
    assert {each["KmsMasterKeyId"] for each in queues} == {KEY}
    assert not [each for each in queues if each.get("SqsManagedSseEnabled")]
    may = {"Action": ["kms:Decrypt", "kms:GenerateDataKey"], "Effect": "Allow", "Resource": KEY}
    for each in deployed.resources():
        if each["Type"] == "AWS::IAM::Role":
            statements = [
                statement
                for policy in each["Properties"].get("Policies", ())
                for statement in policy["PolicyDocument"]["Statement"]
            ]
            text = json.dumps(statements)
            assert (may in statements) is ("sqs:SendMessage" in text or "sqs:ReceiveMessage" in text)


def test_every_environment_has_the_key_that_was_named_and_no_role_is_given_it(
    deployed: Deployment, synthesise: Synthesise
) -> None:
    functions = [each["Properties"] for each in deployed.resources() if each["Type"] == FUNCTION]
    ours = [each for each in functions if "POWERTOOLS_SERVICE_NAME" in json.dumps(each)]
    assert len(ours) > 7
    assert {each["KmsKeyArn"] for each in ours} == {KEY}
    plain = [each["Properties"] for each in synthesise("prod").resources() if each["Type"] == FUNCTION]
    assert not [each for each in plain if "KmsKeyArn" in each]


def test_appends_and_reads_that_are_slow_alarm_where_that_is_asked_for(
    deployed: Deployment, synthesise: Synthesise
) -> None:
    def slow(stage: Deployment) -> dict[str, dict[str, Any]]:
        alarms = stage.of_type("api", "AWS::CloudWatch::Alarm").values()
        found = {each["Properties"]["AlarmName"]: each["Properties"] for each in alarms}
        return {name: each for name, each in found.items() if name.endswith("-slow")}

    found = slow(deployed)
    assert set(found) == {"epochal-prod-append-slow", "epochal-prod-replay-slow"}
    for each in found.values():
        assert (each["MetricName"], each["ExtendedStatistic"], each["Threshold"]) == ("Duration", "p99", 800)
        assert "runbook.md#function-slow" in each["AlarmDescription"]
    assert slow(synthesise("prod")) == {}


def test_tables_and_their_indexes_are_as_warm_as_was_asked_for(
    deployed: Deployment, synthesise: Synthesise
) -> None:
    def warm(stage: Deployment) -> list[Any]:
        tables = [each["Properties"] for each in stage.of_type("store", TABLE).values()]
        indexes = [index for table in tables for index in table.get("GlobalSecondaryIndexes", ())]
        return [each.get("WarmThroughput") for each in (*tables, *indexes)]

    assert len(warm(deployed)) > 10
    assert all(each == {"WriteUnitsPerSecond": 8_000} for each in warm(deployed))
    assert not any(warm(synthesise("prod")))
