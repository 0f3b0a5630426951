"""Checks of what is deployed: each passes on an account as it should be, and fails where one thing in it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from epochal.contrib.proving import commands as checks
from epochal.contrib.proving.deployed_stacks import (
    DeployedStack,
    functions_of,
    resolved,
    stacks_of,
    stacks_with_functions,
)
from epochal.contrib.proving.proof import Broken, ProofRun, Trial, Unproven, prove
from epochal.errors import Refused
from tests.contrib.proving.stage import ACCOUNT, REGION, Stage, deployed_as, function
from tests.surfaces.stacks.test_permissions import EXPECTED

FUNCTIONS = ("append", "replay", "feed", "indexer", "auditor", "reaction-board")
BUCKET = "a-bucket"
TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/"
ALARM = {"Type": "AWS::CloudWatch::Alarm"}
WATCHED = ("append", "indexer", "auditor")


@dataclass
class Account:
    """Stands in for the clients of Lambda, IAM, CloudWatch and CloudFormation. A test changes one thing in it.

    Attributes:
        configured: what differs from the template, by function.
        allows: beyond what the matrix says, by function: action and kind of table.
        data: functions that CloudWatch has metrics of, once so many requests were made.
    """

    mapping: dict[str, Any] = field(
        default_factory=lambda: {"State": "Enabled", "LastProcessingResult": "OK"}
    )
    configured: dict[str, dict[str, Any]] = field(default_factory=dict)
    recursion: str = "Allow"
    allows: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    unsure: bool = False
    denies: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    data: tuple[str, ...] = WATCHED
    after: int = 0
    error: str = ""
    asked: int = 0
    meta: Any = field(
        default_factory=lambda: SimpleNamespace(endpoint_url="https://x.us-east-1.amazonaws.com")
    )

    def client(self, _: str) -> Any:
        return self

    def _may_fail(self) -> None:
        if self.error:
            raise ClientError({"Error": {"Code": self.error, "Message": "no"}}, "Any")

    def get_event_source_mapping(self, UUID: str) -> dict[str, Any]:  # noqa: N803  AWS's names, and so below
        self._may_fail()
        return {"EventSourceArn": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{UUID}", **self.mapping}

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:  # noqa: N803
        properties = template(FunctionName.removeprefix("epochal-dev-"))["Properties"]
        return deployed_as(FunctionName, properties, **self.configured.get(FunctionName, {}))

    def get_function_recursion_config(self, FunctionName: str) -> dict[str, Any]:  # noqa: N803, ARG002
        self._may_fail()
        return {"RecursiveLoop": self.recursion}

    def simulate_principal_policy(self, **asked: Any) -> dict[str, Any]:
        self._may_fail()
        name = asked["PolicySourceArn"].rpartition("/epochal-dev-")[2]
        (resource,) = asked["ResourceArns"]
        kind = resource.rpartition("/")[2]
        if resource == f"arn:aws:s3:::{BUCKET}/bodies/proof":
            kind = "bodies/*"
        else:
            assert resource in ("*", f"{TABLE}{kind}")
        can = EXPECTED["reaction" if name.startswith("reaction") else name] | self.allows.get(name, set())
        can -= self.denies.get(name, set())
        verdicts = {True: "allowed", False: "implicitDeny"}
        return {
            "EvaluationResults": [
                {"EvalActionName": action, "EvalDecision": verdicts[(action, kind) in can]}
                | ({"MissingContextValues": ["dynamodb:LeadingKeys"]} if self.unsure else {})
                for action in asked["ActionNames"]
            ]
        }

    def describe_alarms(self, AlarmNames: list[str]) -> dict[str, Any]:  # noqa: N803
        assert len(AlarmNames) <= 50
        return {
            "MetricAlarms": [
                {
                    "AlarmName": name,
                    "StateValue": self.states.get(name, "OK"),
                    "Namespace": "AWS/Lambda",
                    "MetricName": "Errors",
                    "Dimensions": [{"Name": "FunctionName", "Value": name.removesuffix("-fails")}],
                }
                for name in AlarmNames
                if self.states.get(name) != "gone"
            ]
        }

    def get_metric_data(self, MetricDataQueries: Any, **_: Any) -> dict[str, Any]:  # noqa: N803
        self.asked += 1
        found = []
        for each in MetricDataQueries:
            (dimension,) = each["MetricStat"]["Metric"]["Dimensions"]
            there = dimension["Value"].rpartition("-")[2] in self.data and self.asked > self.after
            times = [_Time()] if there else []
            found.append({"Id": each["Id"], "Timestamps": times, "Values": [0.0] * len(times)})
        return {"MetricDataResults": found}


class _Time:
    def timestamp(self) -> float:
        return 60.0


def template(name: str) -> dict[str, Any]:
    variables: dict[str, Any] = {"EPOCHAL_INDEX_TABLE": "index"} if name != "append" else {}
    if name.startswith("reaction-"):
        variables |= {"EPOCHAL_REACTION": name.removeprefix("reaction-"), "EPOCHAL_QUEUE": {"Ref": "Queue"}}
    return function(f"epochal-dev-{name}", **variables)


def stacks() -> tuple[DeployedStack, ...]:
    functions = {name.title().replace("-", ""): template(name) for name in FUNCTIONS}
    alarms = {f"{name.title()}Fails": ALARM for name in WATCHED}
    mapping = {"Heads": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {}}}
    names = {logical: each["Properties"]["FunctionName"] for logical, each in functions.items()}
    named = {f"{name.title()}Fails": f"epochal-dev-{name}-fails" for name in WATCHED}
    return (
        DeployedStack(
            name="epochal-dev-feed",
            resources={**functions, **alarms, **mapping},
            physical={**names, **named, "Heads": "streams", "Queue": "https://sqs/queue"},
        ),
    )


def proof(account: Account) -> ProofRun:
    stage = Stage()
    stage.api.chosen = {"bucket": BUCKET}
    made = stage.proof(stacks(), account.client)
    configured = account.configured.setdefault("epochal-dev-reaction-board", {})
    variables = dict(template("reaction-board")["Properties"]["Environment"]["Variables"])
    configured.setdefault("Environment", {"Variables": variables | {"EPOCHAL_QUEUE": "https://sqs/queue"}})
    return made


def variables(name: str, **changed: str) -> dict[str, Any]:
    """The variables of a function as it is configured, some of them others."""
    found = {**template(name)["Properties"]["Environment"]["Variables"], **changed}
    return {f"epochal-dev-{name}": {"Environment": {"Variables": found}}}


@pytest.mark.parametrize("check", checks.ACCOUNT, ids=lambda check: check.name)
def test_an_account_as_it_should_be_passes(check: Trial) -> None:
    assert check.tried(proof(Account()))


@pytest.mark.parametrize("check", checks.ACCOUNT, ids=lambda check: check.name)
def test_of_a_stage_whose_stacks_are_not_known_nothing_is_proven(check: Trial) -> None:
    with pytest.raises(Unproven):
        check.tried(Stage().proof())


@pytest.mark.parametrize(
    ("check", "account", "words"),
    [
        (checks.mappings, Account(mapping={"State": "Disabled"}), "table/streams is Disabled"),
        (
            checks.mappings,
            Account(mapping={"State": "Enabled", "LastProcessingResult": "PROBLEM: Function call failed"}),
            "PROBLEM: Function call failed",
        ),
        (
            checks.settings,
            Account(configured=variables("feed", EPOCHAL_INDEX_TABLE="other")),
            "epochal-dev-feed: EPOCHAL_INDEX_TABLE is other, but the output of the tables' stack is index",
        ),
        (
            checks.settings,
            Account(configured=variables("append", EPOCHAL_MAX_UPLOAD_BYTES="1")),
            "EPOCHAL_MAX_UPLOAD_BYTES is '1', but '' in the template",
        ),
        (
            checks.settings,
            Account(configured={"epochal-dev-replay": {"Timeout": 3}}),
            "Timeout is 3, but 28 in the template",
        ),
        (
            checks.settings,
            Account(
                configured=variables("reaction-board", EPOCHAL_QUEUE="https://sqs/another"),
            ),
            "EPOCHAL_QUEUE is 'https://sqs/another', but 'https://sqs/queue' in the template",
        ),
        (checks.loops, Account(recursion="Terminate"), "reaction-board has RecursiveLoop: Terminate"),
        (
            checks.roles,
            Account(allows={"replay": {("dynamodb:PutItem", "streams")}}),
            f"epochal-dev-replay may dynamodb:PutItem on {TABLE}streams, but never does",
        ),
        (
            checks.roles,
            Account(allows={"indexer": {("dynamodb:DeleteTable", "index")}}),
            f"epochal-dev-indexer may dynamodb:DeleteTable on {TABLE}index",
        ),
        (
            checks.roles,
            Account(allows={"feed": {("s3:DeleteObject", "bodies/*")}}),
            f"epochal-dev-feed may s3:DeleteObject on arn:aws:s3:::{BUCKET}/bodies/proof",
        ),
        (
            checks.roles,
            Account(allows={"indexer": {("iam:PassRole", "*")}}),
            "epochal-dev-indexer may iam:PassRole on *",
        ),
        (
            checks.roles,
            Account(
                denies={"append": {("dynamodb:ConditionCheckItem", "streams"), ("dynamodb:Query", "streams")}}
            ),
            f"epochal-dev-append may not dynamodb:Query on {TABLE}streams, but needs to",
        ),
        (
            checks.alarms,
            Account(states={"epochal-dev-append-fails": "ALARM"}),
            "append-fails is in state ALARM",
        ),
        (checks.alarms, Account(states={"epochal-dev-append-fails": "gone"}), "append-fails does not exist"),
        (
            checks.alarms,
            Account(states={"epochal-dev-auditor-fails": "INSUFFICIENT_DATA"}),
            "auditor-fails is in state INSUFFICIENT_DATA",
        ),
        (
            checks.alarms,
            Account(data=("append", "auditor")),
            "epochal-dev-indexer-fails has no data, though its function ran",
        ),
    ],
)
def test_one_thing_that_is_not_as_it_should_be_fails(
    check: Callable[[ProofRun], str], account: Account, words: str
) -> None:
    with pytest.raises(Broken) as broken:
        check(proof(account))
    assert words in str(broken.value)


def test_what_is_allowed_under_conditions_of_a_request_is_not_taken_for_denied() -> None:
    denied = {"auditor": {("dynamodb:PutItem", "index")}}
    assert checks.roles(proof(Account(denies=denied, unsure=True)))
    with pytest.raises(Broken, match="auditor may not dynamodb:PutItem"):
        checks.roles(proof(Account(denies=denied)))


def test_metrics_are_waited_for() -> None:
    account = Account(after=3)
    assert checks.alarms(proof(account)) == "3 alarms are OK, and the 2 that must have data have it"
    assert account.asked == 4


def test_as_many_alarms_as_there_are_are_asked_for() -> None:
    names = {f"A{number}": f"epochal-dev-x{number}-fails" for number in range(120)}
    made = proof(Account())
    made.stacks = [
        DeployedStack(name="epochal-dev-watch", resources=dict.fromkeys(names, ALARM), physical=names)
    ]
    assert checks.alarms(made).startswith("120 alarms are OK")


def test_an_alarm_that_goes_out_meanwhile_is_no_finding() -> None:
    account = Account(states={"epochal-dev-auditor-fails": "ALARM"})
    made = proof(account)
    sleep = made.sleep

    def goes_out(seconds: float) -> None:
        account.states.clear()
        sleep(seconds)

    made.sleep = goes_out
    assert checks.alarms(made).startswith("3 alarms are OK")


def test_alarms_of_a_stand_in_are_not_proven_whatever_it_makes_of_them() -> None:
    with pytest.raises(Unproven, match="a stand-in"):
        checks.alarms(proof(Account(meta=SimpleNamespace(endpoint_url="http://127.0.0.1:4566"))))


def test_alarms_that_nothing_evaluates_are_not_proven() -> None:
    account = Account(states={f"epochal-dev-{name}-fails": "INSUFFICIENT_DATA" for name in WATCHED})
    made = proof(account)
    made.stacks = tuple(
        DeployedStack(name=each.name, resources={"A": ALARM}, physical={"A": "epochal-dev-auditor-fails"})
        for each in made.stacks
    )
    with pytest.raises(Unproven, match="none of 1 alarms has been evaluated"):
        checks.alarms(made)


@pytest.mark.parametrize(
    ("code", "verdict", "words"),
    [
        ("AccessDenied", "not proven", "these credentials lack a permission"),
        ("InvalidAction", "not proven", "not supported here"),
        ("ValidationError", "failed", "ValidationError"),
    ],
)
def test_what_the_caller_may_not_ask_or_nobody_answers_is_not_proven(
    code: str, verdict: str, words: str
) -> None:
    account = Account(error=code)
    by_name = {each.name: each for each in checks.ACCOUNT}
    for name in ("mappings", "loops", "roles"):
        (result,) = prove(proof(account), [by_name[name]], print)
        assert (result.verdict, words in result.detail) == (verdict, True)


@pytest.mark.parametrize("name", sorted(set(EXPECTED) & set(checks.ON_INDEX)))
def test_what_a_function_may_do_is_what_the_templates_say(name: str) -> None:
    def may(resource: str) -> set[str]:
        return {action.partition(":")[2] for action, on in EXPECTED[name] if on == resource}

    assert may("index") & set(checks.ITEMS) == set(checks.ON_INDEX[name])
    assert may("bodies/*") & set(checks.OBJECTS) == set(checks.ON_OBJECTS[name])


# -------------------------------------------------------------------------------------------------------------- stacks


class Formation:
    """CloudFormation with these stacks, each with one resource."""

    def __init__(self, outputs: Mapping[str, Mapping[str, str]]) -> None:
        self.outputs = outputs

    def get_paginator(self, operation: str) -> Any:
        self.operation = operation
        return self

    def paginate(self, StackName: str = "") -> list[dict[str, Any]]:  # noqa: N803
        if self.operation == "describe_stacks":
            return [
                {
                    "Stacks": [
                        {
                            "StackName": name,
                            "Outputs": [
                                {"OutputKey": key, "OutputValue": value} for key, value in each.items()
                            ],
                        }
                    ]
                }
                for name, each in self.outputs.items()
            ]
        made = {"LogicalResourceId": "One", "PhysicalResourceId": f"{StackName}-one"}
        return [{"StackResourceSummaries": [made, {"LogicalResourceId": "Failed"}]}]

    def get_template(self, StackName: str) -> dict[str, Any]:  # noqa: N803, ARG002
        return {"TemplateBody": '{"Resources": {"One": {"Type": "A"}, "Failed": {"Type": "A"}}}'}


class Functions:
    """Lambda with these functions, each with the name of the index table in its environment, or without any."""

    def __init__(self, functions: Mapping[str, str]) -> None:
        self.functions = functions

    def get_paginator(self, operation: str) -> Any:
        assert operation == "list_functions"
        return self

    def paginate(self) -> list[dict[str, Any]]:
        return [
            {"Functions": [{"FunctionName": name} | ({"Environment": environment} if table else {})]}
            for name, table in self.functions.items()
            for environment in [{"Variables": {"EPOCHAL_INDEX_TABLE": table}}]
        ]


def test_the_stacks_of_a_stage_are_found_by_the_index_that_one_of_them_holds() -> None:
    formation = Formation(
        {
            "epochal-dev-feed": {},
            "epochal-dev-store": {"IndexTable": "epochal-dev-index"},
            "epochal-development-api": {},
            "shop": {"OrdersIndexTable": "orders-index"},
            "shop-reactions": {},
        }
    )
    assert [each.name for each in stacks_of(formation, "epochal-dev-index", ())] == [
        "epochal-dev-store",
        "epochal-dev-feed",
    ]
    assert [each.name for each in stacks_of(formation, "orders-index", ("shop-reactions", "none"))] == [
        "shop",
        "shop-reactions",
    ]
    assert stacks_of(formation, "nobody-s", ()) == []
    (found,) = stacks_of(formation, "orders-index", ())
    assert list(found.of("A")) == [("shop-one", {})]


@pytest.mark.parametrize("reactions", [["shop-reactions"], ["board", "shop-reactions"]])
def test_stacks_with_functions_on_the_index_are_found_whatever_their_names(reactions: list[str]) -> None:
    names = ["another", *reactions, "z-unrelated"]
    formation = Formation({"shop": {"OrdersIndexTable": "orders-index"}, **{name: {} for name in names}})
    functions = Functions(
        {"shop-one": "orders-index", "another-one": "index", "by-hand": "orders-index", "bare": ""}
        | {f"{name}-one": "orders-index" for name in reactions}
    )
    stacks = stacks_of(formation, "orders-index", ("z-unrelated",))
    stacks += stacks_with_functions(formation, functions, "orders-index", stacks)
    assert [stack.name for stack in stacks] == ["shop", "z-unrelated", *reactions]
    assert list(stacks_with_functions(formation, functions, "nobody-s", stacks)) == []


def test_a_stack_that_may_not_be_looked_at_is_said() -> None:
    class Denied:
        def get_paginator(self, _: str) -> Any:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeStacks")

    with pytest.raises(Refused):
        stacks_of(Denied(), "index", ())


def test_functions_that_are_not_epochals_are_left_out() -> None:
    stack = DeployedStack(
        name="shop",
        resources={"A": {"Type": "AWS::Lambda::Function", "Properties": {}}, "B": template("feed")},
        physical={"A": "shop-a", "B": "epochal-dev-feed"},
    )
    assert [each.name for each in functions_of([stack], Account().client)] == ["epochal-dev-feed"]


def test_values_of_templates_are_resolved_as_far_as_their_stack_tells() -> None:
    stack = DeployedStack(name="a", physical={"Table": "epochal-dev-index"}, parameters={"Days": "3"})
    assert resolved({"Ref": "Table"}, stack) == "epochal-dev-index"
    assert resolved({"Fn::Join": ["-", ["x", {"Ref": "Days"}]]}, stack) == "x-3"
    assert resolved({"Fn::Join": ["-", ["x", {"Fn::ImportValue": "other"}]]}, stack) is None
    assert resolved(5, stack) == "5"
