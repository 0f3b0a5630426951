"""Reactions as they are deployed: the queue that wakes the function, what makes up for it, and what is alarmed."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template

from epochal.cdk.parts.functions import Code, Network
from epochal.cdk.parts.layers import Platform
from epochal.cdk.reaction import Reaction
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources
from epochal.cdk.stages import STAGES
from epochal.cdk.store import Store
from epochal.feed.events import FeedEvent
from epochal.layout.tables import READ_MODELS
from epochal.reactions.definition import Delivery
from epochal.read_models.documents import ReadModels
from epochal.settings import variable
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from stacks.stages import stage_from
from tests.surfaces.stacks.templates import Deployment, Synthesise

MAPPING = "AWS::Lambda::EventSourceMapping"
FUNCTION = "AWS::Lambda::Function"
QUEUE_TYPE = "AWS::SQS::Queue"
TABLE = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/board"
REACTIONS = {
    "board": {
        "entry": "board",
        "timeout_seconds": 120,
        "memory_mb": 512,
        "environment": {"BOARD": "board"},
        "permissions": [{"actions": ["dynamodb:PutItem"], "resources": [TABLE]}],
    },
    "delays": {"entry": "board", "read_models": ["delays", "airports"], "batch_size": 1},
}


@pytest.fixture(scope="module")
def deployed(synthesise: Synthesise) -> Deployment:
    return synthesise("prod", reactions=REACTIONS, read_models=True)


def properties(deployed: Deployment, type_: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = deployed.named("reactions", type_, name)["Properties"]
    return found


def id_of(deployed: Deployment, type_: str, name: str) -> str:
    (found,) = [each for each in deployed.of_type("reactions", type_) if each.startswith(name)]
    return found


def test_a_stage_without_reactions_has_no_stack_of_them(synthesise: Synthesise) -> None:
    assert "reactions" not in synthesise("prod").stacks


def test_each_declared_reaction_is_a_function_of_its_own(deployed: Deployment) -> None:
    functions = deployed.of_type("reactions", FUNCTION).values()
    assert {each["Properties"].get("FunctionName") for each in functions} == {
        "epochal-prod-reaction-board",
        "epochal-prod-reaction-delays",
        None,  # the waker
    }


def test_lambda_lets_reactions_wake_themselves_for_as_long_as_they_like_and_no_other_function(
    deployed: Deployment,
) -> None:
    looping = {
        each["Properties"].get("FunctionName")
        for each in deployed.resources()
        if each["Type"] == FUNCTION and each["Properties"].get("RecursiveLoop") == "Allow"
    }
    assert looping == {"epochal-prod-reaction-board", "epochal-prod-reaction-delays"}


def test_it_is_told_its_name_its_queue_and_where_everything_is(deployed: Deployment) -> None:
    function = properties(deployed, FUNCTION, "boardFunction")
    variables = function["Environment"]["Variables"]
    assert variables[variable("reaction")] == "board"
    assert variables[variable("queue")] == {"Ref": id_of(deployed, QUEUE_TYPE, "boardQueue")}
    assert variables[variable("tips_table")] == "epochal-prod-tips"
    assert variables[variable("index_table")] == "epochal-prod-index"
    assert variables[variable("tags_table")] == "epochal-prod-tags"
    assert variables[variable("bucket")]["Fn::Join"][1][0] == "epochal-prod-bodies-"
    assert variables["BOARD"] == "board"
    assert (function["Timeout"], function["MemorySize"], len(function["Layers"])) == (120, 512, 2)


def test_no_stack_exports_anything_for_it(deployed: Deployment, synthesise: Synthesise) -> None:
    """An export that is in use could not be changed until every reaction lets go of it."""
    assert "Fn::ImportValue" not in str(deployed.template("reactions"))
    assert deployed.template("feed") == synthesise("prod", read_models=True).template("feed")


@pytest.mark.parametrize(("name", "timeout"), [("board", 120), ("delays", 60)])
def test_a_wake_up_is_hidden_for_as_long_as_the_function_may_run_and_set_aside_after_240_receives(
    deployed: Deployment, name: str, timeout: int
) -> None:
    queue = properties(deployed, QUEUE_TYPE, f"{name}Queue")
    failed = id_of(deployed, QUEUE_TYPE, f"{name}Failed")
    assert properties(deployed, FUNCTION, f"{name}Function")["Timeout"] == timeout
    assert queue["VisibilityTimeout"] == timeout
    assert queue["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": [failed, "Arn"]},
        "maxReceiveCount": 240,
    }


def test_notices_come_raw_from_the_stages_topic_and_from_nowhere_else(deployed: Deployment) -> None:
    subscription = properties(deployed, "AWS::SNS::Subscription", "boardNotices")
    queue = id_of(deployed, QUEUE_TYPE, "boardQueue")
    assert subscription["RawMessageDelivery"] is True
    assert subscription["Endpoint"] == {"Fn::GetAtt": [queue, "Arn"]}
    topic = subscription["TopicArn"]
    assert topic["Fn::Join"][1][-1] == ":epochal-prod-notices.fifo"
    policy = properties(deployed, "AWS::SQS::QueuePolicy", "boardQueuePolicy")["PolicyDocument"]["Statement"]
    (sending,) = [each for each in policy if each["Effect"] == "Allow"]
    assert sending["Principal"] == {"Service": "sns.amazonaws.com"}
    assert sending["Action"] == "sqs:SendMessage"
    assert sending["Condition"] == {"ArnEquals": {"aws:SourceArn": topic}}


def test_queues_take_no_plain_http(deployed: Deployment) -> None:
    for name in ("boardQueuePolicy", "boardFailedPolicy"):
        policy = properties(deployed, "AWS::SQS::QueuePolicy", name)["PolicyDocument"]["Statement"]
        (refusing,) = [each for each in policy if each["Effect"] == "Deny"]
        assert refusing["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_its_deployment_wakes_it_once_it_is_subscribed(deployed: Deployment) -> None:
    wake_up = deployed.named("reactions", "Custom::EpochalWakeUp", "boardFirstWakeUp")
    assert wake_up["Properties"]["Queue"] == {"Ref": id_of(deployed, QUEUE_TYPE, "boardQueue")}
    assert {
        id_of(deployed, MAPPING, "boardWakeUps"),
        id_of(deployed, "AWS::SNS::Subscription", "boardNotices"),
        id_of(deployed, "AWS::SQS::QueuePolicy", "boardQueuePolicy"),
    } <= set(wake_up["DependsOn"])


def test_no_function_with_a_users_code_answers_cloudformation(deployed: Deployment) -> None:
    """One that cannot be imported answers neither the creation nor the rollback's deletion."""
    waker = id_of(deployed, FUNCTION, "EpochalWaker")
    guard = next(id_ for id_ in deployed.of_type("store", FUNCTION) if id_.startswith("GuardFunction"))
    answering = {
        str(each["Properties"]["ServiceToken"])
        for each in deployed.resources()
        if each["Type"].startswith("Custom::") or "ServiceToken" in each.get("Properties", {})
    }
    assert answering == {str({"Fn::GetAtt": [each, "Arn"]}) for each in (waker, guard)}
    function = deployed.of_type("reactions", FUNCTION)[waker]["Properties"]
    assert function["Handler"] == "handler.handler"
    assert function["Environment"]["Variables"].keys() == {
        variable("index_table"),
        "POWERTOOLS_LOG_LEVEL",
        "POWERTOOLS_SERVICE_NAME",
    }


