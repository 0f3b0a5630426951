"""Roles as a second evaluator of IAM has them: what functions do is allowed, and everything else is not.

What they do is the matrix of `test_permissions`, which `test_permissions_used` holds to the calls that they make.
`tests/deploy/test_permissions` tries the same matrix on the embedded AWS, which evaluates by code of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

import pytest

from epochal.layout.tables import READ_MODELS, store_tables
from epochal.plan import ops
from epochal.plan.values import Item
from tests.support.account import PLACE
from tests.support.permissions import actions
from tests.surfaces.stacks.iam_evaluator import ALLOWED, DENIED, IamRequest, decisions
from tests.surfaces.stacks.templates import Synthesise
from tests.surfaces.stacks.test_permissions import ALLOWING, EXPECTED, ROLE, ROLES
from tests.surfaces.stacks.test_permissions_used import PLANS, furnished

REGION, ACCOUNT = PLACE["AWS::Region"], PLACE["AWS::AccountId"]
BUCKET: Final = f"arn:aws:s3:::epochal-prod-bodies-{ACCOUNT}-{REGION}"
TABLE: Final = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/epochal-prod-"

SPECS: Final = {spec.kind: spec for spec in (*store_tables(), READ_MODELS)}

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
    resource = resources.get(id_, {"Type": ""})
    if resource["Type"] in SERVICES:
        service, begin, property_ = SERVICES[resource["Type"]]
        name = filled(resource["Properties"].get(property_, id_), resources)
        return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{begin}{name}"
    return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/other-{id_}"


def requests_of(function: str) -> Iterator[tuple[IamRequest, bool]]:
    """What a function might ask, and whether it does."""
    expected = EXPECTED[function]
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
    for action, resource in (
        ("sqs:SendMessage", f"arn:aws:sqs:{REGION}:{ACCOUNT}:epochal-prod-reaction-board.fifo"),
        ("sqs:ReceiveMessage", f"arn:aws:sqs:{REGION}:{ACCOUNT}:epochal-prod-reaction-board.fifo"),
        ("sqs:SendMessage", f"arn:aws:sqs:{REGION}:{ACCOUNT}:another.fifo"),
        ("sns:Publish", f"arn:aws:sns:{REGION}:{ACCOUNT}:epochal-prod-notices.fifo"),
        ("sns:Publish", f"arn:aws:sns:{REGION}:{ACCOUNT}:another.fifo"),
        ("lambda:UpdateFunctionCode", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:epochal-prod-append"),
        ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/another"),
    ):
        there = {"own queue": ":epochal-prod-reaction-board.fifo", "notices": ":epochal-prod-notices.fifo"}
        does = any(each == action and resource.endswith(there.get(on, "?")) for each, on in expected)
        yield IamRequest(role=function, action=action, resource=resource), does


def policies(synthesise: Synthesise) -> dict[str, list[dict[str, Any]]]:
    """Inline policies of functions' roles."""
    deployed, found = synthesise("prod", **ALLOWING), dict[str, list[dict[str, Any]]]()
    for function in EXPECTED:
        stack, _, begin = ROLES.get(function, ("api", ROLE, f"{function.capitalize()}Role"))
        role = deployed.named(stack, ROLE, begin)
        resources = deployed.template(stack)["Resources"]
        found[function] = [
            {"name": policy["PolicyName"], "policy": filled(policy["PolicyDocument"], resources)}
            for policy in role["Properties"]["Policies"]
        ]
    return found


def calls_of(function: str) -> Iterator[IamRequest]:
    """What a function asks of tables, with the keys that it asks for."""
    tables = furnished()
    PLANS[function](tables)
    for op in tables.asked:
        yield from called(function, op)


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
    for action, on in actions(op):
        index, _, table = on.rpartition(" of ")
        arn = f"{TABLE}{table}{f'/index/{index}' if index else ''}"
        context = {"dynamodb:LeadingKeys": keys} if keys else {}
        yield IamRequest(role=function, action=action, resource=arn, context=context)


def partition(table: str, item: Item) -> str:
    """The partition key of an item."""
    return str(*item[SPECS[table].partition.name].values())


@pytest.mark.slow
def test_a_second_evaluator_allows_what_functions_do_and_nothing_else(synthesise: Synthesise) -> None:
    requests = [each for function in EXPECTED for each in requests_of(function)]
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
    requests = [each for function in PLANS for each in calls_of(function)]
    known = {json.dumps(asdict(each), sort_keys=True): each for each in requests}
    decided = decisions(policies(synthesise), [*known.values()])
    assert len(known) > 150
    assert {
        (each.role, each.action, each.resource, str(each.context), decision)
        for each, decision in zip(known.values(), decided, strict=True)
        if decision != ALLOWED
    } == set()
