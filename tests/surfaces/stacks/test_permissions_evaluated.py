"""Roles as a second evaluator of IAM has them: what functions do is allowed, and everything else is not.

What they do is the matrix of `test_permissions`, which `test_permissions_used` holds to the calls that they make.
`tests/deploy/test_permissions` tries the same matrix on the embedded AWS, which evaluates by code of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

import pytest

from epochal.declaration import Setting
from epochal.deployment import Deployment
from epochal.hosting.fixed_settings import check_settings, fixed
from epochal.layout.tables import READ_MODELS, TIMERS, every_table, store_tables
from epochal.plan import ops
from epochal.plan.values import Item
from epochal.plugins import layouts
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_settings
from tests.contrib.timers.world import World
from tests.support.account import PLACE
from tests.support.permissions import Allowed, actions, on
from tests.surfaces.stacks.iam_evaluator import ALLOWED, DENIED, IamRequest, decisions
from tests.surfaces.stacks.templates import Synthesise
from tests.surfaces.stacks.test_permissions import ALLOWING, EXPECTED, ROLE, ROLES
from tests.surfaces.stacks.test_permissions_used import PLANS, furnished
from tests.surfaces.stacks.test_timers import FIRING
from tests.surfaces.stacks.test_timers_used import (
    armed,
    fired_in_streams,
    fired_under_tags,
    fired_under_tags_of_sekiban,
)

REGION, ACCOUNT = PLACE["AWS::Region"], PLACE["AWS::AccountId"]
BUCKET: Final = f"arn:aws:s3:::epochal-prod-bodies-{ACCOUNT}-{REGION}"
TABLE: Final = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/epochal-prod-"

SPECS: Final = {spec.kind: spec for spec in (*store_tables(), READ_MODELS, TIMERS)}

ITEMS: Final = (
    *("GetItem", "BatchGetItem", "Query", "Scan", "PutItem", "UpdateItem", "DeleteItem"),
    *("ConditionCheckItem", "DeleteTable", "UpdateTable"),
)
WITHOUT_KEYS: Final = ("Scan", "DeleteTable", "UpdateTable")
"""Actions without a key, which no condition on keys can narrow."""

OBJECTS: Final = ("GetObject", "PutObject", "DeleteObject")
PREFIXES: Final = ("bodies/", "uploads/", "projections/", "others/")

OWN_KEYS: Final = {"index": "$ReaderCheckpoint-board_0", READ_MODELS.kind: "counts"}
"""Keys that a function with narrowed access works on, by table."""

OTHER_KEYS: Final = {"index": "$AppendsEpoch-0_1", READ_MODELS.kind: "balances"}
"""Keys that it does not."""

NARROWED: Final = {
    ("feed", "index"): ("BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"),
    ("reaction", READ_MODELS.kind): ("GetItem", "BatchGetItem", "Query", "PutItem", "DeleteItem"),
}
"""Actions that a function may do on some keys of a table alone."""

STACK: Final = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/epochal-prod-store/1"
QUEUES: Final = f"arn:aws:sqs:{REGION}:{ACCOUNT}:epochal-prod-"
SCHEDULES: Final = f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/"
SCHEDULING: Final = f"arn:aws:iam::{ACCOUNT}:role/TimersRole"

OTHERS: Final[Mapping[str, Allowed]] = {
    "timers": {
        *FIRING,
        *on("bodies/*", "GetObject", "PutObject", service="s3"),
        *on("wake-ups", "ReceiveMessage", "SendMessage", service="sqs"),
    },
    "arming": {
        *(pair for pair in EXPECTED["reaction"] if pair[1] not in ("board", READ_MODELS.kind)),
        *on(TIMERS.kind, "PutItem"),
        *on("wake-ups", "SendMessage", service="sqs"),
        *on("schedules of the group", "CreateSchedule", service="scheduler"),
        *on("role of schedules", "PassRole", service="iam"),
    },
    "schedules": on("wake-ups", "SendMessage", service="sqs"),
    "guard": {
        *on("index", "GetItem"),
        *(pair for layout in layouts() for pair in on(layout.port.heads.kind, "Scan")),
        *on("own stack", "DescribeStacks", service="cloudformation"),
    },
}
"""What functions do that `test_permissions` does not have: `test_timers` and `test_fixed_settings` do."""

EVERY: Final[Mapping[str, Allowed]] = {**EXPECTED, **OTHERS}

OTHER_ROLES: Final = {
    "timers": ("feed", "TimersFunctionRole"),
    "arming": ("feed", "TimersArmingFunctionRole"),
    "schedules": ("feed", "TimersRole"),
    "guard": ("store", "GuardFunctionRole"),
}
"""Stacks and names of their roles."""

QUEUE_NAMES: Final = ("reaction-board.fifo", "reaction-timers.fifo", "timers", "another.fifo")

SERVICES: Final = {
    "AWS::DynamoDB::GlobalTable": ("dynamodb", "table/", "TableName"),
    "AWS::Logs::LogGroup": ("logs", "log-group:", "LogGroupName"),
    "AWS::SNS::Topic": ("sns", "", "TopicName"),
    "AWS::SQS::Queue": ("sqs", "", "QueueName"),
}
"""Beginning of an ARN, and the property that names the resource, by type."""


def filled(value: Any, resources: Mapping[str, Any]) -> Any:
    """A value of a template without references, as CloudFormation replaces them."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), _]}:
            return PLACE.get(name) or arn_of(name, resources)
        case {"Fn::Join": [between, parts]}:
            return str(between).join(str(filled(each, resources)) for each in parts)
        case {"Fn::Sub": str(text)}:
            for name, each in PLACE.items():
                text = text.replace(f"${{{name}}}", each)
            return text
        case dict():
            return {key: filled(each, resources) for key, each in value.items()}
        case list():
            return [filled(each, resources) for each in value]
    return value


