"""What was synthesised tells where stacks go, and what has to be there before them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from epochal.contrib.local.assembly import HERE, Environment, Stack, assembly_in
from epochal.contrib.local.errors import AccountRefused
from epochal.contrib.local.remembered_deployment import environments_of

UNKNOWN = "aws://unknown-account/unknown-region"


def manifest(folder: Path, **artifacts: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder


def stack(environment: str, **more: Any) -> dict[str, Any]:
    return {"type": "aws:cloudformation:stack", "environment": environment, "properties": {}} | more


def test_a_stack_that_names_nothing_goes_to_the_embedded_aws_own_account(tmp_path: Path) -> None:
    found = assembly_in(manifest(tmp_path, Shop=stack(UNKNOWN)))
    assert (found.home, environments_of(found)) == (HERE, (HERE,))
    assert [each.name for each in found.stacks] == ["Shop"]


def test_or_where_the_others_go_if_they_agree(tmp_path: Path) -> None:
    there = "aws://123456789012/eu-central-1"
    half = "aws://unknown-account/eu-west-1"
    found = assembly_in(manifest(tmp_path, A=stack(there), B=stack(UNKNOWN), C=stack(half)))
    assert [each.environment for each in found.stacks] == [
        Environment("123456789012", "eu-central-1"),
        Environment("123456789012", "us-east-1"),
        Environment("123456789012", "eu-west-1"),
    ]
    assert found.home == Environment("123456789012", "us-east-1"), "of two regions none is home"


def test_buckets_are_those_that_assets_go_to_whatever_they_are_called(tmp_path: Path) -> None:
    destinations = {"a": {"bucketName": "own-${AWS::AccountId}-${AWS::Region}"}}
    assets = {"files": {"1": {"destinations": destinations}}}
    (tmp_path / "Shop.assets.json").write_text(json.dumps(assets))
    listed = {"type": "cdk:asset-manifest", "properties": {"file": "Shop.assets.json"}}
    properties = {"stackName": "shop", "bootstrapStackVersionSsmParameter": "/own/version"}
    shop = stack("aws://123456789012/eu-west-1", dependencies=["Shop.assets"], properties=properties)
    (found,) = assembly_in(manifest(tmp_path, **{"Shop.assets": listed, "Shop": shop})).stacks
    assert found == Stack(
        id="Shop",
        name="shop",
        environment=Environment("123456789012", "eu-west-1"),
        buckets=frozenset({"own-123456789012-eu-west-1"}),
        parameter="/own/version",
    )


def test_stacks_of_stages_are_deployed_where_the_application_has_no_others(tmp_path: Path) -> None:
    manifest(tmp_path / "prod", Shop=stack(UNKNOWN, displayName="Prod/Shop (prod-shop)"))
    stage = {"type": "cdk:cloud-assembly", "properties": {"directoryName": "prod"}}
    found = assembly_in(manifest(tmp_path, Prod=stage))
    assert (found.staged, [each.id for each in found.stacks]) == (True, ["Prod/Shop"])
    found = assembly_in(manifest(tmp_path, Prod=stage, Pipeline=stack(UNKNOWN)))
    assert (found.staged, [each.id for each in found.stacks]) == (False, ["Pipeline"])


def test_an_account_that_is_none_is_refused_by_the_name_of_its_stack(tmp_path: Path) -> None:
    folder = manifest(tmp_path, Shop=stack("aws://dev/eu-west-1"))
    with pytest.raises(AccountRefused, match=r"stack Shop: the account in its env .* got 'dev'"):
        assembly_in(folder)
