"""Each function's role as it is deployed, tried on every table with every action: what it may do it can, all else not.

What it may do is the matrix that the templates are held to (`tests/surfaces/stacks/test_permissions`). Here it is AWS's
own evaluation, as the embedded AWS emulates it, on real requests under the role's credentials. Nothing is changed: what
writes carries a condition that cannot hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.endpoint import ACCOUNT
from epochal.layout.tables import READ_MODELS, TIMERS, store_tables
from epochal.plan.tables import TableSpec
from tests.surfaces.stacks.test_permissions import EXPECTED, Allowed

PREFIX: Final = "epochal-dev-"
KEPT: Final = (*store_tables(), READ_MODELS, TIMERS)
REACTING: Final = ("reaction", "waker")
"""What is there for who declares reactions: `tests/deploy/test_reactions` declares some, and tries their roles."""

FUNCTIONS: Final = tuple(name for name in EXPECTED if name not in REACTING)
REFUSED: Final = {"AccessDenied", "AccessDeniedException", "AuthorizationError", "403"}

Act = Callable[[Any, TableSpec, str], object]
"""Sends one request by a DynamoDB client to the table of a specification, which has that name."""

SESSION: Final[Any] = boto3.Session()
"""Of all roles, whose clients have credentials of their own: it takes ten times as long to make as a client."""


def key_of(spec: TableSpec) -> dict[str, Any]:
    """A key under which nothing is stored."""
    values = {"S": {"S": "$doors"}, "N": {"N": "0"}, "B": {"B": b"$doors"}}
    attributes = [each for each in (spec.partition, spec.sort) if each is not None]
    return {each.name: values[each.type] for each in attributes}


def never(spec: TableSpec) -> dict[str, Any]:
    return {
        "ConditionExpression": "attribute_exists(#key)",
        "ExpressionAttributeNames": {"#key": spec.partition.name},
    }


def query(client: Any, spec: TableSpec, table: str, **more: Any) -> object:
    index = more.get("IndexName")
    name = next((each.partition.name for each in spec.indexes if each.name == index), spec.partition.name)
    return client.query(
        TableName=table,
        KeyConditionExpression="#key = :key",
        ExpressionAttributeNames={"#key": name},
        ExpressionAttributeValues={":key": {"S": "$doors"}},
        **more,
    )


def checked(client: Any, spec: TableSpec, table: str) -> object:
    check = {"TableName": table, "Key": key_of(spec), **never(spec)}
    return client.transact_write_items(TransactItems=[{"ConditionCheck": check}])


ON_TABLES: Final[Mapping[str, Act]] = {
    "GetItem": lambda client, spec, table: client.get_item(TableName=table, Key=key_of(spec)),
    "BatchGetItem": lambda client, spec, table: client.batch_get_item(
        RequestItems={table: {"Keys": [key_of(spec)]}}
    ),
    "Query": query,
    "Scan": lambda client, _, table: client.scan(TableName=table, Limit=1),
    "PutItem": lambda client, spec, table: client.put_item(TableName=table, Item=key_of(spec), **never(spec)),
    "UpdateItem": lambda client, spec, table: client.update_item(
        TableName=table, Key=key_of(spec), UpdateExpression="REMOVE door", **never(spec)
    ),
    "DeleteItem": lambda client, spec, table: client.delete_item(
        TableName=table, Key=key_of(spec), **never(spec)
    ),
    "ConditionCheckItem": checked,
    "DescribeTable": lambda client, _, table: client.describe_table(TableName=table),
    "UpdateTable": lambda client, _, table: client.update_table(
        TableName=table, DeletionProtectionEnabled=False
    ),
    "DeleteTable": lambda client, _, table: client.delete_table(TableName=table),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A function's role, put on."""

    deployment: LocalDeployment
    credentials: Mapping[str, str]

    def client(self, service: str) -> Any:
        return SESSION.client(
            service,
            aws_access_key_id=self.credentials["AccessKeyId"],
            aws_secret_access_key=self.credentials["SecretAccessKey"],
            aws_session_token=self.credentials["SessionToken"],
            region_name=self.deployment.endpoint.region,
            endpoint_url=self.deployment.endpoint.url,
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )


@pytest.fixture(scope="module")
def role(deployment: LocalDeployment) -> Callable[[str], Role]:
    """Puts on the role of a function."""
    return partial(role_of, deployment)


def role_of(deployment: LocalDeployment, name: str) -> Role:
    """The role of a function: who deploys may say who may put it on; what it allows stays as it is."""
    endpoint = deployment.endpoint
    function = endpoint.client("lambda").get_function_configuration(FunctionName=f"{PREFIX}{name}")
    arn = function["Role"]
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "lambda.amazonaws.com", "AWS": f"arn:aws:iam::{ACCOUNT}:root"},
        "Action": "sts:AssumeRole",
    }
    endpoint.client("iam").update_assume_role_policy(
        RoleName=arn.rpartition("/")[2],
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
    )
    taken = endpoint.client("sts").assume_role(RoleArn=arn, RoleSessionName="doors")
    return Role(deployment=deployment, credentials=taken["Credentials"])


