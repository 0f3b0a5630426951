"""The judge of updates refuses what AWS refuses: pairs of templates that are wrong in one way each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.account import BUCKET, ROUTE, STAGE, TABLE, Account, Template

ALARM, FUNCTION, MAPPING = (
    "AWS::CloudWatch::Alarm",
    "AWS::Lambda::Function",
    "AWS::Lambda::EventSourceMapping",
)
PARAMETER = "AWS::SSM::Parameter"
AUTOSCALED = {"MinCapacity": 1, "MaxCapacity": 9}


def resource(type_: str, **properties: Any) -> dict[str, Any]:
    return {"Type": type_, "Properties": properties}


def stack(**resources: dict[str, Any]) -> dict[str, Any]:
    return {"Resources": resources}


def table(name: str = "tips", retain: bool = True, **properties: Any) -> dict[str, Any]:
    made = resource(TABLE, **{"TableName": name, "Replicas": [{"Region": "eu-west-1"}], **properties})
    return {**made, "DeletionPolicy": "Retain" if retain else "Delete"}


def after(before: Template, now: Template) -> list[str]:
    """What is refused of an update of one stack."""
    account = Account()
    assert account.deploy({"one": before}) == []
    return account.deploy({"one": now})


def exporting(value: Any) -> dict[str, Any]:
    return {**stack(Tips=table()), "Outputs": {"Tips": {"Value": value, "Export": {"Name": "tips"}}}}


IMPORTING = stack(
    Reader=resource(ALARM, AlarmName="late", Dimensions=[{"Value": {"Fn::ImportValue": "tips"}}])
)


@pytest.mark.parametrize(
    ("now", "what"), [(stack(Tips=table()), "deleted"), (exporting("tips-restored"), "changed")]
)
def test_an_export_that_is_imported_neither_goes_nor_changes(now: Template, what: str) -> None:
    account = Account()
    assert account.deploy({"store": exporting({"Ref": "Tips"}), "feed": IMPORTING}) == []
    (refused,) = account.deploy({"store": now, "feed": stack()})
    assert refused == f"store: export tips cannot be {what}, feed imports it"


def test_an_export_goes_where_its_importer_went_first_or_never_was() -> None:
    account = Account()
    assert account.deploy({"store": exporting({"Ref": "Tips"}), "feed": IMPORTING}) == []
    assert account.deploy({"feed": stack(), "store": stack(Tips=table())}) == []
    assert after(exporting({"Ref": "Tips"}), stack(Tips=table())) == []


def test_what_is_imported_has_to_be_there() -> None:
    assert Account().deploy({"feed": IMPORTING}) == ["feed: nobody exports tips"]


@pytest.mark.parametrize(
    ("before", "now", "refused"),
    [
        (
            table(KeySchema=["p"]),
            table(KeySchema=["p", "i"]),
            "replaced for its KeySchema, and there cannot be two",
        ),
        (
            table("tips"),
            table("tips-2"),
            "replaced for its TableName, and what it holds would not come along",
        ),
        (
            resource(BUCKET, BucketName="bodies"),
            resource(BUCKET, BucketName="bodies-2"),
            "replaced for its BucketName, and what it holds would not come along",
        ),
        (
            resource("AWS::SQS::Queue", QueueName="q", FifoQueue=True),
            resource("AWS::SQS::Queue", QueueName="q"),
            "replaced for its FifoQueue, and there cannot be two",
        ),
        (
            resource(MAPPING, FunctionName="f", EventSourceArn="s", StartingPosition="LATEST"),
            resource(MAPPING, FunctionName="f", EventSourceArn="s", StartingPosition="TRIM_HORIZON"),
            "replaced for its StartingPosition, and there cannot be two",
        ),
        (resource(ALARM, AlarmName="late"), resource(FUNCTION, FunctionName="late"), "cannot become"),
        (
            resource("Custom::Made", ServiceToken="arn:old"),
            resource("Custom::Made", ServiceToken="arn:new"),
            "cannot have another ServiceToken",
        ),
    ],
)
def test_what_would_be_another_resource_under_its_old_name_is_refused(
    before: dict[str, Any], now: dict[str, Any], refused: str
) -> None:
    (found,) = after(stack(One=before), stack(One=now))
    assert refused in found


def test_what_has_no_name_of_its_own_is_replaced() -> None:
    before, now = (
        stack(
            Function=resource(FUNCTION, FunctionName="f"),
            Mapping=resource(MAPPING, FunctionName={"Ref": "Function"}, EventSourceArn=stream),
        )
        for stream in ("arn:old", "arn:new")
    )
    assert after(before, now) == []


def test_a_name_is_taken_until_what_has_it_is_gone_also_by_another_id_or_stack() -> None:
    alarm = resource(ALARM, AlarmName="late")
    assert "exists already" in after(stack(Old=alarm), stack(New=alarm))[0]
    account = Account()
    assert account.deploy({"feed": stack(), "watch": stack(Late=alarm)}) == []
    (refused,) = account.deploy({"feed": stack(Late=alarm), "watch": stack()})
    assert refused.endswith("('AWS::CloudWatch::Alarm', 'late'), of watch")


def test_what_is_retained_keeps_its_name_until_it_is_taken_back() -> None:
    account = Account()
    whole = stack(Tips=table())
    for template in (whole, stack()):
        assert account.deploy({"store": template}) == []
    assert account.left == {(TABLE, "tips")}
    assert "which was left" in Account.deploy(account, {"store": whole})[0]
    account = Account()
    for template in (whole, stack()):
        account.deploy({"store": template})
    assert account.take_back("store", whole) == []
    assert account.deploy({"store": whole}) == []
    assert not account.left


def test_what_has_to_say_what_becomes_of_it_is_not_taken_back_without() -> None:
    account = Account()
    bucket = stack(Bodies=resource(BUCKET, BucketName="bodies"))
    account.deploy({"store": bucket})
    account.destroy("store")
    assert account.left == {(BUCKET, "bodies")}, "no bucket is deleted that holds anything"
    assert account.take_back("store", bucket) == ["store: Bodies has no DeletionPolicy"]


def test_a_table_goes_with_its_stack_where_neither_policy_nor_protection_keeps_it() -> None:
    account = Account()
    protected = table(
        "safe", retain=False, Replicas=[{"Region": "eu-west-1", "DeletionProtectionEnabled": True}]
    )
    account.deploy({"store": stack(Tips=table(retain=False), Kept=table("kept"), Safe=protected)})
    account.destroy("store")
    assert account.deleted == [(TABLE, "tips")]
    assert account.left == {(TABLE, "kept"), (TABLE, "safe")}


def test_a_parameter_is_read_when_the_stack_changes_and_has_to_be_there() -> None:
    asking = {
        "Parameters": {"Stream": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/stream"}},
        **stack(
            Function=resource(FUNCTION, FunctionName="f"),
            Mapping=resource(MAPPING, FunctionName="f", EventSourceArn={"Ref": "Stream"}),
        ),
    }
    assert Account().deploy({"feed": asking}) == ["feed: there is no parameter /stream"]
    account = Account()
    told = stack(Stream=resource(PARAMETER, Name="/stream", Value="arn:1"))
    assert account.deploy({"store": told, "feed": asking}) == []
    assert account.stacks["feed"].properties["Mapping"]["EventSourceArn"] == "arn:1"
    literal = stack(
        **{**asking["Resources"], "Mapping": resource(MAPPING, FunctionName="f", EventSourceArn="arn:1")}
    )
    assert account.deploy({"feed": literal}) == [], "the same stream, said otherwise, is the same mapping"


def test_what_refers_to_a_table_says_the_same_as_what_names_it() -> None:
    before = stack(
        Tips=table(), Late=resource(ALARM, AlarmName={"Fn::Join": ["-", ["late", {"Ref": "Tips"}]]})
    )
    assert after(before, stack(Tips=table(), Late=resource(ALARM, AlarmName="late-tips"))) == []


TWO = [{"Region": "eu-west-1"}, {"Region": "eu-central-1"}]
STREAM = {"StreamViewType": "NEW_IMAGE"}


@pytest.mark.parametrize(
    ("before", "now", "refused"),
    [
        ({}, {"Replicas": TWO, "StreamSpecification": STREAM}, "change nothing else where it gains or loses"),
        ({"Replicas": TWO, "StreamSpecification": STREAM}, {}, "change nothing else where it gains or loses"),
        ({}, {"Replicas": TWO}, "must have a stream"),
        (
            {
                "Replicas": [TWO[0], {**TWO[1], "DeletionProtectionEnabled": True}],
                "StreamSpecification": STREAM,
            },
            {"StreamSpecification": STREAM},
            "cannot lose a region where it is protected",
        ),
        (
            {"StreamSpecification": STREAM},
            {"StreamSpecification": STREAM, "Replicas": [*TWO, {"Region": "us-east-1"}]},
            "one region in an update",
        ),
        (
            {"StreamSpecification": STREAM, "Replicas": TWO},
            {"StreamSpecification": {"StreamViewType": "KEYS_ONLY"}, "Replicas": TWO},
            "cannot change its stream while",
        ),
        (
            {"StreamSpecification": STREAM},
            {"StreamSpecification": {"StreamViewType": "KEYS_ONLY"}},
            "another only once that is off",
        ),
        (
            {},
            {"GlobalSecondaryIndexes": [{"IndexName": "a"}, {"IndexName": "b"}]},
            "one index in an update",
        ),
        (
            {"WarmThroughput": {"WriteUnitsPerSecond": 9_000}},
            {"WarmThroughput": {"WriteUnitsPerSecond": 8_999}},
            "cannot have fewer warm WriteUnitsPerSecond",
        ),
        (
            {
                "GlobalSecondaryIndexes": [
                    {"IndexName": "a", "WarmThroughput": {"ReadUnitsPerSecond": 20_000}}
                ]
            },
            {
                "GlobalSecondaryIndexes": [
                    {"IndexName": "a", "WarmThroughput": {"ReadUnitsPerSecond": 12_000}}
                ]
            },
            "cannot have fewer warm ReadUnitsPerSecond of a",
        ),
        (
            {"BillingMode": "PAY_PER_REQUEST"},
            {
                "BillingMode": "PROVISIONED",
                "WriteProvisionedThroughputSettings": {"WriteCapacityAutoScalingSettings": AUTOSCALED},
            },
            "no SeedCapacity of writes",
        ),
        (
            {"BillingMode": "PAY_PER_REQUEST"},
            {
                "BillingMode": "PROVISIONED",
                "Replicas": [
                    {
                        "Region": "eu-west-1",
                        "GlobalSecondaryIndexes": [
                            {
                                "IndexName": "a",
                                "ReadProvisionedThroughputSettings": {
                                    "ReadCapacityAutoScalingSettings": AUTOSCALED
                                },
                            }
                        ],
                    }
                ],
            },
            "no SeedCapacity of reads of a in eu-west-1",
        ),
    ],
)
def test_what_dynamodb_takes_in_no_update_is_refused(
    before: dict[str, Any], now: dict[str, Any], refused: str
) -> None:
    assert any(refused in each for each in after(stack(Tips=table(**before)), stack(Tips=table(**now))))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"StreamSpecification": STREAM}, {"StreamSpecification": STREAM, "Replicas": TWO}),
        ({"StreamSpecification": STREAM, "Replicas": TWO}, {"StreamSpecification": STREAM}),
        ({}, {"StreamSpecification": STREAM}),
        ({}, {"WarmThroughput": {"WriteUnitsPerSecond": 9_000}}),
        ({"WarmThroughput": {"WriteUnitsPerSecond": 9_000}}, {}),
        (
            {"WarmThroughput": {"WriteUnitsPerSecond": 9_000}},
            {"WarmThroughput": {"WriteUnitsPerSecond": 9_001}},
        ),
        ({"BillingMode": "PROVISIONED"}, {"BillingMode": "PAY_PER_REQUEST"}),
        (
            {"BillingMode": "PAY_PER_REQUEST"},
            {
                "BillingMode": "PROVISIONED",
                "WriteProvisionedThroughputSettings": {
                    "WriteCapacityAutoScalingSettings": {**AUTOSCALED, "SeedCapacity": 1}
                },
            },
        ),
    ],
)
def test_one_step_at_a_time_is_taken(before: dict[str, Any], now: dict[str, Any]) -> None:
    assert after(stack(Tips=table(**before)), stack(Tips=table(**now))) == []


def test_a_template_has_bounds() -> None:
    alarms = {f"Late{number}": resource(ALARM, AlarmName=f"late-{number}") for number in range(501)}
    assert Account().deploy({"watch": stack(**alarms)}) == ["watch: has more than 500 Resources"]


def gateway(*routes: str, limited: tuple[str, ...] = ()) -> Template:
    """An API with routes, some of which have limits."""
    limits = {key: {"ThrottlingRateLimit": 10} for key in limited}
    return stack(
        Api=resource("AWS::ApiGatewayV2::Api", Name="api"),
        Live=resource(STAGE, ApiId={"Ref": "Api"}, StageName="$default", RouteSettings=limits),
        **{f"Route{key[-1].upper()}": resource(ROUTE, ApiId={"Ref": "Api"}, RouteKey=key) for key in routes},
    )


@pytest.mark.parametrize(
    ("before", "now", "refused"),
    [
        (
            gateway("GET /a", "GET /b", limited=("GET /b",)),
            gateway("GET /a"),
            "keeps settings of the route GET /b",
        ),
        (
            gateway("GET /a", "GET /b", limited=("GET /b",)),
            gateway("GET /a", "GET /c", limited=("GET /c",)),
            "keeps settings of the route GET /b",
        ),
        (gateway("GET /a"), gateway("GET /a", limited=("GET /b",)), "has settings of the route GET /b"),
    ],
    ids=["removed", "renamed", "never there"],
)
def test_a_route_with_settings_does_not_go(before: Template, now: Template, refused: str) -> None:
    assert any(refused in each for each in after(before, now))


def test_settings_of_routes_that_stay_come_and_go() -> None:
    limited = gateway("GET /a", "GET /b", limited=("GET /b",))
    assert after(gateway("GET /a", "GET /b"), limited) == []
    assert after(limited, gateway("GET /a", "GET /b")) == []
    assert after(limited, gateway("GET /b", limited=("GET /b",))) == []
