"""Stages with the longest names keep within the sizes that AWS allows, in a region of each partition.

Sizes are measured here on the template, with every reference replaced as CloudFormation replaces it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from stacks.deployment import ACCOUNT, REGION
from tests.support.account import BUCKET, PLACE
from tests.surfaces.stacks.templates import CHOSEN, Deployment, Synthesise
from tests.surfaces.stacks.test_lint import lint

PREFIX: Final = "a-prefix-of-the-18"
PLACES: Final = {
    "aws": {"AWS::Region": "ap-southeast-1"},
    "aws-cn": {"AWS::Region": "cn-northwest-1", "AWS::URLSuffix": "amazonaws.com.cn"},
    "aws-us-gov": {"AWS::Region": "us-gov-west-1"},
}
"""A region with a long name of each partition."""

SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "aws": {**CHOSEN, "boto3": "tested"},
    "aws-cn": {"feed_kinesis_shards": 1, "archive": True, "read_models": True, "timers": True},
    "aws-us-gov": {"reactions": {"a-reaction-of-28-characters": {"entry": "board"}}},
}


@pytest.fixture(scope="module", params=PLACES)
def partition(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def place(partition: str) -> dict[str, str]:
    return {**PLACE, "AWS::Partition": partition, **PLACES[partition]}


@pytest.fixture(scope="module")
def deployed(synthesise: Synthesise, partition: str, place: dict[str, str]) -> Iterator[Deployment]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(REGION, place["AWS::Region"])
        patch.setenv(ACCOUNT, place["AWS::AccountId"])
        region, account = place["AWS::Region"], place["AWS::AccountId"]
        own = {"prefix": PREFIX, "region": region, "account": account}
        if partition != "aws-us-gov":
            own["kms_key"] = f"arn:{partition}:kms:{region}:{account}:key/1234"
        yield synthesise("staging", **SETTINGS[partition], **own)


@pytest.fixture(scope="module")
def resources(deployed: Deployment, place: dict[str, str]) -> list[dict[str, Any]]:
    """All resources, without references."""
    return [
        filled(each, place, template["Resources"])
        for template in deployed.in_order().values()
        for each in template["Resources"].values()
    ]


def filled(value: Any, place: Mapping[str, str], resources: Mapping[str, Any]) -> Any:
    match value:
        case {"Ref": str(name)}:
            return place.get(name) or name_of(name, place, resources)
        case {"Fn::GetAtt": [str(id_), "Arn"]}:
            name = name_of(id_, place, resources)
            return f"arn:{place['AWS::Partition']}:dynamodb:{place['AWS::Region']}:123456789012:table/{name}"
        case {"Fn::GetAtt": _}:
            return "9" * 36
        case {"Fn::Join": [between, parts]}:
            return str(between).join(str(filled(each, place, resources)) for each in parts)
        case dict():
            return {key: filled(each, place, resources) for key, each in value.items()}
        case list():
            return [filled(each, place, resources) for each in value]
    return value


def name_of(id_: str, place: Mapping[str, str], resources: Mapping[str, Any]) -> str:
    """A named resource's name; else an id as AWS makes them."""
    resource = resources.get(id_, {"Type": "", "Properties": {}})
    for key, value in resource.get("Properties", {}).items():
        if key in ("TableName", "BucketName", "QueueName", "FunctionName", "TopicName", "LogGroupName"):
            return str(filled(value, place, resources))
    return "9" * 36


def of_type(resources: list[dict[str, Any]], type_: str) -> Iterator[dict[str, Any]]:
    for each in resources:
        if each["Type"] == type_:
            yield each.get("Properties", {})


def size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":")))


def test_cfn_lint_has_nothing_to_say_for_that_region(deployed: Deployment, place: dict[str, str]) -> None:
    found = {
        f"{stack}: {each}"
        for stack, template in deployed.in_order().items()
        for each in lint(template, place["AWS::Region"])
    }
    assert found == set()


def test_buckets_have_63_characters_at_most(resources: list[dict[str, Any]]) -> None:
    names = [each["BucketName"] for each in of_type(resources, BUCKET)]
    assert names
    assert {name: len(name) for name in names if len(name) > 63} == {}


def test_functions_keep_within_lambdas_limits(resources: list[dict[str, Any]]) -> None:
    for each in of_type(resources, "AWS::Lambda::Function"):
        environment = each["Environment"]["Variables"]
        assert size(environment) <= 4_096
        assert len(each["Layers"]) <= 5
        assert len(each.get("FunctionName", "")) <= 64
        assert len(each["Description"]) <= 256


def test_mappings_have_five_filters_at_most(resources: list[dict[str, Any]]) -> None:
    counts = [
        len(each.get("FilterCriteria", {}).get("Filters", ()))
        for each in of_type(resources, "AWS::Lambda::EventSourceMapping")
    ]
    assert counts
    assert max(counts) <= 5


def test_resource_policies_have_20_kilobytes_at_most(resources: list[dict[str, Any]]) -> None:
    sizes = dict[str, int]()
    for each in of_type(resources, "AWS::Lambda::Permission"):
        statement = {
            "Sid": "x" * 100,
            "Effect": "Allow",
            "Principal": {"Service": each["Principal"]},
            "Action": each["Action"],
            "Resource": each["FunctionName"],
            "Condition": {"ArnLike": {"AWS:SourceArn": each.get("SourceArn", "")}},
        }
        function = each["FunctionName"]
        sizes[function] = sizes.get(function, 0) + size(statement)
    assert sizes
    assert max(sizes.values()) <= 20_480


def test_roles_have_10240_characters_of_policies_at_most(resources: list[dict[str, Any]]) -> None:
    sizes = [
        sum(size(policy["PolicyDocument"]) for policy in each.get("Policies", ()))
        for each in of_type(resources, "AWS::IAM::Role")
    ]
    assert sizes
    assert max(sizes) <= 10_240


def test_names_are_as_long_as_their_types_allow(resources: list[dict[str, Any]], partition: str) -> None:
    most = {"AWS::SQS::Queue": ("QueueName", 80), "AWS::SNS::Topic": ("TopicName", 256)}
    for type_, (name, length) in most.items():
        for each in of_type(resources, type_):
            assert len(each[name]) <= length, partition
