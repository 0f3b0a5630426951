"""A second region: what its tables have, and what else stays as it is without one."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk.assertions import Template

from epochal.cdk import Store
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources, code_of
from epochal.contrib.subjects.cdk import SubjectKeys
from epochal.contrib.subjects.items import SUBJECT_KEYS
from epochal.layout.tables import every_table, store_tables
from stacks.deployment import REGION
from stacks.stages import stage_from
from tests.surfaces.stacks.templates import Deployment, Synthesise

TABLE = "AWS::DynamoDB::GlobalTable"
HERE, THERE = "eu-west-1", "eu-central-1"
KEY = f"arn:aws:kms:{HERE}:123456789012:key/1234"
KEY_THERE = f"arn:aws:kms:{THERE}:123456789012:key/5678"


@pytest.fixture(autouse=True)
def _deploys_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REGION, HERE)


def tables(deployment: Deployment) -> dict[str, dict[str, Any]]:
    return deployment.of_type("store", TABLE)


def replicas(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The replicas of a table by their regions, the table itself being one."""
    found = {each["Region"]: dict(each) for each in table["Properties"]["Replicas"]}
    for each in found.values():
        del each["Region"]
    return found


def test_every_table_has_a_replica_which_is_kept_protected_and_recoverable_as_it_is(
    synthesise: Synthesise,
) -> None:
    deployed = synthesise("prod", read_models=True, archive=True, timers=True, replica_region=THERE)
    assert len(tables(deployed)) == len(every_table())
    for table in tables(deployed).values():
        assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
        found = replicas(table)
        assert set(found) == {HERE, THERE}
        assert found[HERE] == found[THERE]
        assert found[THERE]["DeletionProtectionEnabled"] is True
        assert found[THERE]["PointInTimeRecoverySpecification"] == {
            "PointInTimeRecoveryEnabled": True,
            "RecoveryPeriodInDays": 35,
        }


@pytest.mark.parametrize(
    "billing", [{}, {"billing": "provisioned", "max_read_units": 9, "max_write_units": 9}]
)
def test_nothing_of_a_table_that_is_there_changes_but_that_it_has_a_replica(
    synthesise: Synthesise, billing: dict[str, Any]
) -> None:
    """Ids, names, keys and streams stay: CloudFormation adds a region to the table, and does not replace it."""
    before, after = (
        tables(synthesise("prod", **billing, **more)) for more in ({}, {"replica_region": THERE})
    )
    assert set(before) == set(after)
    for id_, table in before.items():
        now = after[id_]
        (alone,) = table["Properties"]["Replicas"]
        assert {**replicas(now)[HERE], "Region": {"Ref": "AWS::Region"}} == alone
        assert {**now["Properties"], "Replicas": []} == {**table["Properties"], "Replicas": []}
        assert {**now, "Properties": {}} == {**table, "Properties": {}}


def test_functions_may_do_and_are_told_what_they_are_without_a_replica(synthesise: Synthesise) -> None:
    before, after = (synthesise("prod", **more) for more in ({}, {"replica_region": THERE}))
    for kind in ("api", "feed"):
        for type_ in ("AWS::IAM::Role", "AWS::Lambda::EventSourceMapping"):
            assert _agnostic(after.of_type(kind, type_)) == _agnostic(before.of_type(kind, type_))
        old, new = (each.of_type(kind, "AWS::Lambda::Function") for each in (before, after))
        assert set(old) == set(new)
        for id_, function in old.items():
            told = new[id_]["Properties"].get("Environment")
            assert _agnostic(told) == _agnostic(function["Properties"].get("Environment"))
    assert before.template("store")["Outputs"] == after.template("store")["Outputs"]


def test_a_replica_has_a_key_of_its_own_region(synthesise: Synthesise) -> None:
    deployed = synthesise(kms_key=KEY, replica_region=THERE, replica_kms_key=KEY_THERE)
    for table in tables(deployed).values():
        keys = {region: each["SSESpecification"] for region, each in replicas(table).items()}
        assert keys == {HERE: {"KMSMasterKeyId": KEY}, THERE: {"KMSMasterKeyId": KEY_THERE}}


