"""Timers as they are deployed: nothing where a stage has none of them; else what fires them, and what that may do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from epochal.cdk import EventStore
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources
from epochal.cdk.targets import TARGET
from epochal.hosting.leases import LEASE_SECONDS, RENEW_SECONDS
from epochal.settings import variable
from stacks.stages import stage_from
from tests.support.permissions import on
from tests.surfaces.stacks.templates import Deployment, Resource, Synthesise
from tests.surfaces.stacks.test_permissions import EXPECTED, KEY, OWN_LOG, listed, plainly

FUNCTION = "AWS::Lambda::Function"
MAPPING = "AWS::Lambda::EventSourceMapping"
QUEUE = "AWS::SQS::Queue"
ROLE = "AWS::IAM::Role"
GROUP = "AWS::Scheduler::ScheduleGroup"
SCHEDULER = "scheduler.amazonaws.com"


@pytest.fixture(scope="module")
def deployed(synthesise: Synthesise) -> Deployment:
    return synthesise("prod", timers=True)


def properties(deployed: Deployment, type_: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = deployed.named("feed", type_, name)["Properties"]
    return found


def statements(deployed: Deployment, name: str) -> list[dict[str, Any]]:
    (policy,) = properties(deployed, ROLE, name)["Policies"]
    found: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return found


def allowed(deployed: Deployment, name: str) -> set[tuple[str, str]]:
    return {
        (action, named(resource))
        for statement in statements(deployed, name)
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def named(resource: Any) -> str:
    """What stands for an ARN here, beside what `plainly` knows."""
    for pattern, meaning in (
        ("'TimersQueue", "wake-ups"),
        ("'TimersArmingQueue", "own queue"),
        ("'TimersRole", "role of schedules"),
        (":schedule/epochal-prod-timers/*", "schedules of the group"),
    ):
        if pattern in str(resource):
            return meaning
    return plainly(resource)


def test_a_stage_without_timers_has_nothing_of_them(synthesise: Synthesise) -> None:
    """No resource, no schedule, no permission, no variable, no alarm; so no request, and no cost. The API has its
    routes: timers are set in streams all the same.
    """
    for settings in ({}, {"reactions": {"board": {"entry": "board"}}, "archive": True, "read_models": True}):
        templates = synthesise("prod", **settings).in_order()
        del templates["epochal-prod-api"]
        text = json.dumps(templates).lower()
        assert "timers" not in text
        assert "scheduler" not in text


def test_timers_change_nothing_of_what_else_a_stage_has_but_its_dashboard(
    synthesise: Synthesise, deployed: Deployment
) -> None:
    without = synthesise("prod").in_order()
    for name, template in deployed.in_order().items():
        changed = {
            id_
            for id_, each in without[name]["Resources"].items()
            if template["Resources"].get(id_) != each and each["Type"] != "AWS::Lambda::LayerVersion"
        }
        assert changed == ({"Dashboard9E4231ED"} if name == "epochal-prod-watch" else set())


def test_a_wake_up_is_hidden_for_as_long_as_the_function_may_run_and_set_aside_after_two_hours_of_retries(
    deployed: Deployment,
) -> None:
    queue, function = (
        properties(deployed, QUEUE, "TimersQueue"),
        properties(deployed, FUNCTION, "TimersFunction"),
    )
    (failed,) = [id_ for id_ in deployed.of_type("feed", QUEUE) if id_.startswith("TimersFailed")]
    assert queue["VisibilityTimeout"] == function["Timeout"] == 60, "AWS takes no less"
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": [failed, "Arn"]}
    assert queue["RedrivePolicy"]["maxReceiveCount"] * (LEASE_SECONDS - RENEW_SECONDS) == 2 * 3_600
    assert "FifoQueue" not in queue, "a message of a FIFO queue cannot be kept back by itself"


def test_queues_are_encrypted_and_reached_by_tls_alone(deployed: Deployment) -> None:
    policies = deployed.of_type("feed", "AWS::SQS::QueuePolicy").values()
    closed = {
        queue["Ref"]
        for each in policies
        for queue in each["Properties"]["Queues"]
        if any(
            statement["Effect"] == "Deny"
            and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
            for statement in each["Properties"]["PolicyDocument"]["Statement"]
        )
    }
    queues = deployed.of_type("feed", QUEUE)
    assert closed == queues.keys()
    assert all(each["Properties"]["SqsManagedSseEnabled"] for each in queues.values())


def test_the_function_is_woken_by_so_many_at_once_and_may_fail_in_part(deployed: Deployment) -> None:
    mapping = properties(deployed, MAPPING, "TimersWakeUps")
    (queue,) = [id_ for id_ in deployed.of_type("feed", QUEUE) if id_.startswith("TimersQueue")]
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": [queue, "Arn"]}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 10}
    assert "MaximumBatchingWindowInSeconds" not in mapping, "a timer is fired to the second"


def test_no_more_are_woken_than_the_stage_reserves(synthesise: Synthesise) -> None:
    chosen = synthesise("prod", timers=True, reserved_concurrency={"timers": 4})
    assert properties(chosen, MAPPING, "TimersWakeUps")["ScalingConfig"] == {"MaximumConcurrency": 4}
    assert properties(chosen, FUNCTION, "TimersFunction")["ReservedConcurrentExecutions"] == 4


def test_every_function_with_a_schedule_is_repeated_by_no_one(deployed: Deployment) -> None:
    rules = [rule["Properties"] for rule in deployed.of_type("feed", "AWS::Events::Rule").values()]
    scheduled = {target["Arn"]["Fn::GetAtt"][0] for rule in rules for target in rule["Targets"]}
    configs = deployed.of_type("feed", "AWS::Lambda::EventInvokeConfig").values()
    told = {each["Properties"]["FunctionName"]["Ref"]: each["Properties"] for each in configs}
    assert len(scheduled) >= 3
    assert told.keys() == scheduled
    assert {each["MaximumRetryAttempts"] for each in told.values()} == {0}
    targets = [target for rule in rules for target in rule["Targets"]]
    assert {
        target["RetryPolicy"]["MaximumRetryAttempts"] for target in targets if "RetryPolicy" in target
    } == {0}
    assert all("RetryPolicy" in target for target in targets)


def test_schedules_of_the_group_and_no_others_may_send_to_the_queue_and_do_nothing_else(
    deployed: Deployment,
) -> None:
    role = properties(deployed, ROLE, "TimersRole")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    ((group, its),) = deployed.of_type("feed", GROUP).items()
    assert its["Properties"]["Name"] == "epochal-prod-timers"
    assert trust["Principal"] == {"Service": SCHEDULER}
    assert trust["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
        "ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": [group, "Arn"]}},
    }
    assert allowed(deployed, "TimersRole") == {("sqs:SendMessage", "wake-ups")}


FIRING = {
    *on("timers", "Query", "DeleteItem"),
    *on("streams", "GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem"),
    *on("tips", "GetItem", "Query", "PutItem", "UpdateItem"),
    *on("events", "GetItem", "BatchGetItem", "PutItem"),
    *on("tags", "GetItem", "BatchGetItem", "Query", "PutItem"),
}
"""What the function does to tables."""

WAKING = {
    ("sqs:SendMessage", "wake-ups"),
    ("scheduler:CreateSchedule", "schedules of the group"),
    ("iam:PassRole", "role of schedules"),
}


def test_the_function_appends_to_streams_and_takes_timers_from_their_table_and_nothing_else(
    deployed: Deployment,
) -> None:
    assert allowed(deployed, "TimersFunctionRole") == {
        *OWN_LOG,
        *on(
            "wake-ups",
            *("ReceiveMessage", "DeleteMessage", "GetQueueAttributes"),
            *("ChangeMessageVisibility", "SendMessage"),
            service="sqs",
        ),
        *FIRING,
        *on("bodies", "ListBucket", service="s3"),
        *on("bodies/*", "GetObject", "PutObject", service="s3"),
    }


def test_the_reaction_puts_timers_into_their_table_and_else_may_what_reactions_may(
    synthesise: Synthesise, deployed: Deployment
) -> None:
    of_any = {pair for pair in EXPECTED["reaction"] if pair[1] not in ("board", "read-models")}
    assert allowed(deployed, "TimersArmingFunctionRole") == {*of_any, *WAKING, *on("timers", "PutItem")}


def test_the_role_is_passed_to_the_scheduler_and_to_no_other_service(deployed: Deployment) -> None:
    of_reaction = statements(deployed, "TimersArmingFunctionRole")
    (passing,) = [each for each in of_reaction if each["Action"] == "iam:PassRole"]
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": SCHEDULER}}


def test_a_key_of_ones_own_adds_the_use_of_that_key_and_nothing_else(
    synthesise: Synthesise, deployed: Deployment
) -> None:
    with_key = synthesise("prod", timers=True, kms_key=KEY)
    for name in ("TimersFunctionRole", "TimersArmingFunctionRole"):
        added = allowed(with_key, name) - allowed(deployed, name)
        assert ("kms:GenerateDataKey", KEY) in added
        assert {resource for _, resource in added} == {KEY}


def test_functions_are_told_where_timers_wait_and_what_wakes_them(deployed: Deployment) -> None:
    (queue,) = [id_ for id_ in deployed.of_type("feed", QUEUE) if id_.startswith("TimersQueue")]
    (role,) = [id_ for id_ in deployed.of_type("feed", ROLE) if id_.startswith("TimersRole")]
    for name in ("TimersFunction", "TimersArmingFunction"):
        told = properties(deployed, FUNCTION, name)["Environment"]["Variables"]
        assert told[variable("timers_table")] == "epochal-prod-timers"
        assert told[variable("timers_queue")] == {"Ref": queue}
    # Whoever fires, sends itself messages alone.
    assert (
        variable("timers_schedules")
        not in properties(deployed, FUNCTION, "TimersFunction")["Environment"]["Variables"]
    )
    assert told[variable("timers_schedules")]["Fn::Join"][1] == [
        "epochal-prod-timers,",
        {"Fn::GetAtt": [queue, "Arn"]},
        ",",
        {"Fn::GetAtt": [role, "Arn"]},
    ]


def test_the_function_is_told_what_append_is_told(synthesise: Synthesise) -> None:
    """What an append comes to depends on it: types that have streams, shards, calving."""
    chosen = {"tagged_types": ["NameClaimed"], "write_shards": 4, "service": "shop", "retries": 3}
    deployed = synthesise("prod", timers=True, **chosen)
    told = properties(deployed, FUNCTION, "TimersFunction")["Environment"]["Variables"]
    append = deployed.named("api", FUNCTION, "Append")["Properties"]["Environment"]["Variables"]
    of_append = {name: each for name, each in append.items() if name.startswith("EPOCHAL_")}
    assert of_append.items() <= told.items()


def test_no_other_function_is_told_of_timers(deployed: Deployment) -> None:
    told = {
        each["Properties"].get("FunctionName")
        for each in deployed.resources()
        if each["Type"] == FUNCTION
        and any("TIMERS" in name for name in each["Properties"]["Environment"]["Variables"])
    }
    assert told == {"epochal-prod-timers", "epochal-prod-reaction-timers"}


def test_the_embedded_aws_is_asked_for_schedules_by_another_name_as_well(synthesise: Synthesise) -> None:
    (creating,) = [
        each
        for each in statements(synthesise("dev", "embedded", timers=True), "TimersArmingFunctionRole")
        if each["Action"] == "scheduler:CreateSchedule"
    ]
    assert [str(each).rpartition(":schedule/")[2].split("'")[0] for each in creating["Resource"]] == [
        "default/*",
        "epochal-dev-timers/*",
    ]


def alarm(deployed: Deployment, name: str) -> Resource:
    (found,) = [
        each["Properties"]
        for each in deployed.of_type("feed", "AWS::CloudWatch::Alarm").values()
        if each["Properties"]["AlarmName"] == f"epochal-prod-{name}"
    ]
    return found


def test_a_reaction_of_a_stage_cannot_have_the_name_of_the_one_that_arms() -> None:
    with pytest.raises(BadSetting, match=r"stages\.prod\.reactions must not contain timers"):
        stage_from("prod", {"prod": {"timers": True, "reactions": {"timers": {"entry": "board"}}}})
    assert stage_from("prod", {"prod": {"reactions": {"timers": {"entry": "board"}}}}).reactions


def test_existing_timers_mean_nothing_without_timers() -> None:
    table = "arn:aws:dynamodb:eu-west-1:123456789012:table/kept"
    with pytest.raises(BadSetting, match=r"stages\.prod\.timers must be true"):
        stage_from("prod", {"prod": {"existing_timers": table}})


class TestInAnAppOfOnesOwn:
    @pytest.fixture(autouse=True)
    def shipped(self, sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Sources, "shipped", lambda: sources)
        monkeypatch.delenv(TARGET, raising=False)

    @staticmethod
    def template(**options: Any) -> dict[str, Any]:
        stack = Stack(App(), "Shop")
        EventStore(stack, "Events", name="shop", **options)
        template: dict[str, Any] = Template.from_stack(stack).to_json()
        return template

    def test_a_store_has_them_where_it_is_asked_for_them(self) -> None:
        found = self.template(timers=True)
        names = {
            each["Properties"].get("FunctionName")
            for each in found["Resources"].values()
            if each["Type"] == FUNCTION
        }
        assert {"shop-timers", "shop-reaction-timers"} <= names
        (topic,) = [id_ for id_, each in found["Resources"].items() if each["Type"] == "AWS::SNS::Topic"]
        (told,) = [
            each["Properties"]["TopicArn"]
            for each in found["Resources"].values()
            if each["Type"] == "AWS::SNS::Subscription"
        ]
        assert told == {"Ref": topic}
        assert found["Outputs"]["TimersTable"]["Value"]["Ref"].startswith("EventsStoreTimers")

    def test_and_nothing_of_them_where_it_is_not(self) -> None:
        text = json.dumps(self.template(api=None)).lower()
        assert "timers" not in text
        assert "scheduler" not in text


def test_the_reaction_subscribes_to_a_topic_that_is_there(deployed: Deployment) -> None:
    """It knows it by its name, and both are of one stack."""
    subscription = deployed.named("feed", "AWS::SNS::Subscription", "TimersArmingNotices")
    (topic,) = deployed.of_type("feed", "AWS::SNS::Topic")
    assert topic in subscription["DependsOn"]
