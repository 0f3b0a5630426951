"""What CloudFormation would say of templates: `cfn-lint` has the schemas of all resources, and rules of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from tests.support.account import PLACE
from tests.unit.stacks.templates import CHOSEN, SPARSE, Synthesise

IGNORED = {
    "W3005": "CDK says of a function that it comes after its role, which a reference to the role says as well",
}

KEY = f"arn:aws:kms:{PLACE['AWS::Region']}:{PLACE['AWS::AccountId']}:key/1234"
STAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "prod": ("prod", {"reactions": {"board": {"entry": "board"}}}),
    "chosen": ("dev", CHOSEN),
    "kinesis": ("prod", {"feed_kinesis_shards": 2, "kms_key": KEY}),
    "sparse": ("staging", {**SPARSE, "api": "urls"}),
}


@pytest.mark.parametrize("stage", STAGES)
def test_no_template_has_what_cloudformation_knows_to_be_wrong(synthesise: Synthesise, stage: str) -> None:
    name, settings = STAGES[stage]
    asked = ManualArgs(regions=[PLACE["AWS::Region"]], ignore_checks=[*IGNORED])
    assert [
        f"{stack}: {each.rule.id} {each.message} ({'/'.join(map(str, vars(each)['path'] or ()))})"
        for stack, template in synthesise(name, **settings).in_order().items()
        for each in lint(json.dumps(template), config=asked)
    ] == []


def test_a_template_that_is_wrong_is_told_of() -> None:
    wrong = {
        "Resources": {"Tips": {"Type": "AWS::DynamoDB::GlobalTable", "Properties": {"TableName": "tips"}}}
    }
    assert "E3003" in {each.rule.id for each in lint(json.dumps(wrong))}