def test_the_waker_may_wake_the_queues_of_all_reactions_in_its_stack(deployed: Deployment) -> None:
    role = deployed.named("reactions", "AWS::IAM::Role", "EpochalWaker")["Properties"]["Policies"][0]
    (sending,) = [each for each in role["PolicyDocument"]["Statement"] if "sqs:" in str(each["Action"])]
    queues = [id_of(deployed, QUEUE_TYPE, f"{name}Queue") for name in ("board", "delays")]
    assert sending == {
        "Action": "sqs:SendMessage",
        "Effect": "Allow",
        "Resource": [{"Fn::GetAtt": [each, "Arn"]} for each in queues],
    }


def test_a_deployment_that_hangs_ends_within_minutes(deployed: Deployment) -> None:
    wake_up = properties(deployed, "Custom::EpochalWakeUp", "boardFirstWakeUp")
    assert int(wake_up["ServiceTimeout"]) <= 300


def test_other_code_is_another_first_wake_up_and_the_same_code_is_none(
    sources: Sources, tmp_path: Path
) -> None:
    def code(text: str) -> str:
        (tmp_path / "handler.py").write_text(text)
        template = alone(sources, name="mine", entry=tmp_path)
        ((_, wake_up),) = template.find_resources("Custom::EpochalWakeUp").items()
        found: str = wake_up["Properties"]["Code"]
        return found

    first = code("handler = print\n")
    assert code("handler = print\n") == first
    assert code("handler = repr\n") != first