def test_tables_that_are_taken_over_are_left_alone_and_the_others_have_a_replica(
    synthesise: Synthesise,
) -> None:
    kept = f"arn:aws:dynamodb:{HERE}:123456789012:table/kept"
    deployed = synthesise(replica_region=THERE, existing_journal=kept)
    assert len(tables(deployed)) == len(store_tables()) - 1
    assert all(set(replicas(table)) == {HERE, THERE} for table in tables(deployed).values())


def test_the_embedded_deployment_has_no_replica(synthesise: Synthesise) -> None:
    plain, asked = (
        synthesise("prod", "embedded", **more)
        for more in ({}, {"kms_key": "", "replica_region": THERE, "replica_kms_key": ""})
    )
    assert tables(plain) == tables(asked)


def test_keys_of_subjects_have_a_replica_that_no_moment_brings_back(sources: Sources) -> None:
    stack = Stack(App(), "Mine", env=Environment(region=HERE))
    stage = stage_from("prod", {"prod": {"replica_region": THERE}})
    store = Store(stack, "Store", stage=stage, code=lambda *_: code_of(sources))
    SubjectKeys(stack, "Subjects", store=store)
    found = Template.from_stack(stack).find_resources(TABLE).values()
    (keys,) = (each for each in found if each["Properties"]["TableName"].endswith(SUBJECT_KEYS.kind))
    assert {
        each["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
        for each in replicas(keys).values()
    } == {False}


@pytest.mark.parametrize(
    ("settings", "field", "rule"),
    [
        ({"replica_region": "Frankfurt"}, "replica_region", "a region"),
        ({"replica_region": [THERE]}, "replica_region", "a region"),
        ({"replica_kms_key": KEY_THERE}, "replica_kms_key", "replica_region and kms_key"),
        (
            {"replica_region": THERE, "replica_kms_key": KEY_THERE},
            "replica_kms_key",
            "replica_region and kms_key",
        ),
        ({"replica_region": THERE, "kms_key": KEY}, "replica_kms_key", "must be a key in replica_region"),
        (
            {"replica_region": THERE, "kms_key": KEY, "replica_kms_key": KEY},
            "replica_kms_key",
            "must be a key in replica_region",
        ),
        (
            {"replica_region": HERE, "kms_key": KEY, "replica_kms_key": KEY},
            "replica_region",
            "a region other than that of kms_key",
        ),
    ],
)
def test_a_second_region_that_cannot_be_is_refused(settings: dict[str, Any], field: str, rule: str) -> None:
    with pytest.raises(BadSetting, match=rf"stages\.prod\.{field} .*{rule}"):
        stage_from("prod", {"prod": settings})


def test_the_region_that_is_deployed_to_is_none_to_fail_over_to(synthesise: Synthesise) -> None:
    with pytest.raises(BadSetting, match=f"replica_region must be a region other than {HERE}"):
        synthesise("staging", replica_region=HERE)


def test_a_region_that_nobody_knows_is_refused(
    synthesise: Synthesise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(REGION)
    with pytest.raises(
        BadSetting, match=f"replica_region needs the region of the deployment, which cdk passes in {REGION}"
    ):
        synthesise("staging", replica_region="us-east-2")


def _agnostic(value: Any) -> Any:
    """The value with the region that it leaves open: with a replica it is named, and is the same."""
    if value in ({"Ref": "AWS::Region"}, {"Ref": "AWS::Partition"}):
        return HERE if value["Ref"] == "AWS::Region" else "aws"
    if isinstance(value, list):
        return [_agnostic(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "Fn::Join" not in value:
        return {key: _agnostic(each) for key, each in value.items()}
    joined: list[Any] = []
    for part in _agnostic(value["Fn::Join"][1]):
        together = joined and isinstance(joined[-1], str) and isinstance(part, str)
        joined[-1:] = [joined[-1] + part] if together else [*joined[-1:], part]
    return joined if len(joined) > 1 else joined[0]