def test_every_function_that_is_deployed_is_in_the_matrix(deployment: LocalDeployment) -> None:
    listed = deployment.endpoint.client("lambda").list_functions()["Functions"]
    names = {each["FunctionName"].removeprefix(PREFIX) for each in listed}
    # Other tests may have deployed reactions here, what wakes them, and timers. CloudFormation names the guard, whose
    # permissions `tests/surfaces/stacks/test_fixed_settings.py` has.
    others = (*REACTING, TIMERS.kind, "store-GuardFunction")
    assert {name for name in names if not name.startswith(others)} == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_on_tables_a_function_can_do_what_the_matrix_says_and_nothing_else(
    role: Callable[[str], Role], name: str
) -> None:
    assert allowed_on_tables(role(name)) == expected_on_tables(name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_secondary_indexes_are_for_those_who_list_tags(role: Callable[[str], Role], name: str) -> None:
    client = role(name).client("dynamodb")
    for spec in store_tables():
        for index in spec.indexes:
            can = allowed(query, client, spec, f"{PREFIX}{spec.kind}", IndexName=index.name)
            assert can == (("dynamodb:Query", f"{index.name} of {spec.kind}") in EXPECTED[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_buckets_a_function_reaches_its_prefixes_and_no_other(
    role: Callable[[str], Role], deployment: LocalDeployment, name: str
) -> None:
    client, kept = role(name).client("s3"), deployment.settings.bucket
    failures = kept.replace("-bodies-", "-failures-")
    probes: dict[tuple[str, str], Callable[[], object]] = {}
    for bucket, prefix, what in (
        (kept, "bodies/", "bodies/*"),
        (kept, "uploads/", "uploads/*"),
        (kept, "projections/", "projections/*"),
        (kept, "", "bodies, elsewhere"),
        (failures, "aws/lambda/", "failures/aws/lambda/*"),
        (failures, "", "failures, elsewhere"),
    ):
        place = {"Bucket": bucket, "Key": f"{prefix}doors"}
        probes["s3:GetObject", what] = lambda place=place: client.get_object(**place)
        probes["s3:PutObject", what] = lambda place=place: client.put_object(**place, Body=b"")
        probes["s3:DeleteObject", what] = lambda place=place: client.delete_object(**place)
    for bucket, what in ((kept, "bodies"), (failures, "failures")):
        probes["s3:ListBucket", what] = lambda bucket=bucket: client.list_objects_v2(Bucket=bucket)
        probes["s3:DeleteBucket", what] = lambda bucket=bucket: client.delete_bucket(Bucket=bucket)
        probes["s3:GetBucketPolicy", what] = lambda bucket=bucket: client.get_bucket_policy(Bucket=bucket)
    can = {probe for probe, act in probes.items() if allowed(act)}
    # What a function may list of the bucket is below prefixes, which the templates are held to: whole it may not.
    expected = {(action, on) for action, on in EXPECTED[name] if action.startswith("s3:")}
    assert can == expected - {("s3:ListBucket", "bodies")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_beside_the_store_nobody_reaches(role: Callable[[str], Role], name: str) -> None:
    """The topic is left out: without TLS to insist on, it has AWS's default policy here (`test_closed`)."""
    wearing = role(name)
    probes: dict[str, Callable[[], object]] = {
        "lambda:InvokeFunction": lambda: wearing.client("lambda").invoke(FunctionName=f"{PREFIX}append"),
        "lambda:UpdateFunctionConfiguration": lambda: wearing.client("lambda").update_function_configuration(
            FunctionName=f"{PREFIX}{name}", Timeout=30
        ),
        "iam:ListRoles": lambda: wearing.client("iam").list_roles(),
        "dynamodb:ListTables": lambda: wearing.client("dynamodb").list_tables(),
        "s3:ListAllMyBuckets": lambda: wearing.client("s3").list_buckets(),
        "ssm:DescribeParameters": lambda: wearing.client("ssm").describe_parameters(),
        "cloudformation:DescribeStacks": lambda: wearing.client("cloudformation").describe_stacks(),
    }
    assert not {action for action, act in probes.items() if allowed(act)}


def allowed_on_tables(wearing: Role) -> Allowed:
    """What a role can do on which table; that of read models need not be there to be refused."""
    client = wearing.client("dynamodb")
    return {
        (f"dynamodb:{action}", spec.kind)
        for spec in KEPT
        for action, act in ON_TABLES.items()
        if allowed(act, client, spec, f"{PREFIX}{spec.kind}")
    }


def expected_on_tables(name: str) -> Allowed:
    """What the matrix says of a function and tables."""
    kinds = {spec.kind for spec in KEPT}
    return {(action, on) for action, on in EXPECTED[name] if on in kinds}


def allowed(act: Callable[..., object], *args: Any, **more: Any) -> bool:
    """Whether a request was let through, whatever became of it then."""
    try:
        act(*args, **more)
    except ClientError as error:
        return not _refused(error)
    return True


def _refused(error: ClientError) -> bool:
    response: Any = error.response
    reasons = {each.get("Code") for each in response.get("CancellationReasons", ())}
    return bool({response["Error"]["Code"], *reasons} & REFUSED)