def arn_of(id_: str, resources: Mapping[str, Any]) -> str:
    """The ARN of a resource; of a bucket, and of what another stack makes, one that nothing asks for."""
    if id_ == "AWS::StackId":
        return STACK
    resource = resources.get(id_, {"Type": ""})
    if resource["Type"] == ROLE:
        return f"arn:aws:iam::{ACCOUNT}:role/{id_[: -len('01234567')]}"
    if resource["Type"] in SERVICES:
        service, begin, property_ = SERVICES[resource["Type"]]
        name = filled(resource["Properties"].get(property_, id_), resources)
        return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{begin}{name}"
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/other-{id_}"


def requests_of(function: str) -> Iterator[tuple[IamRequest, bool]]:
    """What a function might ask, and whether it does."""
    expected = EVERY[function]
    for spec in SPECS.values():
        for action in ITEMS:
            narrowed = action in NARROWED.get((function, spec.kind), ())
            does = (f"dynamodb:{action}", spec.kind) in expected
            arn = f"{TABLE}{spec.kind}"
            if action in WITHOUT_KEYS:
                yield IamRequest(role=function, action=f"dynamodb:{action}", resource=arn), does
                continue
            for keys, allowed in ((OWN_KEYS, does), (OTHER_KEYS, does and not narrowed)):
                context = {"dynamodb:LeadingKeys": [keys.get(spec.kind, "any")]}
                request = IamRequest(
                    role=function, action=f"dynamodb:{action}", resource=arn, context=context
                )
                yield request, allowed
        for index in spec.indexes:
            does = ("dynamodb:Query", f"{index.name} of {spec.kind}") in expected
            arn = f"{TABLE}{spec.kind}/index/{index.name}"
            yield IamRequest(role=function, action="dynamodb:Query", resource=arn), does
    for prefix in PREFIXES:
        for action in OBJECTS:
            does = (f"s3:{action}", f"{prefix}*") in expected
            arn = f"{BUCKET}/{prefix}1"
            yield IamRequest(role=function, action=f"s3:{action}", resource=arn), does
    own_queue = "reaction-timers" if function == "arming" else "reaction-board"
    named = {
        f"{QUEUES}{own_queue}.fifo": "own queue",
        f"{QUEUES}timers": "wake-ups",
        f"arn:aws:sns:{REGION}:{ACCOUNT}:epochal-prod-notices.fifo": "notices",
        f"{SCHEDULES}epochal-prod-timers/1": "schedules of the group",
        SCHEDULING: "role of schedules",
        STACK: "own stack",
    }
    for action, resource, context in (
        *(("sqs:SendMessage", f"{QUEUES}{name}", {}) for name in QUEUE_NAMES),
        *(("sqs:ReceiveMessage", f"{QUEUES}{name}", {}) for name in QUEUE_NAMES),
        ("sns:Publish", f"arn:aws:sns:{REGION}:{ACCOUNT}:epochal-prod-notices.fifo", {}),
        ("sns:Publish", f"arn:aws:sns:{REGION}:{ACCOUNT}:another.fifo", {}),
        ("scheduler:CreateSchedule", f"{SCHEDULES}epochal-prod-timers/1", {}),
        ("scheduler:CreateSchedule", f"{SCHEDULES}default/1", {}),
        ("scheduler:DeleteSchedule", f"{SCHEDULES}epochal-prod-timers/1", {}),
        ("lambda:UpdateFunctionCode", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:epochal-prod-append", {}),
        ("iam:PassRole", SCHEDULING, {"iam:PassedToService": "scheduler.amazonaws.com"}),
        ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/another", {}),
        ("cloudformation:DescribeStacks", STACK, {}),
        ("cloudformation:DescribeStacks", STACK.replace("-prod-", "-dev-"), {}),
        ("cloudformation:DeleteStack", STACK, {}),
    ):
        request = IamRequest(role=function, action=action, resource=resource, context=context)
        yield request, (action, named.get(resource, "?")) in expected
    elsewhere = {"iam:PassedToService": "lambda.amazonaws.com"}
    yield IamRequest(role=function, action="iam:PassRole", resource=SCHEDULING, context=elsewhere), False


def policies(synthesise: Synthesise) -> dict[str, list[dict[str, Any]]]:
    """Inline policies of functions' roles."""
    deployed, found = synthesise("prod", timers=True, **ALLOWING), dict[str, list[dict[str, Any]]]()
    for function in EVERY:
        stack, _, begin = ROLES.get(function, ("api", ROLE, f"{function.capitalize()}Role"))
        if function in OTHER_ROLES:
            stack, begin = OTHER_ROLES[function]
        role = deployed.named(stack, ROLE, begin)
        resources = deployed.template(stack)["Resources"]
        found[function] = [
            {"name": policy["PolicyName"], "policy": filled(policy["PolicyDocument"], resources)}
            for policy in role["Properties"]["Policies"]
        ]
    return found


def calls_of(function: str) -> Iterator[IamRequest]:
    """What a function asks of tables, with the keys that it asks for."""
    for op in OTHER_CALLS[function]() if function in OTHER_CALLS else planned(function):
        yield from called(function, op)


def planned(function: str) -> list[ops.Op]:
    """What a function of `test_permissions_used` asks of tables."""
    tables = furnished()
    PLANS[function](tables)
    return tables.asked


def fired() -> list[ops.Op]:
    """What the function asks that fires timers, in streams of both layouts and under tags of both."""
    world = World()
    return [
        *fired_in_streams(World(), "pages"),
        *fired_in_streams(World(), "tips"),
        *fired_under_tags(world, world.tagged),
        *fired_under_tags_of_sekiban(),
    ]


def guarded() -> list[ops.Op]:
    """What the guard asks where each layout has a setting that its events depend on, and it changes."""
    tables, asked = MemoryTables({spec.kind: spec for spec in every_table()}), list[ops.Op]()

    def execute(op: ops.Op) -> ops.Reply:
        asked.append(op)
        return tables.execute(op)

    deployment = Deployment(
        settings=memory_settings(), driver=Driver(execute=execute, meter=Meter()), bucket=MemoryBucket()
    )
    old, new = ({"Store": "s", "Index": "index", "Layouts": layouts_with(change)} for change in (0, 1))
    check_settings(new, old, deployment, 60.0)
    return asked


def layouts_with(change: int) -> dict[str, Any]:
    """Properties of layouts, of which each fixed setting has one of two values that cannot follow each other."""
    return {
        layout.name: {
            "Settings": {setting.name: broken_pair(setting)[change] for setting in fixed(layout)},
        }
        for layout in layouts()
    }


def broken_pair(setting: Setting) -> tuple[str, str]:
    """Two values of a setting, the second of which is refused after the first."""
    assert setting.broken is not None
    pairs = (("2", "1"), ("a-b", ""), ("true", ""), ("", "true"), ("A", ""), ("s", "t"))
    return next(pair for pair in pairs if setting.broken(*pair))


OTHER_CALLS: Final[Mapping[str, Callable[[], list[ops.Op]]]] = {
    "timers": fired,
    "arming": armed,
    "guard": guarded,
}
"""What the functions of `OTHERS` ask of tables, as their tests record it."""


def called(function: str, op: ops.Op) -> Iterator[IamRequest]:
    """The requests as which IAM judges an operation."""
    match op:
        case ops.Transact(writes=writes):
            for write in writes:
                yield from called(function, write)
            return
        case ops.TransactGet(keys=pairs):
            for table, key in pairs:
                yield from called(function, ops.Get(table=table, key=key))
            return
        case ops.BatchGet(keys=found):
            keys = [partition(op.table, key) for key in found]
        case ops.Query(partition=(_, value)):
            keys = [str(*value.values())]
        case ops.Put(item=item):
            keys = [partition(op.table, item)]
        case ops.Get(key=key) | ops.Update(key=key) | ops.Delete(key=key) | ops.Check(key=key):
            keys = [partition(op.table, key)]
        case _:
            keys = []
    for action, resource in actions(op):
        index, _, table = resource.rpartition(" of ")
        arn = f"{TABLE}{table}{f'/index/{index}' if index else ''}"
        context = {"dynamodb:LeadingKeys": keys} if keys else {}
        yield IamRequest(role=function, action=action, resource=arn, context=context)


def partition(table: str, item: Item) -> str:
    """The partition key of an item."""
    return str(*item[SPECS[table].partition.name].values())


@pytest.mark.slow
def test_a_second_evaluator_allows_what_functions_do_and_nothing_else(synthesise: Synthesise) -> None:
    requests = [each for function in EVERY for each in requests_of(function)]
    decided = decisions(policies(synthesise), [request for request, _ in requests])
    assert len(requests) > 1_000
    assert {
        (request, decision)
        for (request, does), decision in zip(requests, decided, strict=True)
        if decision != (ALLOWED if does else DENIED)
    } == set()


@pytest.mark.slow
def test_a_function_that_may_do_too_much_or_too_little_is_noticed(synthesise: Synthesise) -> None:
    documents = policies(synthesise)
    statements = documents["feed"][0]["policy"]["Statement"]
    narrowed = [each for each in statements if "Condition" in each and "dynamodb" in str(each["Action"])]
    for each in narrowed:
        del each["Condition"]
    asked = [request for request, _ in requests_of("feed")]
    does = [allowed for _, allowed in requests_of("feed")]
    wrong = [
        request
        for request, allowed, decision in zip(asked, does, decisions(documents, asked), strict=True)
        if (decision == ALLOWED) is not allowed
    ]
    assert {each.action.partition(":")[2] for each in wrong} == {*NARROWED["feed", "index"]}


@pytest.mark.slow
def test_a_second_evaluator_allows_each_call_that_functions_make(synthesise: Synthesise) -> None:
    requests = [each for function in (*PLANS, *OTHER_CALLS) for each in calls_of(function)]
    known = {json.dumps(asdict(each), sort_keys=True): each for each in requests}
    decided = decisions(policies(synthesise), [*known.values()])
    assert len(known) > 150
    assert {
        (each.role, each.action, each.resource, str(each.context), decision)
        for each, decision in zip(known.values(), decided, strict=True)
        if decision != ALLOWED
    } == set()


@pytest.mark.parametrize("function", ["timers", "guard"])
def test_nothing_is_granted_on_tables_that_no_recorded_call_needs(function: str) -> None:
    called_actions = {
        (request.action, request.resource.removeprefix(TABLE)) for request in calls_of(function)
    }
    granted = {pair for pair in OTHERS[function] if pair[0].startswith("dynamodb:")}
    # A transaction gets what a plain read of Sekiban's tables does not find, as of events that expire.
    seldom = on("events", "GetItem") | on("tags", "GetItem") if function == "timers" else set()
    assert called_actions == granted - seldom


def test_what_arms_timers_needs_what_it_has_beyond_other_reactions() -> None:
    added = {
        pair
        for pair in OTHERS["arming"]
        if pair not in EXPECTED["reaction"] and pair[0].startswith("dynamodb:")
    }
    assert {(request.action, request.resource.removeprefix(TABLE)) for request in calls_of("arming")} == added
