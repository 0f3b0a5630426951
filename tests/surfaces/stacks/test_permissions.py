"""What each function's role allows: exactly this, on exactly that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from epochal.contrib.sekiban.items import PROJECTION_STATES, Keys
from epochal.contrib.sekiban.projections import ProjectionStates
from epochal.index.groups import STATES
from epochal.layout.tables import every_table
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryObjects
from tests.support.permissions import Allowed, on

if TYPE_CHECKING:  # what is expected is read without CDK, too
    from tests.surfaces.stacks.templates import Deployment, Synthesise

ROLE = "AWS::IAM::Role"
KINDS = [spec.kind for spec in every_table()]

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234"

ROLES = {
    "indexer": ("feed", ROLE, "IndexerRole"),
    "auditor": ("feed", ROLE, "AuditAuditorRole"),
    "reaction": ("reactions", ROLE, "boardFunctionRole"),
    "waker": ("reactions", ROLE, "EpochalWaker"),
}
"""Where roles are that are not in the stack of the API."""

REACTIONS = {
    "board": {
        "entry": "board",
        "permissions": [
            {
                "actions": ["dynamodb:PutItem"],
                "resources": ["arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/board"],
            }
        ],
        "read_models": ["counts"],
    }
}
ALLOWING: dict[str, Any] = {"reactions": REACTIONS, "read_models": True}

OWN_LOG = {("logs:CreateLogStream", "own log"), ("logs:PutLogEvents", "own log")}


FAILURES = {
    *on("failures/aws/lambda/*", "PutObject", service="s3"),
    *on("failures", "ListBucket", service="s3"),
}
BUCKET = on("bodies", "ListBucket", service="s3")

EXPECTED: dict[str, Allowed] = {
    "append": {
        *OWN_LOG,
        *on("streams", "GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "ConditionCheckItem"),
        *on("tips", "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
        *on("journal", "GetItem", "BatchGetItem", "PutItem"),
        *on("snapshot", "GetItem", "PutItem", "UpdateItem"),
        *on("events", "GetItem", "BatchGetItem", "PutItem"),
        *on("tags", "GetItem", "BatchGetItem", "Query", "PutItem", "ConditionCheckItem"),
        *on("projection-states", "PutItem", "DeleteItem"),
        *BUCKET,
        *on("bodies/*", "GetObject", "PutObject", service="s3"),
        *on("uploads/*", "GetObject", "PutObject", service="s3"),
        *on("projections/*", "PutObject", service="s3"),
    },
    "replay": {
        *OWN_LOG,
        *on("streams", "GetItem", "BatchGetItem", "Query", "Scan"),
        *on("tips", "GetItem", "Query"),
        *on("journal", "GetItem", "BatchGetItem", "Query"),
        *on("snapshot", "GetItem"),
        *on("events", "GetItem", "BatchGetItem"),
        *on("tags", "BatchGetItem", "Query", "Scan"),
        *on("GSI1 of tags", "Query"),
        *on("GSI1 of events", "Query"),
        *on("projection-states", "GetItem", "Query"),
        *BUCKET,
        *on("bodies/*", "GetObject", service="s3"),
        *on("projections/*", "GetObject", service="s3"),
    },
    "feed": {
        *OWN_LOG,
        *on("index", "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"),
        *on("tips", "GetItem", "Query"),
        *on("journal", "GetItem", "BatchGetItem"),
        *on("events", "BatchGetItem"),
        *on("tags", "Query"),
        *on("streams", "GetItem", "BatchGetItem", "Query"),
        *BUCKET,
        *on("bodies/*", "GetObject", service="s3"),
    },
    "indexer": {
        *OWN_LOG,
        *on("index", "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem"),
        *on("tips", "GetItem", "Query"),
        *on("journal", "BatchGetItem"),
        *on("tags", "Query"),
        *on("streams", "Query"),
        *on("stream of tips", "DescribeStream", "GetRecords", "GetShardIterator"),
        *on("stream of snapshot", "DescribeStream", "GetRecords", "GetShardIterator"),
        *on("stream of tags", "DescribeStream", "GetRecords", "GetShardIterator"),
        *on("stream of streams", "DescribeStream", "GetRecords", "GetShardIterator"),
        *on("*", "ListStreams"),
        *on("notices", "Publish", service="sns"),
        *FAILURES,
    },
    "auditor": {
        *OWN_LOG,
        *on("index", "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem"),
        *on("tips", "GetItem", "Query", "Scan"),
        *on("journal", "BatchGetItem"),
        *on("snapshot", "GetItem", "Scan"),
        *on("tags", "GetItem", "Query", "Scan"),
        *on("streams", "GetItem", "Query", "Scan"),
        *on("own mappings", "GetEventSourceMapping", service="lambda"),
        *on("notices", "Publish", service="sns"),
    },
    "reaction": {
        *OWN_LOG,
        *on("index", "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"),
        *on("tips", "GetItem", "Query"),
        *on("journal", "GetItem", "BatchGetItem"),
        *on("snapshot", "GetItem"),
        *on("events", "BatchGetItem"),
        *on("tags", "BatchGetItem", "Query"),
        *on("streams", "GetItem", "BatchGetItem", "Query"),
        *BUCKET,
        *on("bodies/*", "GetObject", service="s3"),
        *on(
            "own queue",
            *("ReceiveMessage", "DeleteMessage", "GetQueueAttributes"),
            *("ChangeMessageVisibility", "SendMessage"),
            service="sqs",
        ),
        *on("board", "PutItem"),
        *on("read-models", "GetItem", "BatchGetItem", "Query", "PutItem", "DeleteItem"),
    },
    "waker": {
        *OWN_LOG,
        *on("index", "GetItem", "Query"),
        *on("own queue", "SendMessage", service="sqs"),
    },
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_function_may_do_exactly_this(synthesise: Synthesise, name: str) -> None:
    assert allowed(synthesise("prod", **ALLOWING), name) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_key_of_ones_own_adds_the_use_of_that_key_and_nothing_else(
    synthesise: Synthesise, name: str
) -> None:
    added = allowed(synthesise("prod", kms_key=KEY, **ALLOWING), name) - EXPECTED[name]
    reading = {("kms:Decrypt", KEY), ("kms:DescribeKey", KEY)}
    if name in ("replay", "waker"):
        assert added == reading
    else:
        assert reading < added
        assert {resource for _, resource in added} == {KEY}
        assert ("kms:GenerateDataKey", KEY) in added


@pytest.mark.parametrize(("name", "action"), [("append", "PutObject"), ("replay", "GetObject")])
def test_of_states_in_the_bucket_a_function_reaches_those_of_its_tenant_where_the_library_puts_them(
    synthesise: Synthesise, name: str, action: str
) -> None:
    objects = MemoryObjects()
    driver = Driver(execute=MemoryTables({"states": PROJECTION_STATES}).execute, meter=Meter())
    store = ProjectionStates(
        driver=driver, table="states", objects=objects, keys=Keys(service="shop"), inline_bytes=0
    )
    store.save("totals", "1", [b"{}"], events_processed=1, last_sortable_id="0" * 30)
    found = {
        resource
        for each, resource in allowed(synthesise("prod", service="shop", **ALLOWING), name)
        if each == f"s3:{action}"
    }
    (folder,) = found - {"bodies/*", "uploads/*"}
    assert folder == "projections/shop/*"
    (key,) = objects.contents
    assert key.startswith(folder.removesuffix("*"))


ARCHIVE_OF = {
    "append": {
        *on("archive", "GetItem", "PutItem", "UpdateItem"),
        *on("streams-archive", "Query", "PutItem"),
    },
    **{
        name: {*on("archive", "GetItem", "Query"), *on("streams-archive", "Query")}
        for name in ("replay", "feed", "reaction")
    },
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_archive_is_written_by_who_prunes_and_read_by_who_reads(synthesise: Synthesise, name: str) -> None:
    added = allowed(synthesise("prod", archive=True, **ALLOWING), name) - EXPECTED[name]
    assert added == ARCHIVE_OF.get(name, set())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"snapshot_copies": 2},
            {*on("snapshot", "DeleteItem"), *on("snapshot-aid-index of snapshot", "Query")},
        ),
        (
            {"snapshot_copies": 2, "snapshot_ttl_days": 30},
            on("snapshot-active-ttl-index of snapshot", "Query"),
        ),
    ],
)
@pytest.mark.parametrize("name", EXPECTED)
def test_where_copies_of_snapshots_are_kept_append_finds_and_retires_them(
    synthesise: Synthesise, name: str, settings: dict[str, int], expected: Allowed
) -> None:
    added = allowed(synthesise("prod", **settings, **ALLOWING), name) - EXPECTED[name]
    assert added == (expected if name == "append" else set())


LISTED = {
    "append": ["bodies/*", "uploads/*"],
    "replay": ["bodies/*", "projections/*"],
    "feed": ["bodies/*"],
    "reaction": ["bodies/*"],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_of_the_bucket_a_function_can_list_what_it_looks_for_and_nothing_else(
    synthesise: Synthesise, name: str
) -> None:
    """S3 asks with an object's key for the prefix, so an object that is not there is told from one that is denied."""
    found = [
        each
        for each in statements(synthesise("prod", **ALLOWING), name)
        if "s3:ListBucket" in listed(each["Action"]) and plainly(each["Resource"]) != "failures"
    ]
    prefixes = [each["Condition"]["StringLike"]["s3:prefix"] for each in found]
    assert prefixes == ([LISTED[name]] if name in LISTED else [])


