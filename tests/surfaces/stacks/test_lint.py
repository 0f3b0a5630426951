"""What CloudFormation would say of templates: `cfn-lint` has the schemas of all resources, and rules of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from cfnlint.config import ConfigMixIn
from cfnlint.decode import decode_str
from cfnlint.runner import Runner

from tests.support.account import PLACE
from tests.surfaces.stacks.templates import CHOSEN, SPARSE, Synthesise

IGNORED = {
    "W3005": "CDK says of a function that it comes after its role, which a reference to the role says as well",
}

KEY = f"arn:aws:kms:{PLACE['AWS::Region']}:{PLACE['AWS::AccountId']}:key/1234"
STAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "prod": (
        "prod",
        {"reactions": {"board": {"entry": "board"}}, "feed_kinesis_shards": 2, "kms_key": KEY},
    ),
    "chosen": ("dev", CHOSEN),
    "sparse": ("staging", {**SPARSE, "api": "urls"}),
}


@cache
def rules(region: str) -> Runner:
    """Its rules are read once, which takes a third of looking at a template."""
    return Runner(ConfigMixIn(regions=[region], ignore_checks=[*IGNORED]))


def lint(template: dict[str, Any], region: str = PLACE["AWS::Region"]) -> Iterator[str]:
    """What is wrong with a template in a region."""
    decoded, errors = decode_str(json.dumps(template))
    for each in (*errors, *rules(region).validate_template(decoded)):
        yield f"{each.rule.id} {each.message} ({'/'.join(map(str, vars(each)['path'] or ()))})"


@pytest.mark.parametrize("stage", STAGES)
def test_no_template_has_what_cloudformation_knows_to_be_wrong(synthesise: Synthesise, stage: str) -> None:
    name, settings = STAGES[stage]
    assert [
        f"{stack}: {each}"
        for stack, template in synthesise(name, **settings).in_order().items()
        for each in lint(template)
    ] == []


def test_a_template_that_is_wrong_is_told_of_whatever_was_looked_at_before() -> None:
    right = {"Resources": {"Bodies": {"Type": "AWS::S3::Bucket"}}}
    wrong = {
        "Resources": {"Tips": {"Type": "AWS::DynamoDB::GlobalTable", "Properties": {"TableName": "tips"}}}
    }
    found = [[told.split()[0] for told in lint(each)] for each in (wrong, right, wrong)]
    assert "E3003" in found[0]
    assert (found[1], found[2]) == ([], found[0])
