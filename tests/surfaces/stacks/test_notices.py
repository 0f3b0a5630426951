"""Notices: who publishes them, and to what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from epochal.settings import variable
from tests.surfaces.stacks.templates import Synthesise

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234"


def test_nothing_follows_the_stream_of_the_index_which_stays_as_it_was(synthesise: Synthesise) -> None:
    """What it carries cannot be changed in place."""
    index = synthesise().named("store", "AWS::DynamoDB::GlobalTable", "Index")
    assert index["Properties"]["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    assert "/streams/index" not in json.dumps(synthesise().template("feed"))


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


@pytest.mark.parametrize("function", ["Indexer", "AuditAuditor"])
def test_those_that_write_the_index_are_told_of_the_topic(synthesise: Synthesise, function: str) -> None:
    ((id_, _),) = synthesise().of_type("feed", "AWS::SNS::Topic").items()
    told = synthesise().named("feed", "AWS::Lambda::Function", function)["Properties"]
    assert told["Environment"]["Variables"][variable("topic")] == {"Ref": id_}


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
