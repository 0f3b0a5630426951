"""The feed stack: what wakes the indexer, and what becomes of what it fails at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from epochal.layout.tips.items import TIP
from tests.unit.stacks.templates import Synthesise

MAPPING = "AWS::Lambda::EventSourceMapping"


@pytest.fixture(scope="module")
def mapping(synthesise: Synthesise) -> dict[str, Any]:
    (found,) = synthesise().of_type("feed", MAPPING).values()
    properties: dict[str, Any] = found["Properties"]
    return properties


def change(name: str, **image: int) -> dict[str, Any]:
    """A stream record as a filter sees it."""
    return {
        "eventName": name,
        "dynamodb": {"NewImage": {key: {"N": str(value)} for key, value in image.items()}},
    }


@pytest.mark.parametrize(
    "record",
    [change("INSERT", i=TIP, n=3, a=3), change("MODIFY", i=TIP, n=1_000, a=10)],
    ids=["a new stream", "an append"],
)
def test_an_append_wakes_the_indexer(mapping: dict[str, Any], record: dict[str, Any]) -> None:
    assert matches(record, only_filter(mapping))


@pytest.mark.parametrize(
    "record",
    [
        change("INSERT", i=0, n=10),
        change("MODIFY", i=TIP, n=3, a=0),
        change("MODIFY", i=TIP, n=3, a=0, z=1),
        change("MODIFY", i=TIP, n=3),
        change("INSERT", i=0, n=3, ttl=1),
        {"eventName": "REMOVE", "dynamodb": {"OldImage": {"i": {"N": str(TIP)}, "a": {"N": "1"}}}},
    ],
    ids=["a calf", "unfolds or a prune", "a tombstone", "no count", "an idempotency record", "a deletion"],
)
def test_nothing_else_does(mapping: dict[str, Any], record: dict[str, Any]) -> None:
    assert not matches(record, only_filter(mapping))


def test_the_indexer_reads_the_stream_of_tips_from_its_beginning(
    synthesise: Synthesise, mapping: dict[str, Any]
) -> None:
    exports = synthesise()["store"].to_json()["Outputs"].values()
    (exported,) = [
        each
        for each in exports
        if isinstance(each["Value"], dict) and each["Value"].get("Fn::GetAtt", ["", ""])[1] == "StreamArn"
    ]
    assert exported["Value"]["Fn::GetAtt"][0].startswith("Tips")
    assert mapping["EventSourceArn"] == {"Fn::ImportValue": exported["Export"]["Name"]}
    assert mapping["StartingPosition"] == "TRIM_HORIZON"


def test_a_batch_may_fail_in_part_and_is_halved_where_it_raises(mapping: dict[str, Any]) -> None:
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True


def test_a_shard_is_never_blocked_until_its_records_expire(mapping: dict[str, Any]) -> None:
    assert 0 < mapping["MaximumRetryAttempts"] <= 100
    assert 0 < mapping["MaximumRecordAgeInSeconds"] < 24 * 60 * 60


def test_batches_are_bounded_by_count_window_and_shard(mapping: dict[str, Any]) -> None:
    assert mapping["BatchSize"] == 1_000
    assert mapping["MaximumBatchingWindowInSeconds"] == 1
    assert mapping["ParallelizationFactor"] == 1


def test_what_was_given_up_on_goes_whole_to_a_bucket_that_keeps_it(
    synthesise: Synthesise, mapping: dict[str, Any]
) -> None:
    ((name, bucket),) = synthesise().of_type("feed", "AWS::S3::Bucket").items()
    rules = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": {"Fn::GetAtt": [name, "Arn"]}}}
    assert [rule["ExpirationInDays"] for rule in rules if "ExpirationInDays" in rule] == [90]


def test_what_was_given_up_on_is_counted(mapping: dict[str, Any]) -> None:
    assert mapping["MetricsConfig"] == {"Metrics": ["EventCount"]}


def test_the_indexer_knows_its_partitions(synthesise: Synthesise) -> None:
    function = synthesise(partitions=7).named("feed", "AWS::Lambda::Function", "Indexer")
    assert function["Properties"]["Environment"]["Variables"]["EPOCHAL_PARTITIONS"] == "7"


def only_filter(mapping: dict[str, Any]) -> dict[str, Any]:
    (one,) = mapping["FilterCriteria"]["Filters"]
    pattern: dict[str, Any] = json.loads(one["Pattern"])
    return pattern


def matches(value: Any, pattern: Any) -> bool:
    """Lambda's filter rules, as far as they are used: objects of lists of values, and `anything-but`.

    A field that is not there matches nothing, `anything-but` included.
    """
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(matches(value.get(key), each) for key, each in pattern.items())
    return value is not None and any(_equal_or_other(value, choice) for choice in pattern)


def _equal_or_other(value: str, choice: Any) -> bool:
    return value not in choice["anything-but"] if isinstance(choice, dict) else bool(value == choice)
