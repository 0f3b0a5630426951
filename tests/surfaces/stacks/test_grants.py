"""Whoever has an identity policy in the store's account is granted exactly what our own functions may; nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk.assertions import Template

from epochal.cdk import EventStore
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources
from epochal.cdk.targets import TARGET
from epochal.contrib.subjects.cdk import SubjectKeys

OWN, OTHER = "123456789012", "210987654321"


@pytest.fixture(autouse=True)
def shipped(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sources, "shipped", lambda: sources)
    monkeypatch.delenv(TARGET, raising=False)


@pytest.fixture
def shop() -> Stack:
    return Stack(App(), "Shop", env=Environment(account=OWN, region="eu-west-1"))


def beside(stack: Stack, id_: str) -> Stack:
    """Another stack of the same app, account and region."""
    return Stack(cast("App", stack.node.root), id_, env=Environment(account=OWN, region="eu-west-1"))


def function(stack: Stack, id_: str = "Mine") -> lambda_.Function:
    code = lambda_.Code.from_inline("def handler(event, context): ...")
    return lambda_.Function(
        stack, id_, code=code, handler="index.handler", runtime=lambda_.Runtime.PYTHON_3_13
    )


def imported_role(stack: Stack, account: str = OWN) -> iam.IRole:
    return iam.Role.from_role_arn(stack, f"Role{account}", f"arn:aws:iam::{account}:role/theirs")


GRANTEES: dict[str, Callable[[Stack], Any]] = {
    "a role": lambda stack: iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com")),
    "a user": lambda stack: iam.User(stack, "User"),
    "a group": lambda stack: iam.Group(stack, "Group"),
    "a role by its ARN": imported_role,
    "a role by its name": lambda stack: iam.Role.from_role_name(stack, "Named", "theirs"),
    "an imported function with its role": lambda stack: lambda_.Function.from_function_attributes(
        stack,
        "Theirs",
        function_arn=f"arn:aws:lambda:eu-west-1:{OWN}:function:theirs",
        role=imported_role(stack),
    ),
    "an alias": lambda stack: lambda_.Alias(
        stack, "Live", alias_name="live", version=function(stack).current_version
    ),
    "a task of ECS": lambda stack: ecs.FargateTaskDefinition(stack, "Task").task_role,
    "a state machine": lambda stack: sfn.StateMachine(
        stack, "Machine", definition_body=sfn.DefinitionBody.from_chainable(sfn.Pass(stack, "Pass"))
    ),
}

REFUSED: dict[str, Callable[[Stack], Any]] = {
    "a service": lambda _: iam.ServicePrincipal("ecs-tasks.amazonaws.com"),
    "another account": lambda _: iam.AccountPrincipal(OTHER),
    "the own account": lambda _: iam.AccountPrincipal(OWN),
    "an organisation": lambda _: iam.OrganizationPrincipal("o-1234567890"),
    "anyone": lambda _: iam.AnyPrincipal(),
    "an ARN": lambda _: iam.ArnPrincipal(f"arn:aws:iam::{OTHER}:role/theirs"),
    "a role of another account": lambda stack: imported_role(stack, OTHER),
    "an imported function": lambda stack: lambda_.Function.from_function_arn(
        stack, "Theirs", f"arn:aws:lambda:eu-west-1:{OWN}:function:theirs"
    ),
}

GRANTS: dict[str, Callable[[EventStore, Any], None]] = {
    "append": lambda store, grantee: store.grant_append(grantee),
    "read": lambda store, grantee: store.grant_read(grantee),
    "feed": lambda store, grantee: store.grant_feed(grantee),
}


def policies(stack: Stack) -> list[list[str]]:
    """The statements of each policy of the stack that is no part of a role."""
    found = Template.from_stack(stack).to_json().get("Resources", {}).values()
    return [
        sorted(
            json.dumps(statement, sort_keys=True)
            for statement in each["Properties"]["PolicyDocument"]["Statement"]
        )
        for each in found
        if each["Type"] == "AWS::IAM::Policy"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("access", GRANTS)
def test_each_kind_of_identity_gets_the_statements_that_a_function_gets(shop: Stack, access: str) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    stacks = dict[str, tuple[Stack, Stack]]()
    for name, make in GRANTEES.items():
        id_ = name.title().replace(" ", "")
        theirs, of_function = beside(shop, id_), beside(shop, f"Function{id_}")
        GRANTS[access](store, make(theirs))
        GRANTS[access](store, function(of_function))
        stacks[name] = theirs, of_function
    for name, (theirs, of_function) in stacks.items():
        (expected,) = policies(of_function)
        assert expected in policies(theirs), name


@pytest.mark.parametrize("name", REFUSED)
def test_who_has_no_identity_policy_in_the_account_is_refused_by_name(shop: Stack, name: str) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    stacks = {access: beside(shop, access.title()) for access in GRANTS}
    for access, grant in GRANTS.items():
        with pytest.raises(
            BadSetting, match=rf"grant_{access} must be given a role, user or group"
        ) as refused:
            grant(store, REFUSED[name](stacks[access]))
        assert "not " in str(refused.value)
    assert [policies(stack) for stack in stacks.values()] == [[]] * len(GRANTS)


def test_keys_of_subjects_and_the_lake_refuse_the_same(shop: Stack) -> None:
    keys = SubjectKeys(shop, "Keys", store=EventStore(shop, "Events", api=None, watch=False))
    for grant, name in (keys.grant_sealing, "grant_sealing"), (keys.grant_forgetting, "grant_forgetting"):
        with pytest.raises(BadSetting, match=f"{name} must be given a role"):
            grant(iam.ServicePrincipal("ec2.amazonaws.com"))


def test_only_a_function_of_the_app_gets_variables_and_others_ask_for_them(shop: Stack) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    mine, task = function(shop), ecs.FargateTaskDefinition(shop, "Task")
    store.grant_append(mine)
    store.grant_append(task.task_role)
    told = store.environment(task, "append")
    assert set(told) >= {"EPOCHAL_STREAMS_TABLE", "EPOCHAL_BUCKET"}
    task.add_container("Web", image=ecs.ContainerImage.from_registry("web"), environment=told)
    found = Template.from_stack(shop).to_json()["Resources"]
    (container,) = (
        each["Properties"]["ContainerDefinitions"][0]
        for each in found.values()
        if each["Type"] == "AWS::ECS::TaskDefinition"
    )
    of_container = {each["Name"]: each["Value"] for each in container["Environment"]}
    (of_function,) = (
        each["Properties"]["Environment"]["Variables"]
        for id_, each in found.items()
        if each["Type"] == "AWS::Lambda::Function" and id_.startswith("Mine")
    )
    assert of_container == of_function


def test_two_grantees_of_a_stack_and_two_grants_of_one_do_not_collide(shop: Stack) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    for number in range(2):
        role = iam.Role(shop, f"Role{number}", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        store.grant_append(role)
        store.grant_read(role)
        store.grant_feed(role)
    assert len(policies(shop)) == 2


def test_a_bucket_is_no_grantee(shop: Stack) -> None:
    store = EventStore(shop, "Events", api=None, watch=False)
    bucket: Any = s3.Bucket(shop, "Bucket")
    with pytest.raises(BadSetting, match="grant_append must be given a role, user or group"):
        store.grant_append(bucket)