def test_a_schedule_makes_up_for_lost_wake_ups(deployed: Deployment) -> None:
    rule = properties(deployed, "AWS::Events::Rule", "boardSchedule")
    function = {"Fn::GetAtt": [id_of(deployed, FUNCTION, "boardFunction"), "Arn"]}
    assert rule["ScheduleExpression"] == "rate(15 minutes)"
    assert [each["Arn"] for each in rule["Targets"]] == [function]
    permission = properties(deployed, "AWS::Lambda::Permission", "boardSchedule")
    assert permission["Principal"] == "events.amazonaws.com"
    assert permission["SourceArn"] == {
        "Fn::GetAtt": [id_of(deployed, "AWS::Events::Rule", "boardSchedule"), "Arn"]
    }


def test_function_and_queue_are_told(deployed: Deployment) -> None:
    outputs = deployed.template("reactions")["Outputs"].values()
    told = [each["Value"] for each in outputs if each["Description"].endswith("the reaction board")]
    assert told == [
        {"Ref": id_of(deployed, FUNCTION, "boardFunction")},
        {"Ref": id_of(deployed, QUEUE_TYPE, "boardQueue")},
    ]


def test_tables_of_other_names_are_found_too(synthesise: Synthesise) -> None:
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/kept"
    deployed = synthesise(
        reactions=REACTIONS, read_models=True, existing_tips=f"{arn}/stream/2026-01-01T00:00:00.000"
    )
    variables = properties(deployed, FUNCTION, "boardFunction")["Environment"]["Variables"]
    assert variables[variable("tips_table")] == "kept"
    assert arn in str(properties(deployed, "AWS::IAM::Role", "boardFunctionRole"))


def test_an_invocation_is_given_as_many_wake_ups_as_its_declaration_says(deployed: Deployment) -> None:
    """Members that are woken by one invocation would run one after another."""
    sizes = [properties(deployed, MAPPING, f"{name}WakeUps")["BatchSize"] for name in ("board", "delays")]
    assert sizes == [10, 1]


def test_it_is_deployed_after_what_feeds_it(deployed: Deployment) -> None:
    feed = deployed.stacks["feed"]
    assert feed in deployed.stacks["reactions"].dependencies


def test_the_construct_stands_in_any_stack_with_numbers_of_ones_own(sources: Sources) -> None:
    template = alone(
        sources,
        name="mine",
        entry=sources.root / "board",
        timeout_seconds=600,
        batch_size=1,
        max_receives=3,
        schedule_minutes=60,
        reserved_concurrency=5,
        permissions=[iam.PolicyStatement(actions=["ses:SendEmail"], resources=["arn:aws:ses:::identity/me"])],
    )
    (function,) = [each for id_, each in template.find_resources(FUNCTION).items() if id_.startswith("Mine")]
    assert function["Properties"]["ReservedConcurrentExecutions"] == 5
    assert function["Properties"]["Timeout"] == 600
    queues = [each["Properties"] for each in template.find_resources(QUEUE_TYPE).values()]
    assert [each["RedrivePolicy"]["maxReceiveCount"] for each in queues if "RedrivePolicy" in each] == [3]
    template.has_resource_properties(MAPPING, {"BatchSize": 1})
    template.has_resource_properties("AWS::Events::Rule", {"ScheduleExpression": "rate(1 hour)"})
    (role,) = [
        each for id_, each in template.find_resources("AWS::IAM::Role").items() if id_.startswith("Mine")
    ]
    assert "ses:SendEmail" in str(role)


