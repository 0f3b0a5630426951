"""What the stacks keep shut beside the functions' roles: everything encrypted with a key of one's own where there is
one, and the topic to whom no policy names.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.surfaces.stacks.templates import Deployment, Synthesise

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
REACTIONS = {"board": {"entry": "board"}}


@pytest.fixture
def keyed(synthesise: Synthesise) -> Deployment:
    return synthesise("prod", kms_key=KEY, reactions=REACTIONS)


def of_type(deployment: Deployment, type_: str) -> dict[str, Any]:
    """Properties of all resources of a type, by stack and logical id."""
    return {
        f"{kind}/{id_}": each["Properties"]
        for kind in deployment.stacks
        for id_, each in deployment.of_type(kind, type_).items()
    }


def test_a_key_of_ones_own_encrypts_whatever_is_stored_or_on_its_way(keyed: Deployment) -> None:
    tables = of_type(keyed, "AWS::DynamoDB::GlobalTable")
    buckets = of_type(keyed, "AWS::S3::Bucket")
    topics = {
        id_: each
        for id_, each in of_type(keyed, "AWS::SNS::Topic").items()
        if each.get("FifoTopic")  # a topic of alarms would carry no data
    }
    assert tables
    assert buckets
    assert topics
    for table in tables.values():
        assert [replica["SSESpecification"] for replica in table["Replicas"]] == [{"KMSMasterKeyId": KEY}]
    for bucket in buckets.values():
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}
    assert {each["KmsMasterKeyId"] for each in topics.values()} == {KEY}


def test_queues_which_carry_no_data_are_encrypted_with_the_services_own_key(keyed: Deployment) -> None:
    """With a key of one's own the topic would need a place in that key's policy to deliver to them."""
    queues = of_type(keyed, "AWS::SQS::Queue").values()
    assert queues
    assert not [each for each in queues if each.get("SqsManagedSseEnabled", True) is not True]


def test_without_a_key_of_ones_own_none_is_named_or_made(synthesise: Synthesise) -> None:
    deployment = synthesise("prod", reactions=REACTIONS)
    assert not of_type(deployment, "AWS::KMS::Key")
    assert "kms:" not in json.dumps(deployment.resources())


def test_the_use_of_the_key_is_granted_by_its_arn_and_by_nothing_wider(keyed: Deployment) -> None:
    for id_, role in of_type(keyed, "AWS::IAM::Role").items():
        for policy in role.get("Policies", ()):
            for statement in policy["PolicyDocument"]["Statement"]:
                if "kms:" in json.dumps(statement["Action"]):
                    assert statement["Resource"] == KEY, id_
                    assert "*" not in json.dumps(statement["Action"]), id_


def test_the_topics_policy_opens_it_to_nobody(synthesise: Synthesise) -> None:
    """A topic without a policy of its own has AWS's, which lets in whoever the account knows."""
    deployment = synthesise("prod", reactions=REACTIONS)
    topics = of_type(deployment, "AWS::SNS::Topic")
    policies = of_type(deployment, "AWS::SNS::TopicPolicy").values()
    closed = {reference["Ref"] for policy in policies for reference in policy["Topics"]}
    assert {id_.partition("/")[2] for id_ in topics} <= closed
    effects = {each["Effect"] for policy in policies for each in policy["PolicyDocument"]["Statement"]}
    assert effects == {"Deny"}
