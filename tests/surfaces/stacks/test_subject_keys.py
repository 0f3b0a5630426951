"""Keys of subjects in a stack: no moment of theirs can be restored; who is granted something may do that alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Environment, Stack
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from epochal.cdk import Store
from epochal.cdk.parts.functions import Code
from epochal.cdk.sources import Sources
from epochal.cdk.stages import STAGES
from epochal.contrib.subjects.cdk import SubjectKeys
from stacks.stages import stage_from
from tests.surfaces.stacks.templates import ROOT

GUIDE = (ROOT / "docs" / "guide" / "forgetting.md").read_text("utf-8")
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234"


def no_code(*_: object) -> Code:
    raise AssertionError("tables need no functions")


def synthesised(stage: str, **changes: Any) -> Template:
    stack = Stack(env=Environment(region="eu-west-1"))
    store = Store(stack, "Store", stage=stage_from(stage, {stage: changes}), code=no_code)
    keys = SubjectKeys(stack, "SubjectKeys", store=store)
    for name in ("sealing", "forgetting"):
        role = iam.Role(stack, name, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        getattr(keys, f"grant_{name}")(role)
    return Template.from_stack(stack)


def table(template: Template, name: str) -> dict[str, Any]:
    (found,) = template.find_resources(
        "AWS::DynamoDB::GlobalTable", {"Properties": {"TableName": name}}
    ).values()
    return found


def recovery(found: dict[str, Any]) -> bool:
    (replica,) = found["Properties"]["Replicas"]
    enabled: bool = replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
    return enabled


@pytest.mark.parametrize("stage", STAGES)
def test_no_moment_of_the_keys_can_be_restored_whatever_the_stage_says(stage: str) -> None:
    template = synthesised(stage, recovery_days=35)
    assert not recovery(table(template, f"epochal-{stage}-subject-keys"))
    assert recovery(table(template, f"epochal-{stage}-forget-log"))


def test_neither_has_a_stream_that_would_carry_keys_on_and_production_keeps_both() -> None:
    """Names of subjects are all that a stream has of them, which a replica needs."""
    template = synthesised("prod")
    for name in ("subject-keys", "forget-log"):
        found = table(template, f"epochal-prod-{name}")
        assert found["DeletionPolicy"] == "Retain"
        assert found["Properties"]["Replicas"][0]["DeletionProtectionEnabled"] is True
        assert found["Properties"]["StreamSpecification"] == {"StreamViewType": "KEYS_ONLY"}


def test_who_seals_may_not_change_the_log_and_who_forgets_may() -> None:
    found = {name: actions(synthesised("prod"), name) for name in ("sealing", "forgetting")}
    assert found["sealing"] == {
        "Keys": {"dynamodb:GetItem", "dynamodb:PutItem"},
        "ForgetLog": {"dynamodb:GetItem"},
    }
    assert found["forgetting"] == {
        "Keys": {"dynamodb:GetItem", "dynamodb:PutItem"},
        "ForgetLog": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Scan"},
    }


def test_a_key_of_ones_own_encrypts_both_and_is_granted() -> None:
    template = synthesised("prod", kms_key=KEY)
    text = str(template.to_json())
    assert text.count("'SSEType': 'KMS'") == 2
    assert "kms:Decrypt" in text


def test_the_guides_stack_is_one(sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sources, "shipped", lambda: sources)
    (tmp_path / "functions" / "desk").mkdir(parents=True)
    (tmp_path / "functions" / "desk" / "desk.py").touch()
    _, *blocks = re.findall(r"^```py\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "people"}
    for block in blocks:
        code = block.replace('"functions/', f'"{tmp_path}/functions/')
        exec(compile(code, "people.py", "exec"), names)  # noqa: S102  the guide's own
    template = Template.from_stack(names["stack"])
    template.resource_count_is("AWS::DynamoDB::GlobalTable", 2)
    for name in re.findall(r"`(epochal-prod-[a-z-]+)`", GUIDE):
        assert table(template, name)


def actions(template: Template, role: str) -> dict[str, set[str]]:
    """What a role's policies allow, by the table that they name."""
    found: dict[str, set[str]] = {}
    for policy in template.find_resources("AWS::IAM::Policy").values():
        if not policy["Properties"]["Roles"][0]["Ref"].startswith(role):
            continue
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            allowed, resource = statement["Action"], str(statement["Resource"])
            name = "ForgetLog" if "ForgetLog" in resource else "Keys"
            found.setdefault(name, set()).update([allowed] if isinstance(allowed, str) else allowed)
    return found