def test_a_reaction_runs_in_the_network_that_it_is_given_and_its_role_lets_lambda_in(
    sources: Sources,
) -> None:
    elsewhere = Stack(App(), "elsewhere")
    vpc = ec2.Vpc.from_vpc_attributes(
        elsewhere, "Vpc", vpc_id="vpc-1", availability_zones=["a"], private_subnet_ids=["subnet-1"]
    )
    group = ec2.SecurityGroup.from_security_group_id(elsewhere, "Group", "sg-1")
    network = Network(vpc=vpc, security_groups=[group])
    template = alone(sources, name="mine", entry=sources.root / "board", network=network)
    (function,) = [each for id_, each in template.find_resources(FUNCTION).items() if id_.startswith("Mine")]
    assert function["Properties"]["VpcConfig"] == {"SecurityGroupIds": ["sg-1"], "SubnetIds": ["subnet-1"]}
    roles = template.find_resources("AWS::IAM::Role").items()
    allowed = {id_: "ec2:CreateNetworkInterface" in str(each) for id_, each in roles}
    assert [id_.startswith("Mine") for id_, is_allowed in allowed.items() if is_allowed] == [True]

    template = alone(sources, name="mine", entry=sources.root / "board", network=Network(vpc=vpc))
    groups = template.find_resources("AWS::EC2::SecurityGroup")
    assert [each["Properties"]["VpcId"] for each in groups.values()] == ["vpc-1"]


def test_a_reaction_that_makes_read_models_is_told_their_table_and_may_change_its_own(
    deployed: Deployment,
) -> None:
    variables = properties(deployed, FUNCTION, "delaysFunction")["Environment"]["Variables"]
    assert variables[variable("read_models_table")] == "epochal-prod-read-models"
    (policy,) = properties(deployed, "AWS::IAM::Role", "delaysFunctionRole")["Policies"]
    (statement,) = [
        each for each in policy["PolicyDocument"]["Statement"] if "read-models" in str(each["Resource"])
    ]
    kinds = ("BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query")
    assert statement["Action"] == [f"dynamodb:{kind}" for kind in kinds]
    assert statement["Condition"] == {
        "ForAllValues:StringLike": {
            "dynamodb:LeadingKeys": ["delays", "delays@*", "airports", "airports@*"],
        }
    }


def test_others_are_neither_told_of_it_nor_let_in(deployed: Deployment) -> None:
    assert (
        variable("read_models_table")
        not in properties(deployed, FUNCTION, "boardFunction")["Environment"]["Variables"]
    )
    assert "read-models" not in str(properties(deployed, "AWS::IAM::Role", "boardFunctionRole"))


def test_what_its_keys_are_like_is_what_the_library_writes() -> None:
    """The names and their generations, and no other model whose name begins alike."""
    tables = MemoryTables({READ_MODELS.kind: READ_MODELS})
    models = ReadModels(driver=Driver(execute=tables.execute, meter=Meter()), table=READ_MODELS.kind)
    for name in ("delays", "delays-2"):
        model = models.open(name, 12, keys={"by": str})
        event = FeedEvent(stream="Flight-1", index=0, type="Departed")
        delivery = Delivery(group="g", partition=0, stream="Flight-1", events=(event,))
        assert model.apply(delivery, lambda documents, event: documents.put(event.type, 1)) == 1
        models.swap(name, 12)
    written = {item["pk"]["S"] for item in tables.items(READ_MODELS.kind)}
    own = {key for key in written if any(fnmatchcase(key, each) for each in ("delays", "delays@*"))}
    assert {re.split("[#/]", key)[0] for key in own} == {"delays", "delays@12"}
    assert {re.split("[#/]", key)[0] for key in written - own} == {"delays-2", "delays-2@12"}
    assert any("/by/" in key for key in own)


