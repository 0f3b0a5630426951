"""The feed stack: what wakes the indexer, and what becomes of what it fails at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.surfaces.stacks.templates import CHOSEN, Deployment, Synthesise, stream_told

MAPPING = "AWS::Lambda::EventSourceMapping"
TABLES = {"Tips": "Heads", "Snapshot": "SnapshotHeads", "Tags": "TagsHeads", "Streams": "StreamsHeads"}
"""Tables of heads, and the mappings of their streams, by logical id."""


@pytest.fixture(scope="module", params=TABLES)
def mapping(synthesise: Synthesise, request: pytest.FixtureRequest) -> dict[str, Any]:
    return mapping_of(synthesise(), request.param)


@pytest.mark.parametrize("table", TABLES)
def test_the_indexer_reads_the_stream_of_each_table_of_heads_from_its_beginning(
    synthesise: Synthesise, table: str
) -> None:
    mapping = mapping_of(synthesise(), table)
    assert stream_told(synthesise(), mapping["EventSourceArn"]).startswith(table)
    assert mapping["StartingPosition"] == "TRIM_HORIZON"


@pytest.mark.parametrize(
    ("table", "images"),
    [
        (
            "Tips",
            [
                {"i": {"N": ["2147483647"]}, "a": {"N": [{"anything-but": ["0"]}, {"exists": False}]}},
                {"i": {"N": ["2147483647"]}, "etag": {"S": [{"prefix": "dead"}]}},
            ],
        ),
        ("Snapshot", [{"seq_nr": {"N": ["0"]}}]),
        ("Tags", [{"pk": {"S": [{"prefix": "SERVICE#shop#TAG#"}]}, "sk": {"S": ["#"]}}]),
        ("Streams", [{"r": {"N": [{"exists": True}]}}]),
    ],
)
def test_only_heads_of_the_stages_tenant_wake_it(
    synthesise: Synthesise, table: str, images: list[dict[str, Any]]
) -> None:
    mapping = mapping_of(synthesise(**CHOSEN), table)
    patterns = [{"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": image}} for image in images]
    assert mapping["FilterCriteria"] == {"Filters": [{"Pattern": json.dumps(each)} for each in patterns]}


def test_all_streams_wake_one_function(synthesise: Synthesise) -> None:
    mappings = [mapping_of(synthesise(), table) for table in TABLES]
    (function,) = [
        id_ for id_ in synthesise().of_type("feed", "AWS::Lambda::Function") if id_.startswith("Indexer")
    ]
    assert [each["FunctionName"] for each in mappings] == [{"Ref": function}] * len(TABLES)


def test_a_mapping_never_changes_its_logical_id(synthesise: Synthesise) -> None:
    """Another id is another mapping of the same stream and function, which Lambda refuses beside the first."""
    assert set(synthesise("prod").of_type("feed", MAPPING)) == {*TABLES.values()}


def test_a_shard_is_never_blocked_until_its_records_expire(mapping: dict[str, Any]) -> None:
    assert 0 < mapping["MaximumRetryAttempts"] <= 100
    assert 0 < mapping["MaximumRecordAgeInSeconds"] < 24 * 60 * 60


def test_a_stage_says_for_how_long_the_indexer_gathers_appends(synthesise: Synthesise) -> None:
    chosen = mapping_of(synthesise(**CHOSEN), "Streams")
    assert (chosen["MaximumBatchingWindowInSeconds"], chosen["BatchSize"]) == (10, 200)


def mapping_of(deployment: Deployment, table: str) -> dict[str, Any]:
    """The mapping of a table's stream."""
    properties: dict[str, Any] = deployment.of_type("feed", MAPPING)[TABLES[table]]["Properties"]
    return properties