TENANTS = {"events", "tags", "projection-states", "GSI1 of tags", "GSI1 of events"}
"""What tenants share: whose keys begin with the tenant's name."""


@pytest.mark.parametrize("name", EXPECTED)
def test_where_tenants_share_tables_a_function_reaches_the_keys_of_its_own(
    synthesise: Synthesise, name: str
) -> None:
    shared, alone = synthesise("prod", service="shop", **ALLOWING), synthesise("prod", **ALLOWING)
    assert allowed(shared, name) - {
        ("s3:GetObject", "projections/shop/*"),
        ("s3:PutObject", "projections/shop/*"),
    } == {pair for pair in EXPECTED[name] if pair[1] != "projections/*"}
    for statement in statements(shared, name):
        on_tenants = {plainly(each) for each in listed(statement["Resource"])} & TENANTS
        keys = statement.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys")
        if on_tenants == {"GSI1 of tags"}:
            assert keys == [Keys(service="shop").in_group("*")]
        elif on_tenants and statement["Action"] != "dynamodb:Scan":
            keys_of = Keys(service="shop")
            own = (keys_of.event("1")["pk"]["S"], keys_of.tag("a:1"), keys_of.projector("p"))
            assert keys == ["SERVICE#shop#*"]
            assert all(key.startswith("SERVICE#shop#") for key in own)
        elif on_tenants:
            assert keys is None  # A scan has none, and a condition on them would not stop it.
    for statement in statements(alone, name):
        if {plainly(each) for each in listed(statement["Resource"])} & TENANTS:
            assert "Condition" not in statement