@pytest.mark.parametrize(
    "settings",
    [
        {"reactions": {"board": {"entry": "x", "read_models": ["counts"]}}},
        {"existing_read_models": "arn:aws:dynamodb:eu-west-1:123456789012:table/kept"},
    ],
)
def test_read_models_need_the_stage_to_have_their_table(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSetting, match="must be true for") as refused:
        stage_from("dev", {"prod": settings})
    assert refused.value.name == "stages.prod.read_models"


def test_what_would_fail_only_once_deployed_is_refused(sources: Sources) -> None:
    with pytest.raises(BadSetting, match="must be shorter"):
        alone(sources, name="n" * 50, entry=sources.root / "board")
    with pytest.raises(BadSetting, match=r"board/other\.py does not exist"):
        alone(sources, name="mine", entry=sources.root / "board", handler="other.handler")
    with pytest.raises(
        BadSetting, match=r"read_models must be true for the store, EventStore\(…, read_models=True\)"
    ):
        alone(sources, name="mine", entry=sources.root / "board", read_models=["counts"])


@pytest.mark.parametrize("name", ["mine", "timers"])
def test_two_reactions_of_one_name_are_refused(sources: Sources, name: str) -> None:
    """The second would go on from the checkpoints of the first."""
    stack = Stack(App(), "mine")
    code = Code(
        library=sources.library("3.13"),
        vendor=sources.vendor(Platform(python="3.13")),
        packages=lambda _: sources.lambdas,
        lambdas=sources.lambdas,
        architecture=lambda_.Architecture.ARM_64,
    )
    entry = sources.root / "board"
    store = Store(stack, "Store", stage=STAGES["prod"], code=lambda *_: code)
    other = Store(stack, "Other", stage=stage_from("dev", {"dev": {}}), code=lambda *_: code)
    Reaction(stack, "First", store=store, entry=entry, name=name)
    Reaction(stack, "Elsewhere", store=other, entry=entry, name=name)
    with pytest.raises(BadSetting, match="must have a different name: mine/First already has it") as refused:
        Reaction(stack, "Second", store=store, entry=entry, name=name)
    assert refused.value.name == f"reactions.{name}"


@pytest.mark.parametrize(
    "declared",
    [
        [],
        {"a b": {"entry": "x"}},
        {"board": {}},
        {"board": {"entry": ""}},
        {"board": {"entry": "x", "handlr": "a.b"}},
        {"board": {"entry": "x", "handler": "handler"}},
        {"board": {"entry": "x", "timeout_seconds": 901}},
        {"board": {"entry": "x", "batch_size": 11}},
        {"board": {"entry": "x", "environment": {"EPOCHAL_QUEUE": "mine"}}},
        {"board": {"entry": "x", "permissions": [{"actions": ["dynamodb:PutItem"]}]}},
        {"board": {"entry": "x", "permissions": [{"actions": ["PutItem"], "resources": ["*"]}]}},
        {"board": {"entry": "x", "permissions": [{"actions": [], "resources": ["*"]}]}},
        {"board": {"entry": "x", "read_models": "counts"}},
        {"board": {"entry": "x", "read_models": ["*"]}},
        {"board": {"entry": "x", "read_models": ["a@1"]}},
    ],
)
def test_a_declaration_that_breaks_a_rule_is_refused(declared: Any) -> None:
    with pytest.raises(BadSetting, match="must be|is not a known member") as refused:
        stage_from("dev", {"prod": {"reactions": declared}})
    assert f"{refused.value.name}.".startswith("stages.prod.reactions.")


def alone(sources: Sources, **options: Any) -> Template:
    """The construct in a stack of a user's own."""
    stack = Stack(App(), "mine")
    code = Code(
        library=sources.library("3.13"),
        vendor=sources.vendor(Platform(python="3.13")),
        packages=lambda _: sources.lambdas,
        lambdas=sources.lambdas,
        architecture=lambda_.Architecture.ARM_64,
    )
    store = Store(stack, "Store", stage=STAGES["prod"], code=lambda *_: code)
    Reaction(stack, "Mine", store=store, **options)
    return Template.from_stack(stack)
