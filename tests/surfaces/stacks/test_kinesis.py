"""A stage whose tables of heads send their changes to one Kinesis stream, which the indexer follows and not theirs."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from epochal.cdk import EventStore
from epochal.cdk.parts.head_filters import heads_of, heads_sent
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources
from epochal.cdk.stage_changes import changed as with_changed
from epochal.cdk.stages import STAGES
from epochal.cdk.targets import TARGET
from epochal.plugins import layouts
from epochal.settings import Settings
from tests.core.feed.events import sent_change
from tests.layouts.stores import Layouts
from tests.support.account import TABLE, Account
from tests.surfaces.stacks.templates import Deployment, Synthesise
from tests.surfaces.stacks.test_heads import passes

STREAM, MAPPING, ALARM = (
    "AWS::Kinesis::Stream",
    "AWS::Lambda::EventSourceMapping",
    "AWS::CloudWatch::Alarm",
)
HEADS = ["Tips", "Snapshot", "Tags", "Streams"]
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234"
EXISTING = "arn:aws:dynamodb:eu-west-1:123456789012:table/{}-2/stream/2026-11-21T06:09:43.678"


@pytest.fixture(scope="module")
def sending(synthesise: Synthesise) -> Deployment:
    return synthesise("prod", feed_kinesis_shards=2)


def own_replica(sending: Deployment, table: str) -> dict[str, Any]:
    """What a table is in the region of its stack."""
    replicas = sending.named("store", TABLE, table)["Properties"]["Replicas"]
    found: dict[str, Any] = replicas[0]
    return found


def changes(sending: Deployment) -> dict[str, Any]:
    """The mapping of what tables send."""
    found: dict[str, Any] = sending.of_type("feed", MAPPING)["Changes"]["Properties"]
    return found


def test_no_stage_has_one_unless_it_says_so(synthesise: Synthesise) -> None:
    """It is paid by the hour."""
    for stage in STAGES:
        assert all(each["Type"] != STREAM for each in synthesise(stage).resources())


def test_each_table_of_heads_sends_its_changes_there_and_no_other(sending: Deployment) -> None:
    ((id_, stream),) = sending.of_type("store", STREAM).items()
    assert stream["Properties"]["ShardCount"] == 2
    assert stream["Properties"]["StreamModeDetails"] == {"StreamMode": "PROVISIONED"}
    senders = [
        each["Properties"]["TableName"].removeprefix("epochal-prod-")
        for each in sending.of_type("store", TABLE).values()
        if "KinesisStreamSpecification" in each["Properties"]["Replicas"][0]
    ]
    assert sorted(senders) == sorted(map(str.lower, HEADS))
    for table in HEADS:
        assert own_replica(sending, table)["KinesisStreamSpecification"] == {
            "StreamArn": {"Fn::GetAtt": [id_, "Arn"]}
        }


def test_it_holds_nothing_that_has_to_stay_and_is_encrypted(
    sending: Deployment, synthesise: Synthesise
) -> None:
    (stream,) = sending.of_type("store", STREAM).values()
    assert stream["DeletionPolicy"] == "Delete"
    assert stream["Properties"]["RetentionPeriodHours"] == 24
    assert stream["Properties"]["StreamEncryption"]["KeyId"] == "alias/aws/kinesis"
    own = synthesise("prod", feed_kinesis_shards=2, kms_key=KEY)
    (stream,) = own.of_type("store", STREAM).values()
    assert stream["Properties"]["StreamEncryption"] == {"EncryptionType": "KMS", "KeyId": KEY}


def test_tables_keep_their_own_streams_so_that_the_way_back_loses_nothing(
    sending: Deployment, synthesise: Synthesise
) -> None:
    for table in HEADS:
        wanted = synthesise("prod").named("store", TABLE, table)["Properties"]["StreamSpecification"]
        found = sending.named("store", TABLE, table)["Properties"]["StreamSpecification"]
        assert found == wanted == {"StreamViewType": "NEW_IMAGE"}


def test_one_mapping_takes_the_place_of_those_of_the_tables_under_the_same_rules(
    sending: Deployment, synthesise: Synthesise
) -> None:
    assert {*sending.of_type("feed", MAPPING)} == {"Changes"}
    own = {"EventSourceArn", "FilterCriteria", "MaximumBatchingWindowInSeconds"}
    found, usual = (
        {name: value for name, value in mapping.items() if name not in own}
        for mapping in (
            changes(sending),
            synthesise("prod").of_type("feed", MAPPING)["StreamsHeads"]["Properties"],
        )
    )
    assert found == usual
    assert (found["StartingPosition"], found["ParallelizationFactor"]) == ("TRIM_HORIZON", 1)


def test_the_second_in_which_lambda_does_not_ask_is_of_the_window(
    sending: Deployment, synthesise: Synthesise
) -> None:
    """Lambda asks a Kinesis shard once a second: with a window of a second, an append would wait for two."""
    assert changes(sending)["MaximumBatchingWindowInSeconds"] == 0
    for window, waited in ((0, 0), (300, 299)):
        found = changes(synthesise("prod", feed_kinesis_shards=2, feed_window_seconds=window))
        assert found["MaximumBatchingWindowInSeconds"] == waited


def test_the_filters_let_through_what_those_of_the_tables_do(sending: Deployment) -> None:
    patterns = [json.loads(each["Pattern"]) for each in changes(sending)["FilterCriteria"]["Filters"]]
    assert patterns == [
        {
            "data": {
                "tableName": [f"epochal-prod-{each.port.heads.kind}"],
                **json.loads(pattern),
            }
        }
        for each in layouts()
        for pattern in heads_of(each.port.source(Settings()))
    ]
    assert len(patterns) <= 5, "Lambda takes five for a mapping"


def test_a_change_gets_through_as_dynamodb_sends_it() -> None:
    store = Layouts()
    store.append("Order-1", "a")
    (image,) = store.tables.changes("tips")
    pattern = heads_sent(store.sources[0], "tips")
    assert passes({"data": sent_change(image, 1)}, pattern)
    assert not passes({"data": sent_change(image, 1, table="streams")}, pattern)
    assert not passes({"data": sent_change(image, 1, "REMOVE")}, pattern)
    assert not passes({"data": sent_change({**image, "i": {"N": "3"}}, 1)}, pattern)


def test_the_indexer_may_read_that_stream_and_no_table_s(sending: Deployment) -> None:
    role = sending.named("feed", "AWS::IAM::Role", "IndexerRole")["Properties"]
    statements = [each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"]]
    following = [each for each in statements if "kinesis:" in json.dumps(each["Action"])]
    reading, listing = following
    assert set(reading["Action"]) == {
        f"kinesis:{each}"
        for each in (
            "DescribeStream",
            "DescribeStreamSummary",
            "GetRecords",
            "GetShardIterator",
            "ListShards",
        )
    }
    assert reading["Resource"]["Fn::Join"][1][-1] == ":stream/epochal-prod-changes"
    assert (listing["Action"], listing["Resource"]) == ("kinesis:ListStreams", "*")
    assert "dynamodb:GetRecords" not in json.dumps(statements)
    assert "dynamodb:ListStreams" not in json.dumps(statements)


def test_a_table_that_is_taken_over_is_followed_by_the_stream_that_is_named(synthesise: Synthesise) -> None:
    """Who made it says where it sends changes to."""
    mixed = synthesise("prod", feed_kinesis_shards=1, existing_tips=EXISTING.format("tips"))
    mappings = mixed.of_type("feed", MAPPING)
    assert {*mappings} == {"Changes", "Heads"}
    assert mappings["Heads"]["Properties"]["EventSourceArn"] == EXISTING.format("tips")
    assert "epochal-prod-tips" not in json.dumps(changes(mixed)["FilterCriteria"])


def test_where_no_table_would_send_anything_it_is_refused() -> None:
    settings = {f"existing_{table.lower()}": EXISTING.format(table.lower()) for table in HEADS}
    with pytest.raises(BadSetting, match=r"^stages\.prod\.feed_kinesis_shards must be 0 if every table"):
        with_changed(STAGES["prod"], {"feed_kinesis_shards": 1, **settings})
    with pytest.raises(BadSetting, match="from 0 to 200"):
        with_changed(STAGES["prod"], {"feed_kinesis_shards": -1})


def test_a_replica_sends_nothing(synthesise: Synthesise) -> None:
    """Nobody follows it there, and it would be paid for."""
    there = {"region": "eu-west-1", "replica_region": "eu-central-1"}
    replicas = synthesise("prod", feed_kinesis_shards=1, **there).named("store", TABLE, "Streams")[
        "Properties"
    ]["Replicas"]
    assert {each["Region"]: "KinesisStreamSpecification" in each for each in replicas} == {
        "eu-west-1": True,
        "eu-central-1": False,
    }


def test_the_embedded_aws_follows_tables_as_ever(synthesise: Synthesise) -> None:
    embedded = synthesise("dev", "embedded", feed_kinesis_shards=1)
    assert {*embedded.of_type("feed", MAPPING)} == {*synthesise().of_type("feed", MAPPING)}


def test_what_does_not_get_into_the_stream_alarms(sending: Deployment) -> None:
    alarms = {
        each["Properties"]["AlarmName"].removeprefix("epochal-prod-"): each["Properties"]
        for each in sending.resources()
        if each["Type"] == ALARM
    }
    assert {name for name in alarms if "changes" in name} == {
        *("changes-throttled", "changes-lag", "changes-skipped"),
        *("feed-gave-up-changes", "feed-dropped-changes"),
    }
    throttled = alarms["changes-throttled"]
    assert (throttled["Namespace"], throttled["MetricName"]) == (
        "AWS/Kinesis",
        "WriteProvisionedThroughputExceeded",
    )
    assert throttled["Dimensions"] == [{"Name": "StreamName", "Value": "epochal-prod-changes"}]
    for name, measured in (
        ("changes-lag", "MAX(AgeOfOldestUnreplicatedRecord)"),
        ("changes-skipped", "SUM(FailedToReplicateRecordCount)"),
    ):
        (query,) = alarms[name]["Metrics"]
        assert query["Period"] == 60
        assert measured in query["Expression"]
        assert all(f"TableName = 'epochal-prod-{table.lower()}'" in query["Expression"] for table in HEADS)


def test_a_stream_cannot_more_than_double_or_halve_at_once(sending: Deployment) -> None:
    """`UpdateShardCount` refuses it, so deploy.md says to go by steps."""
    account, templates = Account(), sending.in_order()
    stream = templates["epochal-prod-store"]["Resources"]["Changes510ED4B0"]["Properties"]
    refused = {}
    for count in (2, 4, 8, 4, 1):
        changed = deepcopy(templates)
        changed["epochal-prod-store"]["Resources"]["Changes510ED4B0"]["Properties"] = {
            **stream,
            "ShardCount": count,
        }
        refused[count] = account.deploy(changed)
    said = "epochal-prod-store: Changes510ED4B0 cannot go from 4 shards to 1, but to half or twice as many at most"
    assert refused == {2: [], 4: [], 8: [], 1: [said]}


class TestInAnAppOfOnesOwn:
    @pytest.fixture(autouse=True)
    def shipped(self, sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Sources, "shipped", lambda: sources)
        monkeypatch.delenv(TARGET, raising=False)

    def test_the_mapping_waits_for_the_stream_of_its_own_stack(self) -> None:
        stack = Stack(App(), "Shop")
        EventStore(stack, "Events", name="shop", layouts=["pages"], feed_kinesis_shards=1)
        resources = Template.from_stack(stack).to_json()["Resources"]
        (id_,) = [id_ for id_, each in resources.items() if each["Type"] == STREAM]
        arn = {"Fn::GetAtt": [id_, "Arn"]}
        mappings = [each["Properties"] for each in resources.values() if each["Type"] == MAPPING]
        assert [each["EventSourceArn"] for each in mappings].count(arn) == 1
        assert resources[id_]["Properties"]["Name"] == "shop-changes"
