"""The watch stack: an alarm for everything that users would otherwise report."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.layout.tables import store_tables
from epochal.plan.tables import TableSpec
from epochal.plugins import layouts
from tests.surfaces.stacks.templates import Synthesise

ALARM = "AWS::CloudWatch::Alarm"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:alarms"


@pytest.fixture(scope="module")
def alarms(synthesise: Synthesise) -> dict[str, dict[str, Any]]:
    """Properties of alarms, by name without stage."""
    found = [each["Properties"] for each in synthesise("prod").resources() if each["Type"] == ALARM]
    return {each["AlarmName"].removeprefix("epochal-prod-"): each for each in found}


def metric(alarm: dict[str, Any]) -> tuple[str, str, str]:
    """Namespace, name and statistic."""
    return alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]


def dimension(alarm: dict[str, Any]) -> tuple[str, Any]:
    """The one dimension of an alarm's metric."""
    (only,) = alarm["Dimensions"]
    return only["Name"], only["Value"]


def test_no_mapping_is_without_an_alarm(synthesise: Synthesise, alarms: dict[str, dict[str, Any]]) -> None:
    mappings = synthesise("prod").of_type("feed", "AWS::Lambda::EventSourceMapping")
    watched = [name for name in alarms if "-gave-up" in name]
    assert len(watched) == len(mappings) == len(layouts())


@pytest.mark.parametrize("function", ["append", "replay", "feed", "indexer"])
@pytest.mark.parametrize(("suffix", "measured"), [("fails", "Errors"), ("throttled", "Throttles")])
def test_errors_and_throttles_of_every_function_alarm(
    alarms: dict[str, dict[str, Any]], function: str, suffix: str, measured: str
) -> None:
    alarm = alarms[f"{function}-{suffix}"]
    assert metric(alarm) == ("AWS/Lambda", measured, "Sum")
    assert dimension(alarm) == ("FunctionName", f"epochal-prod-{function}")
    assert alarm["Threshold"] == 0


@pytest.mark.parametrize("table", [spec.kind for spec in store_tables()])
@pytest.mark.parametrize("what", ["Read", "Write"])
def test_lasting_throttles_of_every_table_alarm(
    alarms: dict[str, dict[str, Any]], table: str, what: str
) -> None:
    alarm = alarms[f"{table}-{what.lower()}s-throttled"]
    key, value = dimension(alarm)
    assert metric(alarm) == ("AWS/DynamoDB", f"{what}ThrottleEvents", "Sum")
    assert key == "TableName"
    assert value == f"epochal-prod-{table}"
    assert 1 < alarm["DatapointsToAlarm"] <= alarm["EvaluationPeriods"]


@pytest.mark.parametrize(
    "spec", [spec for spec in store_tables() if spec.indexes], ids=lambda spec: spec.kind
)
def test_lasting_throttles_of_any_index_of_a_table_alarm(
    alarms: dict[str, dict[str, Any]], spec: TableSpec
) -> None:
    alarm = alarms[f"{spec.kind}-indexes-throttled"]
    (total,) = [each for each in alarm["Metrics"] if "Expression" in each]
    assert total["Expression"] == "SUM(METRICS())"
    measured = [each["MetricStat"]["Metric"] for each in alarm["Metrics"] if "MetricStat" in each]
    assert {(each["MetricName"], index_of(each)) for each in measured} == {
        (f"{what}ThrottleEvents", index.name) for what in ("Read", "Write") for index in spec.indexes
    }
    assert 1 < alarm["DatapointsToAlarm"] <= alarm["EvaluationPeriods"]


def index_of(measured: dict[str, Any]) -> str:
    """The index that a metric is of."""
    dimensions = {each["Name"]: each["Value"] for each in measured["Dimensions"]}
    assert set(dimensions) == {"TableName", "GlobalSecondaryIndexName"}
    name: str = dimensions["GlobalSecondaryIndexName"]
    return name


def test_silence_is_no_alarm_and_every_alarm_says_what_it_means(alarms: dict[str, dict[str, Any]]) -> None:
    assert {alarm["TreatMissingData"] for alarm in alarms.values()} == {"notBreaching"}
    assert {alarm["ComparisonOperator"] for alarm in alarms.values()} == {"GreaterThanThreshold"}
    assert all(alarm["AlarmDescription"] for alarm in alarms.values())


def test_alarms_go_to_the_stages_topic(synthesise: Synthesise) -> None:
    deployed = synthesise("prod", alarm_topic=TOPIC)
    for kind in ("feed", "api", "watch"):
        alarms = deployed.of_type(kind, ALARM).values()
        assert alarms
        assert all(alarm["Properties"]["AlarmActions"] == [TOPIC] for alarm in alarms)


@pytest.mark.parametrize("stage", ["dev", "staging", "prod"])
def test_every_stage_is_watched_from_its_first_deployment(synthesise: Synthesise, stage: str) -> None:
    alarms = synthesise(stage).of_type("watch", ALARM).values()
    assert {f"epochal-{stage}-feed-lags", f"epochal-{stage}-append-fails"} <= {
        alarm["Properties"]["AlarmName"] for alarm in alarms
    }
