"""Notices: what wakes the notifier, and where it tells."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.cdk.parts.feed import epochs
from epochal.settings import variable
from tests.unit.stacks.templates import Synthesise, stream_told

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234"


@pytest.fixture(scope="module")
def mapping(synthesise: Synthesise) -> dict[str, Any]:
    resource = synthesise().named("feed", "AWS::Lambda::EventSourceMapping", "NoticesIndex")
    properties: dict[str, Any] = resource["Properties"]
    return properties


def test_the_notifier_reads_the_stream_of_the_index_from_its_beginning(
    synthesise: Synthesise, mapping: dict[str, Any]
) -> None:
    assert stream_told(synthesise(), mapping["EventSourceArn"]).startswith("Index")
    assert mapping["StartingPosition"] == "TRIM_HORIZON"


def test_the_stream_of_the_index_carries_new_images(synthesise: Synthesise) -> None:
    index = synthesise().named("store", "AWS::DynamoDB::GlobalTable", "Index")
    assert index["Properties"]["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}


def test_only_tips_of_epochs_wake_it_and_at_once(mapping: dict[str, Any]) -> None:
    assert mapping["FilterCriteria"] == {"Filters": [{"Pattern": epochs()}]}
    assert mapping["MaximumBatchingWindowInSeconds"] == 0


def test_a_notice_is_tried_for_a_while_and_then_kept_as_evidence(
    synthesise: Synthesise, mapping: dict[str, Any]
) -> None:
    (bucket,) = synthesise().of_type("feed", "AWS::S3::Bucket")
    assert mapping["MaximumRetryAttempts"] == 20
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": {"Fn::GetAtt": [bucket, "Arn"]}}}
    assert mapping["MetricsConfig"] == {"Metrics": ["EventCount"]}


def test_what_a_new_mapping_finds_in_a_stream_that_is_there_is_not_too_old_for_it(
    synthesise: Synthesise,
) -> None:
    """A feed that is deployed anew on tables that are there begins with a day's records: those that are too old would
    go to the bucket unseen, with an alarm.
    """
    day = 24 * 60 * 60
    mappings = synthesise().of_type("feed", "AWS::Lambda::EventSourceMapping").values()
    for each in (mapping["Properties"] for mapping in mappings):
        assert each["StartingPosition"] == "TRIM_HORIZON"
        assert 0.9 * day < each["MaximumRecordAgeInSeconds"] < day


def test_the_topic_is_fifo_by_partition_and_deduplicates_by_what_a_notice_says(
    synthesise: Synthesise,
) -> None:
    topic = synthesise("prod").named("feed", "AWS::SNS::Topic", "NoticesTopic")["Properties"]
    assert topic["TopicName"] == "epochal-prod-notices.fifo"
    assert topic["FifoTopic"] is True
    assert topic["ContentBasedDeduplication"] is False
    assert topic["FifoThroughputScope"] == "MessageGroup"


def test_the_notifier_is_told_of_the_topic(synthesise: Synthesise) -> None:
    ((id_, _),) = synthesise().of_type("feed", "AWS::SNS::Topic").items()
    notifier = synthesise().named("feed", "AWS::Lambda::Function", "NoticesNotifier")["Properties"]
    assert notifier["Environment"]["Variables"][variable("topic")] == {"Ref": id_}


def test_the_topic_takes_no_plain_http(synthesise: Synthesise) -> None:
    policy = synthesise().named("feed", "AWS::SNS::TopicPolicy", "NoticesTopicPolicy")["Properties"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Action"]) == ("Deny", "sns:Publish")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_a_key_of_ones_own_encrypts_the_topic(synthesise: Synthesise) -> None:
    def topic(deployment: Any) -> dict[str, Any]:
        properties: dict[str, Any] = deployment.named("feed", "AWS::SNS::Topic", "NoticesTopic")["Properties"]
        return properties

    assert topic(synthesise(kms_key=KEY))["KmsMasterKeyId"] == KEY
    assert "KmsMasterKeyId" not in topic(synthesise())