def test_where_streams_keep_so_much_the_auditor_prunes_them_and_copies_them_to_their_archive(
    synthesise: Synthesise,
) -> None:
    found = allowed(synthesise("prod", keep=["Visit:100"], **ALLOWING), "auditor")
    assert found - EXPECTED["auditor"] == set(on("streams", "UpdateItem"))
    found = allowed(synthesise("prod", keep=["Visit:100"], archive=True, **ALLOWING), "auditor")
    copying = {*on("streams-archive", "Query", "PutItem"), *on("archive", "GetItem", "PutItem", "UpdateItem")}
    assert found - EXPECTED["auditor"] == {*on("streams", "UpdateItem"), *copying}


def test_of_the_index_the_feed_writes_states_of_groups_alone(synthesise: Synthesise) -> None:
    writing = [
        each
        for each in statements(synthesise("prod", **ALLOWING), "feed")
        if {"dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:UpdateItem"} & {*listed(each["Action"])}
    ]
    (condition,) = (each["Condition"] for each in writing)
    assert condition == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [*STATES]}}


@pytest.mark.parametrize("target", ["aws", "embedded"])
@pytest.mark.parametrize("settings", [{}, {"kms_key": KEY}], ids=["", "own key"])
def test_no_statement_allows_a_wildcard_action_and_one_a_wildcard_resource(
    synthesise: Synthesise, target: str, settings: dict[str, str]
) -> None:
    deployment = synthesise("prod", target, **ALLOWING, **settings)
    found = [
        each for policy in policies(deployment) for each in policy["Statement"] if each["Effect"] == "Allow"
    ]
    assert not [action for each in found for action in listed(each["Action"]) if "*" in action]
    everything = [each["Action"] for each in found if "*" in listed(each.get("Resource", []))]
    assert everything == ["dynamodb:ListStreams"]


