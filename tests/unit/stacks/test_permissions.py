"""What each function's role allows: exactly this, on exactly that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.stacks.templates import Deployment, Synthesise

ROLE = "AWS::IAM::Role"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234"

Allowed = set[tuple[str, str]]

OWN_LOG = {("logs:CreateLogStream", "own log"), ("logs:PutLogEvents", "own log")}
READ_TIPS = {("dynamodb:GetItem", "tips"), ("dynamodb:Query", "tips")}
READ_BODIES = {("s3:GetObject", "bodies/*"), ("s3:ListBucket", "bodies")}

EXPECTED: dict[str, Allowed] = {
    "append": {
        *OWN_LOG,
        *READ_TIPS,
        ("dynamodb:PutItem", "tips"),
        ("dynamodb:UpdateItem", "tips"),
        ("dynamodb:DeleteItem", "tips"),
        ("dynamodb:GetItem", "journal"),
        ("dynamodb:BatchGetItem", "journal"),
        ("dynamodb:PutItem", "journal"),
        ("dynamodb:GetItem", "snapshot"),
        ("dynamodb:PutItem", "snapshot"),
        ("dynamodb:UpdateItem", "snapshot"),
        *READ_BODIES,
        ("s3:PutObject", "bodies/*"),
    },
    "replay": {
        *OWN_LOG,
        *READ_TIPS,
        *READ_BODIES,
        ("dynamodb:BatchGetItem", "journal"),
        ("dynamodb:GetItem", "snapshot"),
    },
    "feed": {
        *OWN_LOG,
        *READ_TIPS,
        *READ_BODIES,
        ("dynamodb:GetItem", "index"),
        ("dynamodb:Query", "index"),
    },
    "indexer": {
        *OWN_LOG,
        *READ_TIPS,
        ("dynamodb:DescribeStream", "stream of tips"),
        ("dynamodb:GetRecords", "stream of tips"),
        ("dynamodb:GetShardIterator", "stream of tips"),
        ("dynamodb:ListStreams", "*"),
        ("dynamodb:GetItem", "index"),
        ("dynamodb:Query", "index"),
        ("dynamodb:BatchGetItem", "index"),
        ("dynamodb:PutItem", "index"),
        ("dynamodb:UpdateItem", "index"),
        ("s3:PutObject", "failures/aws/lambda/*"),
        ("s3:ListBucket", "failures"),
    },
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_function_may_do_exactly_this(synthesise: Synthesise, name: str) -> None:
    assert allowed(synthesise("prod"), name) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_key_of_ones_own_adds_the_use_of_that_key_and_nothing_else(
    synthesise: Synthesise, name: str
) -> None:
    added = allowed(synthesise(kms_key=KEY), name) - EXPECTED[name]
    reading = {("kms:Decrypt", KEY), ("kms:DescribeKey", KEY)}
    if name in ("replay", "feed"):
        assert added == reading
    else:
        assert reading < added
        assert {resource for _, resource in added} == {KEY}
        assert ("kms:GenerateDataKey", KEY) in added


@pytest.mark.parametrize("target", ["aws", "embedded"])
@pytest.mark.parametrize("settings", [{}, {"kms_key": KEY}], ids=["", "own key"])
def test_no_statement_allows_a_wildcard_action_and_one_a_wildcard_resource(
    synthesise: Synthesise, target: str, settings: dict[str, str]
) -> None:
    deployment = synthesise("prod", target, **settings)
    found = [
        each for policy in policies(deployment) for each in policy["Statement"] if each["Effect"] == "Allow"
    ]
    assert not [action for each in found for action in listed(each["Action"]) if "*" in action]
    everything = [each["Action"] for each in found if "*" in listed(each.get("Resource", []))]
    assert everything == ["dynamodb:ListStreams"]


def test_permissions_stand_only_in_the_roles_of_the_functions(synthesise: Synthesise) -> None:
    """No managed policy, and none attached afterwards: what a test of the roles sees is all there is."""
    types = {resource["Type"] for resource in synthesise("prod").resources()}
    roles = [each for each in synthesise("prod").resources() if each["Type"] == ROLE]
    assert len(roles) == len(EXPECTED)
    assert not [role for role in roles if role["Properties"].get("ManagedPolicyArns")]
    assert not types & {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"}


def test_only_the_api_may_call_its_functions_and_only_on_their_routes(synthesise: Synthesise) -> None:
    for permission in synthesise().of_type("api", "AWS::Lambda::Permission").values():
        properties = permission["Properties"]
        assert properties["Action"] == "lambda:InvokeFunction"
        assert properties["Principal"] == "apigateway.amazonaws.com"
        path = properties["SourceArn"]["Fn::Join"][1][-1]
        assert re.fullmatch(r"/\*/\*/(streams|aggregates|feed|bodies|health).*", path)


def allowed(deployment: Deployment, name: str) -> Allowed:
    """(action, resource) pairs of a function's role, resources by what they are."""
    role = deployment.named("feed" if name == "indexer" else "api", ROLE, f"{name.capitalize()}Role")
    (policy,) = role["Properties"]["Policies"]
    return {
        (action, plainly(resource))
        for statement in policy["PolicyDocument"]["Statement"]
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def policies(deployment: Deployment) -> Iterator[dict[str, Any]]:
    """Every policy document in every stack, wherever it stands."""
    waiting: list[Any] = deployment.resources()
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "Statement" in value:
                yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def plainly(resource: Any) -> str:
    """`tips` for whatever expression CloudFormation has for that table's ARN, and so on."""
    text = resource if isinstance(resource, str) else str(resource)
    if isinstance(resource, str):
        return text
    for pattern, meaning in (
        (r"GetAttTips\w+StreamArn", "stream of tips"),
        (r"GetAttTips\w+Arn", "tips"),
        (r"GetAttIndex\w+Arn", "index"),
        (r"GetAttJournal\w+Arn", "journal"),
        (r"GetAttSnapshot\w+Arn", "snapshot"),
        (r"GetAttBodies\w+Arn.*/bodies/\*", "bodies/*"),
        (r"GetAttBodies\w+Arn", "bodies"),
        (r"'Failures\w+', 'Arn'.*/aws/lambda/\*", "failures/aws/lambda/*"),
        (r"'Failures\w+', 'Arn'", "failures"),
        (r"'\w+Log\w+', 'Arn'", "own log"),
    ):
        if re.search(pattern, text):
            return meaning
    return text