def test_permissions_stand_only_in_the_roles_of_the_functions(synthesise: Synthesise) -> None:
    """No managed policy, and none attached afterwards: what a test of the roles sees is all there is."""
    deployment = synthesise("prod", **ALLOWING)
    types = {resource["Type"] for resource in deployment.resources()}
    roles = [each for each in deployment.resources() if each["Type"] == ROLE]
    assert len(roles) == len(EXPECTED) + 1, "test_fixed_settings.py has what the guard may do"
    assert not [role for role in roles if role["Properties"].get("ManagedPolicyArns")]
    assert not types & {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"}


def test_only_the_api_may_call_its_functions_and_only_on_their_routes(synthesise: Synthesise) -> None:
    for permission in synthesise().of_type("api", "AWS::Lambda::Permission").values():
        properties = permission["Properties"]
        assert properties["Action"] == "lambda:InvokeFunction"
        assert properties["Principal"] == "apigateway.amazonaws.com"
        path = properties["SourceArn"]["Fn::Join"][1][-1]
        assert re.fullmatch(
            r"/\*/\*/(appends|streams|tips|events|timers|tags|aggregates|dcb|projections|feed|groups|bodies|health).*",
            path,
        )


def allowed(deployment: Deployment, name: str) -> Allowed:
    """(action, resource) pairs of a function's role, resources by what they are."""
    return {
        (action, plainly(resource))
        for statement in statements(deployment, name)
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def statements(deployment: Deployment, name: str) -> list[dict[str, Any]]:
    """What stands in a function's role."""
    role = deployment.named(*ROLES.get(name, ("api", ROLE, f"{name.capitalize()}Role")))
    (policy,) = role["Properties"]["Policies"]
    found: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    return found


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
        *(
            (rf"Parameter\w+streams{kind.replace('-', '')}C96584B6\w+'", f"stream of {kind}")
            for kind in KINDS
        ),
        *((rf":table/epochal-\w+-{kind}/index/([\w-]+)'", rf"\1 of {kind}") for kind in KINDS),
        *((rf":table/epochal-\w+-{kind}'", kind) for kind in KINDS),
        (r":table/board", "board"),
        (r"'Failures\w+', 'Arn'.*/aws/lambda/\*", "failures/aws/lambda/*"),
        (r"'Failures\w+', 'Arn'", "failures"),
        (r"'Ref': 'NoticesTopic\w+'", "notices"),
        (r"'boardQueue\w+', 'Arn'", "own queue"),
        (r":event-source-mapping:.*'Id'", "own mappings"),
        (r":s3:::epochal-\w+-bodies-.*'/((?:bodies|uploads|projections|projections/shop)/\*)", r"\1"),
        (r":s3:::epochal-\w+-bodies-", "bodies"),
        (r"'\w+Log\w+', 'Arn'", "own log"),
    ):
        if found := re.search(pattern, text):
            return found.expand(meaning)
    return text
